//! Tells the binary which commit it was built from, for which target and with which features, for `navicert --version`,
//! and links the unwinder into it.
//!
//! Reads git's files instead of running git: nothing has to be installed, and a source archive simply has no commit. A package has
//! the file that cargo writes into it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let commit =
        packaged_commit().or_else(|| head_commit(&workspace)).unwrap_or_else(|| "unknown commit".to_owned());
    let short: String = commit.chars().take(if commit.contains(' ') { 40 } else { 12 }).collect();
    println!("cargo::rustc-env=NAVICERT_COMMIT={short}");
    println!("cargo::rustc-env=NAVICERT_TARGET={}", variable("TARGET"));
    println!("cargo::rustc-env=NAVICERT_FEATURES={}", features());
    if has_static_unwinder() {
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// Whether the C compiler has its unwinder as an archive. Without `libgcc_s.so.1`, a tenth of the time to start is saved:
/// there is one library less to load, and its initialization asks the processor for features that are not used.
#[expect(clippy::disallowed_methods, reason = "a build script may run the compiler")]
fn has_static_unwinder() -> bool {
    let is_gnu = variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    // For another processor, the linker that cargo was told is its C compiler.
    let compiler =
        if variable("HOST") == variable("TARGET") { "cc".to_owned() } else { variable("RUSTC_LINKER") };
    if !is_gnu || compiler.is_empty() {
        return false;
    }
    let answer = Command::new(compiler).arg("-print-file-name=libgcc_eh.a").output();
    // An unknown file is answered with its bare name.
    answer.is_ok_and(|answer| answer.stdout.starts_with(b"/"))
}

/// The features of this crate that are on, separated by commas, or `none`.
fn features() -> String {
    let features = variable("CARGO_CFG_FEATURE");
    if features.is_empty() { "none".to_owned() } else { features }
}

#[expect(clippy::disallowed_methods, reason = "a build script's arguments are environment variables")]
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// The commit that this package was made from.
fn packaged_commit() -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cargo_vcs_info.json");
    // Not `read` in any case: cargo would run this script in every build because of a file that does not exist.
    let file = path.exists().then(|| read(&path))??;
    let (_, rest) = file.split_once("\"sha1\": \"")?;
    rest.split('"').next().map(str::to_owned)
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
