//! The authentication examples are valid for kube-apiserver and navicert, have no warnings, and their suites cover every
//! rule.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests, which run the program itself"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn examples() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/authentication");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

fn is_suite(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".test.yaml")
}

fn navicert(arguments: &[&str], file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_navicert")).arg("authn").args(arguments).arg(file).output().unwrap()
}

#[test]
fn every_example_is_valid_without_warnings() {
    let configurations: Vec<PathBuf> = examples().into_iter().filter(|path| !is_suite(path)).collect();
    assert_eq!(configurations.len(), 9);
    for path in configurations {
        for profile in ["kube", "hardened"] {
            let output = navicert(&["check", "--deny-lints", "--profile", profile], &path);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && told.is_empty(), "{}, {profile}: {told}", path.display());
        }
        let suite = path.with_extension("test.yaml");
        assert!(suite.exists(), "{}", suite.display());
    }
}

#[test]
fn every_example_passes_its_suite_with_full_coverage() {
    let suites: Vec<PathBuf> = examples().into_iter().filter(|path| is_suite(path)).collect();
    assert_eq!(suites.len(), 9);
    for path in suites {
        for profile in ["kube", "hardened"] {
            let output = navicert(&["test", "--require-coverage", "--profile", profile], &path);
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{}, {profile}: {told}", path.display());
        }
    }
}
