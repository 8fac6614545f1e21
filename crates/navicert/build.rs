//! Tells the binary which commit it was built from, for `navicert --version`.
//!
//! Reads git's files instead of running git: nothing has to be installed, and a source archive simply has no commit.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let commit = head_commit(&workspace).unwrap_or_else(|| "unknown commit".to_owned());
    let short: String = commit.chars().take(if commit.contains(' ') { 40 } else { 12 }).collect();
    println!("cargo::rustc-env=NAVICERT_COMMIT={short}");
}

/// The commit that `HEAD` names, through a branch (loose or packed) and through a linked work tree.
fn head_commit(workspace: &Path) -> Option<String> {
    let git = git_directory(workspace)?;
    let head = read(&git.join("HEAD"))?;
    let Some(branch) = head.strip_prefix("ref: ") else { return Some(head) };
    let common = read(&git.join("commondir")).map_or_else(|| git.clone(), |path| git.join(path));
    read(&common.join(branch)).or_else(|| {
        let packed = read(&common.join("packed-refs"))?;
        packed.lines().find_map(|line| line.strip_suffix(branch).map(|hash| hash.trim().to_owned()))
    })
}

fn git_directory(workspace: &Path) -> Option<PathBuf> {
    let dot_git = workspace.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    read(&dot_git)?.strip_prefix("gitdir: ").map(|path| workspace.join(path))
}

fn read(path: &Path) -> Option<String> {
    println!("cargo::rerun-if-changed={}", path.display());
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
