//! What every published crate needs: metadata, a README that opens with an example and is compiled, versions that agree.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// Crates without a stability promise. Their users take exactly their own version.
const INTERNAL: [&str; 5] =
    ["navicert-go", "navicert-io", "navicert-plugin", "navicert-tls", "navicert-types"];

/// The categories that crates use, out of those that crates.io knows: it drops any other without an error.
const CATEGORIES: [&str; 14] = [
    "api-bindings",
    "asynchronous",
    "authentication",
    "command-line-utilities",
    "compilers",
    "cryptography",
    "encoding",
    "hardware-support",
    "network-programming",
    "os::unix-apis",
    "parser-implementations",
    "web-programming",
    "web-programming::http-client",
    "web-programming::http-server",
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of a section of a manifest.
fn section<'m>(manifest: &'m str, name: &str) -> Vec<&'m str> {
    let header = format!("[{name}]");
    let lines = manifest.lines().skip_while(|line| *line != header).skip(1);
    lines.take_while(|line| !line.starts_with('[')).collect()
}

/// A value of a section: the text between `key = ` and the end of the line.
fn value<'m>(manifest: &'m str, in_section: &str, key: &str) -> Option<&'m str> {
    section(manifest, in_section).into_iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))
}

fn strings(list: &str) -> Vec<&str> {
    list.split('"').skip(1).step_by(2).collect()
}

struct PublishedCrate {
    name: String,
    directory: PathBuf,
    manifest: String,
    readme: String,
}

fn published() -> Vec<PublishedCrate> {
    let entries = fs::read_dir(workspace().join("crates")).unwrap();
    let mut crates: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter_map(|directory| {
            let manifest = read(&directory.join("Cargo.toml"));
            let name = directory.file_name().unwrap().to_str().unwrap().to_owned();
            let is_published = value(&manifest, "package", "publish") != Some("false");
            is_published.then(|| {
                let readme = read(&directory.join("README.md"));
                PublishedCrate { name, directory, manifest, readme }
            })
        })
        .collect();
    crates.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(crates.len() >= 15, "{} published crates", crates.len());
    crates
}

fn root_manifest() -> String {
    read(&workspace().join("Cargo.toml"))
}

#[test]
fn every_published_crate_has_complete_metadata() {
    for PublishedCrate { name, directory, manifest, .. } in published() {
        let string = |key: &str| {
            let found = value(&manifest, "package", key).unwrap_or_else(|| panic!("{name} has no {key}"));
            found.trim_matches('"').to_owned()
        };
        let description = string("description");
        assert!(
            (20..=200).contains(&description.len()) && !description.ends_with('.'),
            "{name}: {description}"
        );
        assert_eq!(string("readme"), "README.md", "{name}");
        let (keywords, categories) = (string("keywords"), string("categories"));
        let keywords = strings(&keywords);
        assert!((1..=5).contains(&keywords.len()), "{name}: {keywords:?}");
        for keyword in keywords {
            let is_plain = keyword.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_+".contains(&byte));
            assert!(is_plain && (1..=20).contains(&keyword.len()), "{name}: invalid keyword `{keyword}`");
        }
        let categories = strings(&categories);
        assert!((1..=5).contains(&categories.len()), "{name}: {categories:?}");
        for category in categories {
            assert!(CATEGORIES.contains(&category), "{name}: unknown category `{category}`");
        }
        for key in ["version", "edition", "rust-version", "license", "repository", "include"] {
            let inherited = format!("{key}.workspace = true");
            assert!(
                section(&manifest, "package").contains(&inherited.as_str()),
                "{name} lacks `{inherited}`"
            );
        }
        assert_eq!(value(&manifest, "package.metadata.docs.rs", "all-features"), Some("true"), "{name}");
        assert_eq!(
            fs::canonicalize(directory.join("LICENSE")).unwrap(),
            fs::canonicalize(workspace().join("LICENSE")).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn feature_badges_are_switched_on_for_docs_rs() {
    for PublishedCrate { name, directory, manifest, .. } in published() {
        let root = directory.join("src/lib.rs");
        let has_badges = root.exists() && read(&root).contains("#![cfg_attr(docsrs, feature(doc_cfg))]");
        let arguments = value(&manifest, "package.metadata.docs.rs", "rustdoc-args");
        let expected = has_badges.then_some(r#"["--cfg", "docsrs"]"#);
        assert_eq!(arguments, expected, "{name}");
    }
}

#[test]
fn test_support_is_not_published() {
    for directory in ["bench", "conformance", "fuzz", "crates/navicert-testkit"] {
        let manifest = read(&workspace().join(directory).join("Cargo.toml"));
        assert_eq!(value(&manifest, "package", "publish"), Some("false"), "{directory}");
    }
    // Without a version it is left out of packages, where it is a development dependency.
    let manifest = root_manifest();
    let testkit = value(&manifest, "workspace.dependencies", "navicert-testkit").unwrap();
    assert!(!testkit.contains("version"), "{testkit}");
}

#[test]
fn every_readme_opens_with_an_example_and_is_the_front_page() {
    for PublishedCrate { name, directory, readme, .. } in published() {
        assert!(readme.starts_with(&format!("# {name}\n")), "{name}");
        let (before, after) = readme.split_once("\n```").unwrap_or_else(|| panic!("{name} has no example"));
        assert!(!before.contains("\n#") && before.lines().count() <= 5, "{name}: text before the example");
        let (library, program) = (directory.join("src/lib.rs"), directory.join("src/main.rs"));
        let is_library = library.exists();
        // Examples in Rust are compiled with the documentation; those of the program are run by tests/documents.rs.
        let language = if is_library { "rust" } else { "console" };
        assert!(after.starts_with(language), "{name}");
        for block in readme.split("\n```").skip(1).step_by(2) {
            let is_skipped = block.lines().next().unwrap_or_default().contains("ignore");
            assert!(!is_skipped, "{name}: an example is not compiled");
        }
        let root = read(if is_library { &library } else { &program });
        assert!(root.starts_with("#![doc = include_str!(\"../README.md\")]\n"), "{name}");
    }
}

#[test]
fn every_readme_says_what_it_promises() {
    let manifest = root_manifest();
    let rust = value(&manifest, "workspace.package", "rust-version").unwrap().trim_matches('"');
    for PublishedCrate { name, readme, .. } in published() {
        assert!(readme.contains(&format!("Needs Rust {rust} or newer.")), "{name}");
        let is_internal = INTERNAL.contains(&name.as_str());
        if is_internal {
            assert!(
                readme.contains("internal to navicert") && readme.contains("no stability promise"),
                "{name}"
            );
        }
    }
}

#[test]
fn versions_of_the_workspace_agree() {
    let manifest = root_manifest();
    let version = value(&manifest, "workspace.package", "version").unwrap().trim_matches('"');
    for line in section(&manifest, "workspace.dependencies") {
        let Some((name, rest)) = line.split_once(" = ").filter(|(name, _)| name.starts_with("navicert"))
        else {
            continue;
        };
        if name != "navicert-testkit" {
            let exact = if INTERNAL.contains(&name) { "=" } else { "" };
            assert!(rest.contains(&format!("version = \"{exact}{version}\", path")), "{line}");
        }
    }
}

#[test]
fn minimum_rust_version_is_the_toolchain() {
    let manifest = root_manifest();
    let rust = value(&manifest, "workspace.package", "rust-version").unwrap().trim_matches('"');
    let toolchain = read(&workspace().join("rust-toolchain.toml"));
    let channel = value(&toolchain, "toolchain", "channel").unwrap().trim_matches('"');
    // Every build and test is then one with the oldest compiler that the crates promise to support.
    assert_eq!(channel, format!("{rust}.0"));
}
