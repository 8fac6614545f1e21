//! `docs/logs.md` lists exactly the log events that the source has: every tracing call begins with `event = "…"`, every event
//! has a row with its level, and every row an event.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

/// A macro call; its first argument may stand on the next line.
static CALL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\b(?:tracing::)?(error|warn|info|debug|trace)!\(\s*(?:event = "([a-z0-9_]+)")?"#).unwrap()
});
/// `| event | level | …`
static ROW: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^\| `([a-z0-9_]+)` \| (error|warn|info|debug|trace) \|").unwrap());

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The Rust files below `dir`, without those that hold only tests.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            files.extend(sources(&path));
        } else if name.ends_with(".rs") && name != "tests.rs" {
            files.push(path);
        }
    }
    files
}

/// Every tracing call of the crates: file, level, event.
fn calls() -> Vec<(PathBuf, String, Option<String>)> {
    let mut calls = Vec::new();
    for entry in std::fs::read_dir(workspace().join("crates")).unwrap() {
        let source = entry.unwrap().path().join("src");
        // The testkit has no users who read its logs.
        if source.to_string_lossy().contains("navicert-testkit") || !source.is_dir() {
            continue;
        }
        for file in sources(&source) {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for call in CALL.captures_iter(code) {
                let event = call.get(2).map(|event| event.as_str().to_owned());
                calls.push((file.clone(), call.get(1).unwrap().as_str().to_owned(), event));
            }
        }
    }
    calls
}

#[test]
fn every_log_call_begins_with_its_event() {
    let calls = calls();
    assert!(calls.len() > 20, "the search finds the calls: {}", calls.len());
    let unnamed: Vec<_> = calls.iter().filter(|(_, _, event)| event.is_none()).collect();
    assert!(unnamed.is_empty(), "log calls without `event = \"…\"` as the first field: {unnamed:#?}");
}

#[test]
fn docs_list_exactly_the_events_of_the_source() {
    let page = std::fs::read_to_string(workspace().join("docs/logs.md")).unwrap();
    let listed: BTreeSet<(String, String)> = ROW
        .captures_iter(&page)
        .map(|row| (row.get(1).unwrap().as_str().to_owned(), row.get(2).unwrap().as_str().to_owned()))
        .collect();
    let used: BTreeSet<(String, String)> =
        calls().into_iter().filter_map(|(_, level, event)| event.map(|event| (event, level))).collect();
    let missing: Vec<_> = used.difference(&listed).collect();
    let stale: Vec<_> = listed.difference(&used).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "docs/logs.md lacks {missing:?} and lists {stale:?}, which the source does not have"
    );
}
