//! Whether what was printed is what was expected, and if not, how they differ.

use similar::{ChangeTag, TextDiff};

const ANYTHING: &str = "...";

/// A line `...` in `expected` matches any number of lines.
pub(super) fn matches(expected: &[String], printed: &[String]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == ANYTHING => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        Some((first, rest)) => {
            printed.split_first().is_some_and(|(line, behind)| line == first && matches(rest, behind))
        }
    }
}

/// The two texts as one, `-` for what was expected and `+` for what was printed.
pub(super) fn difference(expected: &[String], printed: &[String]) -> String {
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    let printed: Vec<&str> = printed.iter().map(String::as_str).collect();
    let line = |tag, text: &str| match tag {
        ChangeTag::Delete => format!("  - {text}"),
        ChangeTag::Insert => format!("  + {text}"),
        ChangeTag::Equal => format!("    {text}"),
    };
    let diff = TextDiff::from_slices(&expected, &printed);
    let lines: Vec<String> =
        diff.iter_all_changes().map(|change| line(change.tag(), change.value())).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn dots_stand_for_any_number_of_lines_and_nothing_else_does() {
        for (expected, printed, same) in [
            ("", "", true),
            ("", "a", false),
            ("a", "", false),
            ("a b", "a b", true),
            ("a b", "b a", false),
            ("...", "", true),
            ("...", "a b c", true),
            ("a ... c", "a c", true),
            ("a ... c", "a b b c", true),
            ("a ... c", "a b", false),
            ("... b ... d", "a b c b d", true),
            ("a ...", "b a", false),
        ] {
            assert_eq!(matches(&lines(expected), &lines(printed)), same, "`{expected}` against `{printed}`");
        }
    }

    #[test]
    fn a_difference_shows_both_sides_in_place() {
        assert_eq!(difference(&lines("a b c"), &lines("a x c")), "    a\n  - b\n  + x\n    c");
    }
}
