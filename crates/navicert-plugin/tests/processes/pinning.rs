//! The file that the policy checked is the file that runs.
// C743

use std::fs;
use std::path::{Path, PathBuf};

use navicert_plugin::{AllowlistEntry, Command, Environment, Permitted, Policy, Runner};
use tempfile::TempDir;

use crate::support::{FAKE_PLUGIN, inherited_descriptors, plugin, run, runner, shell, write_program};

/// A copy of the fake plugin that a test may replace. Made by another process; see `write_program`.
fn copy() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plugin");
    assert!(run(shell("cp \"$0\" \"$1\"").args([&path])).unwrap().exit.is_success());
    (directory, path)
}

fn permit_listed(entry: AllowlistEntry, command: Command) -> Permitted<Command> {
    Policy::from_parts("Allowlist", Some(vec![entry])).unwrap().permit(command).unwrap()
}

fn command(path: &Path, steps: &[&str]) -> Command {
    Command::new(path, Environment::empty()).args(steps)
}

#[test]
fn binary_replaced_after_the_decision_runs_unchanged() {
    let (directory, path) = copy();
    let permitted = permit_listed(AllowlistEntry::new(&path), command(&path, &["say=the original"]));
    assert!(permitted.is_pinned());
    let evil = directory.path().join("evil");
    write_program(&evil, "#!/bin/sh\necho evil\n");
    fs::rename(&evil, &path).unwrap();
    assert_eq!(runner().run(permitted).unwrap().stdout.expose(), b"the original");
    // The next decision uses the current file.
    let permitted = permit_listed(AllowlistEntry::new(&path), command(&path, &[]));
    assert_eq!(runner().run(permitted).unwrap().stdout.expose(), b"evil\n");
}

#[test]
fn binary_removed_after_the_decision_still_runs() {
    let (_directory, path) = copy();
    let permitted = permit_listed(AllowlistEntry::new(&path), command(&path, &["say=still here"]));
    fs::remove_file(&path).unwrap();
    assert_eq!(runner().run(permitted).unwrap().stdout.expose(), b"still here");
}

#[test]
fn pinned_program_has_its_name_and_inherits_no_descriptor() {
    // I91: argv[0] is the configured path, even for a pinned file.
    let entry = || AllowlistEntry::new(FAKE_PLUGIN);
    let permitted = permit_listed(entry(), plugin(["args", "x"]));
    assert!(permitted.is_pinned() && permitted.program() == Path::new(FAKE_PLUGIN));
    let completed = runner().run(permitted).unwrap();
    assert_eq!(completed.stdout.expose(), format!("{FAKE_PLUGIN}\0args\0x\0").as_bytes());
    assert_eq!(completed.program, Path::new(FAKE_PLUGIN));
    let descriptors = runner().run(permit_listed(entry(), plugin(["descriptors"]))).unwrap();
    assert_eq!(String::from_utf8_lossy(descriptors.stdout.expose()), inherited_descriptors());
}

#[test]
fn script_runs_by_path() {
    // The interpreter opens the script by name.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script");
    write_program(&path, "#!/bin/sh\necho \"$0\" \"$1\"\n");
    let permitted = permit_listed(AllowlistEntry::new(&path), command(&path, &["argument"]));
    assert!(!permitted.is_pinned());
    let expected = format!("{} argument\n", path.display());
    assert_eq!(runner().run(permitted).unwrap().stdout.expose(), expected.as_bytes());
}

#[test]
fn runs_the_file_whose_digest_was_compared() {
    // C741, C743
    let (directory, path) = copy();
    let sum = run(shell("sha256sum \"$0\"")).unwrap().stdout.expose().clone();
    let digest = String::from_utf8(sum).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    let entry = || AllowlistEntry::new(&path).sha256(digest);
    let permitted = permit_listed(entry(), command(&path, &["say=as hashed"]));
    let evil = directory.path().join("evil");
    write_program(&evil, "#!/bin/sh\necho evil\n");
    fs::rename(&evil, &path).unwrap();
    assert_eq!(runner().run(permitted).unwrap().stdout.expose(), b"as hashed");
    let policy = Policy::from_parts("Allowlist", Some(vec![entry()])).unwrap();
    assert!(policy.permit(command(&path, &[])).is_err(), "the next decision sees another file");
}
