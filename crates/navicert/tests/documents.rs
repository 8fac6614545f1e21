//! The documents say what is there: paths they name exist, pages they link to exist.

#![expect(clippy::panic, reason = "a test's helpers fail by panicking")]

use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(workspace().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_file_the_walks_name_exists() {
    let architecture = page("ARCHITECTURE.md");
    let named: Vec<&str> = architecture.split('`').filter(|text| text.starts_with("crates/")).collect();
    assert!(named.len() >= 10, "the walks name only {} files", named.len());
    let gone: Vec<&&str> = named.iter().filter(|path| !workspace().join(path).exists()).collect();
    assert!(gone.is_empty(), "ARCHITECTURE.md names files that are gone: {gone:?}");
}

#[test]
fn every_crate_is_in_the_table() {
    let architecture = page("ARCHITECTURE.md");
    for entry in std::fs::read_dir(workspace().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(architecture.contains(&format!("| `{name}`")), "ARCHITECTURE.md does not list {name}");
    }
}

#[test]
fn every_page_that_is_linked_to_exists() {
    let mut pages: Vec<PathBuf> =
        vec!["README.md".into(), "ARCHITECTURE.md".into(), "CONTRIBUTING.md".into()];
    for entry in std::fs::read_dir(workspace().join("docs")).unwrap() {
        pages.push(Path::new("docs").join(entry.unwrap().file_name()));
    }
    for name in pages.iter().filter(|name| name.extension().is_some_and(|extension| extension == "md")) {
        let text = page(&name.display().to_string());
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let folder = name.parent().unwrap_or(Path::new(""));
            assert!(workspace().join(folder).join(target).exists(), "{} links to {target}", name.display());
        }
    }
}
