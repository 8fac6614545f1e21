//! Where the vectors are.

use std::path::PathBuf;

/// The folder with the vectors; `None` (with a line saying so) if it is not there and nobody asked for it.
///
/// # Panics
///
/// If `NAVICERT_SHARED` is set and names no folder: somebody wanted the vectors to be run.
#[expect(
    clippy::panic,
    clippy::print_stderr,
    reason = "a test helper that reports to the person running tests"
)]
pub fn folder() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "tests have no binary that could pass the variable down")]
    let named = std::env::var_os("NAVICERT_SHARED");
    let path = match &named {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
    };
    if path.join("vectors").is_dir() {
        return Some(path.join("vectors"));
    }
    if named.is_some() {
        panic!("NAVICERT_SHARED names `{}`, which has no folder `vectors`", path.display());
    }
    eprintln!("no vectors at {}; nothing to compare", path.display());
    None
}

/// A JSON file below the folder.
pub fn json(folder: &std::path::Path, name: &str) -> Option<serde_json::Value> {
    let text = std::fs::read_to_string(folder.join(name)).ok()?;
    serde_json::from_str(&text).ok()
}

/// The lines of a JSONL file below the folder.
pub fn lines(folder: &std::path::Path, name: &str) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
