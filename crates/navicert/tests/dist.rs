//! `make dist`: what the archive holds, and that the same programs give the same bytes in another directory, under other settings and
//! with other file times. Scripts stand in for the programs, so that nothing is built or compressed that takes long.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests; a broken set-up should stop the test")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use navicert_testkit::Program;
use navicert_testkit::cli::program::Outcome;

const ARCHIVE: &str = "navicert-1.2.3-x86_64-unknown-linux-gnu";

/// Programs beside `navicert` whose content is their name.
const OTHERS: [&str; 6] = [
    "acr-credential-provider",
    "auth-provider-gcp",
    "docker-credential-navicert",
    "ecr-credential-provider",
    "navicert-image-provider",
    "navicert-signer-pkcs11",
];

const NAVICERT: &str = r#"#!/bin/sh
case "$1" in
  version) echo '{ "version": "1.2.3", "commit": "0123456789ab", "target": "x86_64-unknown-linux-gnu", "features": [] }' ;;
  man) echo page >"$3/navicert.1"; echo page >"$3/navicert-doctor.1" ;;
  completions) echo "$2" ;;
esac
"#;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Built programs with the given modes and modification time.
fn built(dir: &Path, mode: u32, modified: u64) -> PathBuf {
    let built = dir.join("built");
    fs::create_dir_all(&built).unwrap();
    let time = UNIX_EPOCH + Duration::from_secs(modified);
    for (name, content) in OTHERS.iter().map(|name| (*name, *name)).chain([("navicert", NAVICERT)]) {
        fs::write(built.join(name), content).unwrap();
        fs::set_permissions(built.join(name), fs::Permissions::from_mode(mode)).unwrap();
        fs::File::open(built.join(name)).unwrap().set_modified(time).unwrap();
    }
    built
}

/// `make dist` with the programs of `built`, into `dir`.
fn dist(built: &Path, dir: &Path, variables: &[(&str, &str)]) -> Outcome {
    let mut make = Program::new("make")
        .arguments(["--no-print-directory", "dist"])
        .directory(&workspace())
        .variable("NAVICERT_INSTALL_FROM", built)
        .variable("NAVICERT_DIST", dir.join("dist"))
        .variable("SOURCE_DATE_EPOCH", "1700000000")
        .variable("MAKEFLAGS", "")
        .merged();
    for (name, value) in variables {
        make = make.variable(name, value);
    }
    make.run().unwrap()
}

fn succeed(outcome: &Outcome) -> String {
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert_eq!(outcome.code(), Some(0), "{text}");
    text
}

#[test]
fn archive_has_the_same_bytes_wherever_it_is_packed() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let archive = |dir: &Path| fs::read(dir.join("dist").join(format!("{ARCHIVE}.tar.gz"))).unwrap();
    let told = succeed(&dist(&built(one.path(), 0o755, 1_000_000_000), one.path(), &[]));
    assert!(told.contains("built from 0123456789ab, not from HEAD"), "{told}");
    let deeper = other.path().join("a directory/below");
    let settings = [("TZ", "Asia/Tokyo"), ("LC_ALL", "C.UTF-8"), ("GZIP", "-1"), ("TAR_OPTIONS", "")];
    succeed(&dist(&built(&deeper, 0o700, 1_500_000_000), &deeper, &settings));
    assert!(archive(one.path()) == archive(&deeper), "the archives differ");
}

#[test]
fn archive_holds_programs_licences_and_their_checksums() {
    let dir = tempfile::tempdir().unwrap();
    succeed(&dist(&built(dir.path(), 0o755, 1_000_000_000), dir.path(), &[]));
    let packed = dir.path().join("dist");
    let list = Program::new("tar")
        .arguments(["--list", "--verbose", "--numeric-owner", "--full-time", "--file"])
        .arguments([packed.join(format!("{ARCHIVE}.tar.gz"))])
        .variable("TZ", "UTC")
        .run()
        .unwrap();
    let list = succeed(&list);
    for line in list.lines() {
        assert!(line.contains(" 0/0 ") && line.contains(" 2023-11-14 22:13:20 "), "{line}");
    }
    let names: Vec<&str> =
        list.lines().filter_map(|line| line.split_once(&format!("{ARCHIVE}/"))).map(|pair| pair.1).collect();
    for name in [
        "bin/kubectl-navicert -> navicert",
        "bin/kubectl_complete-navicert",
        "share/man/man1/navicert-doctor.1",
    ] {
        assert!(names.contains(&name), "{name} is missing: {list}");
    }
    for name in OTHERS {
        assert!(names.contains(&format!("bin/{name}").as_str()), "{name} is missing: {list}");
    }

    // Unpacked over a prefix, as docs/install.md shows it.
    let prefix = dir.path().join("prefix");
    fs::create_dir(&prefix).unwrap();
    let unpack = Program::new("tar")
        .arguments(["--extract", "--strip-components=1", "--file"])
        .arguments([packed.join(format!("{ARCHIVE}.tar.gz"))])
        .directory(&prefix)
        .merged();
    succeed(&unpack.run().unwrap());
    let verify = |directory: &Path, sums: &str| {
        let program = Program::new("sha256sum").arguments(["--check", "--quiet", sums]).directory(directory);
        program.merged().run().unwrap()
    };
    succeed(&verify(&prefix, "share/doc/navicert/SHA256SUMS"));
    succeed(&verify(&packed, &format!("{ARCHIVE}.tar.gz.sha256")));
    fs::write(prefix.join("bin/navicert"), "other").unwrap();
    assert_eq!(
        verify(&prefix, "share/doc/navicert/SHA256SUMS").code(),
        Some(1),
        "a changed program is noticed"
    );

    let licences = fs::read_to_string(prefix.join("share/doc/navicert/THIRD-PARTY")).unwrap();
    for text in
        ["\nrustls ", "\naws-lc-sys ", ": aws-lc/LICENSE\n", "\ntokio ", "Permission is hereby granted"]
    {
        assert!(licences.contains(text), "{text} is missing");
    }
    assert!(!licences.contains("\nnavicert-"), "crates of the workspace have LICENSE");
    assert!(!licences.contains("\nproptest "), "crates for tests are not shipped");
}

#[test]
fn release_files_are_listed_for_one_signature() {
    let dir = tempfile::tempdir().unwrap();
    succeed(&dist(&built(dir.path(), 0o755, 1_000_000_000), dir.path(), &[]));
    let packed = dir.path().join("dist");
    let sums = fs::read_to_string(packed.join("SHA256SUMS")).unwrap();
    let listed: Vec<&str> = sums.lines().filter_map(|line| line.get(66..)).collect();
    let files = ["tar.gz", "cdx.json", "provenance.json"].map(|kind| format!("{ARCHIVE}.{kind}"));
    assert_eq!(listed, files);

    // The statement is about the other two files, and about the commit that the program names.
    let statement = fs::read_to_string(packed.join(&files[2])).unwrap();
    for line in sums.lines().take(2) {
        let (sum, name) = line.split_once("  ").unwrap();
        let subject = format!("{{\"name\": \"{name}\", \"digest\": {{\"sha256\": \"{sum}\"}}}}");
        assert!(statement.contains(&subject), "{subject} is missing: {statement}");
    }
    for text in [
        "https://in-toto.io/Statement/v1",
        "https://slsa.dev/provenance/v1",
        "\"gitCommit\": \"0123456789ab\"",
    ] {
        assert!(statement.contains(text), "{text} is missing: {statement}");
    }
}

/// `cargo binstall` fills in these templates: they have to name the archive, and the program in it.
#[test]
fn binstall_metadata_names_the_archive() {
    let manifest = fs::read_to_string(workspace().join("crates/navicert/Cargo.toml")).unwrap();
    let section = manifest.split("[package.metadata.binstall]\n").nth(1).unwrap();
    let template = |name: &str| {
        let line =
            section.lines().take_while(|line| !line.starts_with('[')).find(|line| line.starts_with(name));
        let (_, value) = line.unwrap().split_once(" = ").unwrap();
        [
            ("{ version }", "1.2.3"),
            ("{ target }", "x86_64-unknown-linux-gnu"),
            ("{ archive-suffix }", ".tar.gz"),
            ("{ bin }", "navicert"),
            ("{ binary-ext }", ""),
        ]
        .iter()
        .fold(value.trim_matches('"').to_owned(), |text, (from, to)| text.replace(from, to))
    };
    assert_eq!(template("pkg-url"), format!("{{ repo }}/releases/download/v1.2.3/{ARCHIVE}.tar.gz"));
    assert_eq!(template("bin-dir"), format!("{ARCHIVE}/bin/navicert"));
    assert_eq!(template("pkg-fmt"), "tgz");
}

#[test]
fn missing_programs_are_reported_with_one_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let outcome = dist(&empty, dir.path(), &[]);
    let told = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert_ne!(outcome.code(), Some(0), "{told}");
    assert!(told.starts_with("dist: missing ") && told.contains("run `make release` first"), "{told}");
}
