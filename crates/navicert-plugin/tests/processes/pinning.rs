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

/// The digest of a file, made by another program.
fn sha256(path: &Path) -> navicert_plugin::Sha256Digest {
    let sum = run(shell("sha256sum \"$1\"").args([path])).unwrap().stdout.expose().clone();
    String::from_utf8(sum).unwrap().split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn swapped_symlink_never_runs_another_script() {
    // C743: a digest on a script that a link leads to, while another process moves the link back and forth.
    let directory = tempfile::tempdir().unwrap();
    let (good, evil, link) =
        (directory.path().join("good"), directory.path().join("evil"), directory.path().join("link"));
    write_program(&good, "#!/bin/sh\necho \"good $1\"\n");
    write_program(&evil, "#!/bin/sh\necho evil\n");
    std::os::unix::fs::symlink(&good, &link).unwrap();
    let policy =
        Policy::from_parts("Allowlist", Some(vec![AllowlistEntry::new(&link).sha256(sha256(&good))]))
            .unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let swaps = {
        let (stop, directory) = (stop.clone(), directory.path().to_path_buf());
        std::thread::spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for target in ["evil", "good"] {
                    std::os::unix::fs::symlink(directory.join(target), directory.join("next")).unwrap();
                    fs::rename(directory.join("next"), directory.join("link")).unwrap();
                }
            }
        })
    };
    let (mut ran, mut denied) = (0, 0);
    while ran < 200 && denied < 100_000 {
        match policy.permit(command(&link, &["argument"])) {
            Err(_) => denied += 1,
            Ok(permitted) => {
                ran += 1;
                let completed = runner().run(permitted).unwrap();
                assert_eq!(
                    String::from_utf8_lossy(completed.stdout.expose()),
                    "good argument\n",
                    "run {ran}"
                );
            }
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    swaps.join().unwrap();
    assert_eq!(ran, 200, "{denied} denied");
}

#[test]
fn script_overwritten_after_the_decision_runs_unchanged() {
    // C743: the same file, so that holding it open does not help.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script");
    write_program(&path, "#!/bin/sh\necho original\n");
    let entry = AllowlistEntry::new(&path).sha256(sha256(&path));
    let permitted = permit_listed(entry, command(&path, &[]));
    write_program(&path, "#!/bin/sh\necho evil\n");
    assert!(permitted.is_pinned());
    assert_eq!(runner().run(permitted).unwrap().stdout.expose(), b"original\n");
}

#[test]
fn binary_that_others_can_write_runs_from_a_copy() {
    // C743
    let (directory, path) = copy();
    let evil = directory.path().join("evil");
    write_program(&evil, "#!/bin/sh\necho evil\n");
    assert!(run(shell("chmod 777 \"$1\"").args([&path])).unwrap().exit.is_success());
    let entry = AllowlistEntry::new(&path).sha256(sha256(&path));
    let permitted = permit_listed(entry, command(&path, &["say=original"]));
    assert!(run(shell("cat \"$1\" > \"$2\"").args([&evil, &path])).unwrap().exit.is_success());
    assert_eq!(runner().run(permitted).unwrap().stdout.expose(), b"original");
}

#[test]
fn digest_of_a_replaceable_script_that_looks_for_itself_is_refused() {
    // C743
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script");
    for text in ["#!/bin/sh\necho \"$0\"\n", "#!/usr/bin/env python3\nprint('x')\n", "echo no interpreter\n"]
    {
        write_program(&path, text);
        let entry = AllowlistEntry::new(&path).sha256(sha256(&path));
        let policy = Policy::from_parts("Allowlist", Some(vec![entry])).unwrap();
        let error = policy.permit(command(&path, &[])).unwrap_err().to_string();
        assert!(error.contains("others than root can replace it"), "{text}: {error}");
        // Without a digest, the path is what the entry allows.
        let by_path = Policy::from_parts("Allowlist", Some(vec![AllowlistEntry::new(&path)])).unwrap();
        assert!(by_path.permit(command(&path, &[])).is_ok());
    }
}

#[test]
fn digest_of_a_script_that_only_root_can_replace_runs_by_path() {
    // C743: `$0` is its path then.
    let is_script =
        |path: &PathBuf| fs::read(path).is_ok_and(|text| text.starts_with(b"#!") && text.len() < 1 << 20);
    let is_roots = |path: &PathBuf| {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        path.symlink_metadata().is_ok_and(|facts| {
            facts.is_file() && facts.uid() == 0 && facts.permissions().mode() & 0o7777 == 0o755
        })
    };
    let scripts = fs::read_dir("/usr/bin").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let path = scripts.filter(is_roots).find(is_script).expect("a system has some script in /usr/bin");
    let permitted = permit_listed(AllowlistEntry::new(&path).sha256(sha256(&path)), command(&path, &[]));
    assert!(!permitted.is_pinned() && permitted.program() == path);
}

#[test]
fn no_other_child_inherits_the_copy_of_a_script() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script");
    write_program(&path, "#!/bin/sh\necho ran\n");
    let entry = || AllowlistEntry::new(&path).sha256(sha256(&path));
    let permitted: Vec<_> = (0..20).map(|_| permit_listed(entry(), command(&path, &[]))).collect();
    let expected = inherited_descriptors();
    let scripts = std::thread::spawn(move || {
        for script in permitted {
            assert_eq!(runner().run(script).unwrap().stdout.expose(), b"ran\n");
        }
    });
    for _ in 0..40 {
        let completed = run(plugin(["descriptors"])).unwrap();
        assert_eq!(String::from_utf8_lossy(completed.stdout.expose()), expected);
    }
    scripts.join().unwrap();
}
