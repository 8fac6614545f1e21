//! Where the vectors are.

use std::path::PathBuf;

/// The folder with the vectors; `None` (with a line saying so) if it is not there and nobody asked for it.
///
/// # Panics
/// If `NAVICERT_SHARED` is set and names no folder: somebody wanted the vectors to be run.
pub fn folder() -> Option<PathBuf> {
    navicert_testkit::shared::root().map(|shared| shared.join("vectors"))
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
