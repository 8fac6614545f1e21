//! Tests of resolution, with real files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use rustix::fs::CWD;
use tempfile::TempDir;

use super::*;

/// A directory with an executable `plugin`, a `data` file that is not executable, and a directory `folder`.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, mode) in [("plugin", 0o755), ("data", 0o644)] {
        let path = directory.path().join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::create_dir(directory.path().join("folder")).unwrap();
    directory
}

fn search_path(directories: &[&Path]) -> OsString {
    std::env::join_paths(directories).unwrap()
}

/// The way from the working directory to there.
fn relative_to_here(path: &Path) -> PathBuf {
    let up = std::env::current_dir().unwrap().components().skip(1).map(|_| "..").collect::<PathBuf>();
    up.join(path.strip_prefix("/").unwrap())
}

#[test]
fn bare_name_resolves_to_first_executable_in_search_path() {
    // C301
    let (empty, first, second) = (tempfile::tempdir().unwrap(), directory(), directory());
    let path = search_path(&[empty.path(), Path::new("/nowhere"), first.path(), second.path()]);
    assert_eq!(resolve("plugin".as_ref(), Some(&path)).unwrap(), first.path().join("plugin"));
}

#[test]
fn missing_program_is_not_found() {
    // C320
    let directory = directory();
    for path in [None, Some(OsString::new()), Some(search_path(&[directory.path()]))] {
        let error = resolve("absent".as_ref(), path.as_deref()).unwrap_err();
        assert!(matches!(error, ResolveError::NotInPath { .. }) && error.is_not_found(), "{error:?}");
        assert_eq!(error.to_string(), "`absent` was not found in PATH");
    }
}

#[test]
fn rejects_match_relative_to_the_current_directory() {
    // C301, C320: the first hit decides, as the shell would have taken it.
    let (here, elsewhere) = (directory(), directory());
    let relative = relative_to_here(here.path());
    let path = search_path(&[&relative, elsewhere.path()]);
    let error = resolve("plugin".as_ref(), Some(&path)).unwrap_err();
    assert!(matches!(error, ResolveError::InCurrentDirectory { .. }) && !error.is_not_found(), "{error:?}");
    // Not in that relative directory: the search goes on.
    fs::remove_file(here.path().join("plugin")).unwrap();
    assert_eq!(resolve("plugin".as_ref(), Some(&path)).unwrap(), elsewhere.path().join("plugin"));
}

#[test]
fn empty_path_element_is_the_current_directory() {
    let error = ResolveError::InCurrentDirectory { command: "p".into(), directory: PathBuf::new() };
    assert!(error.to_string().contains("PATH contains `.`"), "{error}");
}

#[test]
fn search_skips_files_that_are_not_executable() {
    // C320
    let (first, second) = (directory(), directory());
    let second_data = second.path().join("data");
    let path = search_path(&[first.path(), second.path()]);
    let error = resolve("data".as_ref(), Some(&path)).unwrap_err();
    assert!(
        matches!(&error, ResolveError::NotExecutable { path, .. } if *path == first.path().join("data")),
        "{error:?}"
    );
    fs::set_permissions(&second_data, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(resolve("data".as_ref(), Some(&path)).unwrap(), second_data);
}

#[test]
fn command_with_separator_is_not_searched() {
    // C301, C134
    let directory = directory();
    let path = search_path(&[directory.path()]);
    let absolute = directory.path().join("plugin");
    assert_eq!(resolve(absolute.as_os_str(), None).unwrap(), absolute);
    let found = resolve(relative_to_here(&absolute).as_os_str(), None).unwrap();
    assert!(found.is_absolute() && fs::canonicalize(found).unwrap() == fs::canonicalize(&absolute).unwrap());
    for command in ["./plugin", "folder/../plugin"] {
        let error = resolve(command.as_ref(), Some(&path)).unwrap_err();
        assert!(
            matches!(error, ResolveError::NoSuchFile { .. }) && error.is_not_found(),
            "{command}: {error:?}"
        );
    }
}

#[test]
fn distinguishes_reasons_why_a_file_cannot_run() {
    // C321
    let directory = directory();
    symlink("nowhere", directory.path().join("dangling")).unwrap();
    symlink("loop", directory.path().join("loop")).unwrap();
    rustix::fs::mknodat(CWD, directory.path().join("fifo"), rustix::fs::FileType::Fifo, 0o777.into(), 0)
        .unwrap();
    let outcome = |name: &str| match resolve(directory.path().join(name).as_os_str(), None) {
        Ok(_) => "runs",
        Err(ResolveError::NoSuchFile { .. }) => "no file",
        Err(ResolveError::NotExecutable { .. }) => "not executable",
        Err(_) => "something else",
    };
    for (name, expected) in [
        ("plugin", "runs"),
        ("absent", "no file"),
        ("dangling", "no file"),
        ("plugin/under-a-file", "no file"),
        ("data", "not executable"),
        ("folder", "not executable"),
        ("fifo", "not executable"),
        ("loop", "not executable"),
    ] {
        assert_eq!(outcome(name), expected, "{name}");
    }
}

#[test]
fn cleaning_is_lexical() {
    // C720 compares with it. The same table holds for Go's filepath.Clean.
    for (path, cleaned) in [
        ("", "."),
        (".", "."),
        ("./", "."),
        ("p", "p"),
        ("./p", "p"),
        ("a//b/./c/", "a/b/c"),
        ("a/../b", "b"),
        ("a/..", "."),
        ("../p", "../p"),
        ("../../p", "../../p"),
        ("a/../../p", "../p"),
        ("/..", "/"),
        ("/../p", "/p"),
        ("//usr//bin/", "/usr/bin"),
        ("/a/b/../..", "/"),
    ] {
        assert_eq!(clean(path.as_ref()), cleaned, "{path}");
    }
}

#[test]
fn cleaning_a_command_keeps_its_separator() {
    // C134: `./p` must not become `p`, which would be searched for in PATH.
    for (command, cleaned) in
        [("p", "p"), ("./p", "./p"), ("a/../p", "./p"), ("a//p", "a/p"), ("../p", "../p"), ("/b/p", "/b/p")]
    {
        assert_eq!(clean_command(command.as_ref()), cleaned, "{command}");
    }
}
