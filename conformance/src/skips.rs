//! Which cases are left out, and why: `skips.toml`.

/// The file's text.
const SKIPS: &str = include_str!("../skips.toml");

/// The reason why a case is left out of a section, if it is. A name may end in `*`.
pub fn reason(section: &str, name: &str) -> Option<&'static str> {
    let mut here = false;
    for line in SKIPS.lines() {
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            here = header == section;
            continue;
        }
        let Some((pattern, reason)) = line.split_once(" = ") else { continue };
        let pattern = pattern.trim_matches('"');
        let matches = match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == pattern,
        };
        if here && matches {
            return Some(reason.trim_matches('"'));
        }
    }
    None
}
