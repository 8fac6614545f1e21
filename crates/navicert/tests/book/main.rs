//! The guides in docs/: every page is in the book, every link leads somewhere, every command was run, and what is generated is
//! current.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; a broken page should stop the test"
)]

mod commands;
mod contents;
mod diagrams;
#[path = "../hsm_support/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod hsm_support;
mod links;
mod markdown;
mod quick_starts;
mod recipes;
mod reference;
mod screenshots;
mod topics;
mod versions;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The pages below docs/, relative to the root, in order.
fn pages() -> Vec<String> {
    let mut pages = Vec::new();
    collect("docs", &mut pages);
    pages.retain(|page| page != "docs/SUMMARY.md");
    pages.sort();
    pages
}

fn collect(folder: &str, pages: &mut Vec<String>) {
    for entry in std::fs::read_dir(workspace().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            collect(&path, pages);
        } else if Path::new(&path).extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}
