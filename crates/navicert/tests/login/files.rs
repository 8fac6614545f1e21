//! Cache folders that are full or read-only, and files in them that are not usable.

use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::process::Command;

use navicert_testkit::report;

use super::{Setup, output, texts, token};

/// Runs commands in a mount namespace of their own, in which the cache folder is a small file system. `None` if that is not permitted.
fn with_small_disk(setup: &Setup, script: &str) -> Option<(Option<i32>, String, String)> {
    let mut permitted = Command::new("unshare");
    let mount = "mount -t tmpfs -o size=64k,mode=700 tmpfs \"$0\"";
    std::fs::create_dir_all(setup.cache()).unwrap();
    permitted.args(["-rm", "sh", "-c", mount]).arg(setup.cache());
    if !permitted.output().is_ok_and(|ended| ended.status.success()) {
        report::skipped("login on a full disk", "needs unshare and mount");
        return None;
    }
    let mut command = Command::new("unshare");
    let script = format!("set -e; {mount}; cd \"$0\"; {script}");
    command
        .args(["-rm", "sh", "-c", &script])
        .arg(setup.cache())
        .arg(env!("CARGO_BIN_EXE_navicert"))
        .arg("login");
    command.args(setup.selection());
    command.arg(format!("--password-file={}", setup.dir.path().join("password").display()));
    command.env("XDG_RUNTIME_DIR", setup.dir.path());
    Some(texts(&command.output().unwrap()))
}

/// The lines of both streams that the script printed: tokens, and what it says itself.
fn credentials(stdout: &str) -> Vec<String> {
    stdout.lines().filter(|line| line.contains("ExecCredential")).map(token).collect()
}

const FILL: &str = "dd if=/dev/zero of=fill bs=1k 2>/dev/null || true";

// L405, L834, L1229: LT6 of the specification.
#[test]
fn credential_is_handed_over_from_a_full_disk_and_the_old_session_stays_whole() {
    let setup = Setup::new();
    let script = format!(
        "\"$@\" >/dev/null 2>&1; ls *.json | grep -v provider >name; sum=$(cksum <$(cat name)); {FILL}
         \"$@\" --force-refresh
         test \"$sum\" = \"$(cksum <$(cat name))\" && echo the same; ls -A | grep -c '^\\.' || true
         rm fill; \"$@\" --force-refresh 2>&1; test \"$sum\" != \"$(cksum <$(cat name))\" && echo kept"
    );
    let Some((code, stdout, stderr)) = with_small_disk(&setup, &script) else { return };
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(credentials(&stdout).len(), 2, "{stdout}{stderr}");
    assert_eq!(stderr.matches("cannot keep the session").count(), 1, "{stderr}");
    assert!(
        stdout.contains("the same\n0\n"),
        "the old entry is whole, and no temporary file is left: {stdout}"
    );
}

// L405, L834: LT6 of the specification.
#[test]
fn credential_is_handed_over_from_a_folder_that_is_read_only() {
    for has_session in [true, false] {
        let setup = Setup::new();
        let first = if has_session { "\"$@\" >/dev/null 2>&1;" } else { "" };
        let script = format!("{first} cd /; mount -o remount,bind,ro \"$0\"; \"$@\" --force-refresh");
        let Some((code, stdout, stderr)) = with_small_disk(&setup, &script) else { return };
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        assert_eq!(credentials(&stdout).len(), 1, "{stdout}");
        assert!(stderr.contains("cannot keep the session"), "{stderr}");
    }
}

/// Puts a file where the session was.
type PutFile<'p> = &'p dyn Fn(&Path);

// L404, L1314: LT6 of the specification.
#[test]
fn files_that_are_not_usable_are_replaced_by_a_login() {
    let setup = Setup::new();
    assert_eq!(output(setup.login()).0, Some(0));
    let entry = setup.entry_path();
    let good = std::fs::read(&entry).unwrap();
    let elsewhere = setup.dir.path().join("elsewhere.json");
    std::fs::write(&elsewhere, &good).unwrap();
    let half = good[..good.len() / 2].to_vec();
    let put: [(&str, PutFile<'_>); 5] = [
        ("broken", &|path| std::fs::write(path, "{\"apiVersion\":").unwrap()),
        ("cut", &|path| std::fs::write(path, &half).unwrap()),
        ("linked", &|path| symlink(&elsewhere, path).unwrap()),
        ("a FIFO", &|path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success())),
        ("of another user", &|path| {
            std::fs::write(path, &good).unwrap();
            if std::os::unix::fs::chown(path, Some(65534), None).is_err() {
                report::skipped("files of another user", "needs root");
                std::fs::write(path, "").unwrap();
            }
        }),
    ];
    for (number, (name, put)) in put.into_iter().enumerate() {
        std::fs::remove_file(&entry).unwrap();
        put(&entry);
        let (code, stdout, stderr) = output(setup.login());
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{name}");
        assert_eq!(setup.provider.token_requests(), number + 2, "{name}: the file is not used");
        let found = std::fs::symlink_metadata(&entry).unwrap();
        assert!(found.is_file() && found.mode() & 0o777 == 0o600, "{name}");
        assert_eq!(token(&stdout), setup.entry()["idToken"], "{name}: and replaced");
        assert_eq!(std::fs::read(&elsewhere).unwrap(), good, "{name}");
    }
}
