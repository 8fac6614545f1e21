//! Turns what differs from run to run into `[PLACEHOLDERS]`.

use regex::{NoExpand, Regex};

/// Filters, applied in the order they were added.
#[derive(Clone, Debug, Default)]
pub(super) struct Filters(Vec<(Regex, String)>);

impl Filters {
    /// Ports on loopback and moments in time.
    pub(super) fn usual() -> Self {
        let mut filters = Filters::default();
        filters.add(r"(127\.0\.0\.1|localhost|\[::1\]):\d{4,5}\b", "$1:[PORT]");
        filters.add(r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})?", "[TIME]");
        filters
    }

    /// `$1` in the replacement stands for a group of the pattern.
    pub(super) fn add(&mut self, pattern: &str, replacement: &str) {
        let regex = Regex::new(pattern).unwrap_or_else(|error| panic!("`{pattern}` is no filter: {error}"));
        self.0.push((regex, replacement.to_owned()));
    }

    pub(super) fn apply(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (regex, replacement)| {
            regex.replace_all(&text, replacement.as_str()).into_owned()
        })
    }
}

/// Replaces a text as it stands.
pub(super) fn literal(text: &str, what: &str, placeholder: &str) -> String {
    let regex = Regex::new(&regex::escape(what)).expect("an escaped text is a pattern");
    regex.replace_all(text, NoExpand(placeholder)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_times_become_placeholders_and_look_alikes_stay() {
        let filters = Filters::usual();
        for (text, filtered) in [
            ("https://127.0.0.1:43210/x", "https://127.0.0.1:[PORT]/x"),
            ("[::1]:8080 localhost:65535", "[::1]:[PORT] localhost:[PORT]"),
            ("https://127.0.0.1:1 and 10.0.0.1:43210", "https://127.0.0.1:1 and 10.0.0.1:43210"),
            ("at 2026-01-02T03:04:05.678Z, or 2026-01-02 03:04:05", "at [TIME], or [TIME]"),
            ("2026-01-02", "2026-01-02"),
        ] {
            assert_eq!(filters.apply(text), filtered);
        }
    }
}
