//! Query parameters, read as the most lenient server would: names are percent-decoded, and `;` separates too.
// S243

use std::borrow::Cow;

use navicert_go::percent::{Plus, decode_lenient};

/// Names of a parameter that carries a token (RFC 6750).
const TOKEN_PARAMETER: &[u8] = b"access_token";

/// Maximum number of times that a name is decoded; a chain of servers may decode it more than once.
const MAX_DECODE_ROUNDS: usize = 4;

/// The query without parameters that carry a token; `None` if there is none of them. The rest is unchanged.
pub(super) fn without_tokens(query: &str) -> Option<String> {
    let is_token = |part: &str| is_named(name(part), TOKEN_PARAMETER);
    if !query.split(SEPARATORS).any(is_token) {
        return None;
    }
    let mut kept = String::with_capacity(query.len());
    let mut is_last_removed = false;
    for part in query.split_inclusive(SEPARATORS) {
        is_last_removed = is_token(part.trim_end_matches(SEPARATORS));
        if !is_last_removed {
            kept.push_str(part);
        }
    }
    if is_last_removed {
        // The separator before the removed parameter.
        kept.pop();
    }
    Some(kept)
}

/// Whether a parameter is set to anything but `false` or `0`, which is how an API server reads `watch` and `follow`.
pub(super) fn is_enabled(query: &str, parameter: &str) -> bool {
    query.split('&').filter(|part| is_named(name(part), parameter.as_bytes())).any(|part| {
        let value = part.split_once('=').map_or("", |(_, value)| value);
        !matches!(value, "0") && !value.eq_ignore_ascii_case("false")
    })
}

const SEPARATORS: [char; 2] = ['&', ';'];

fn name(part: &str) -> &str {
    part.split_once('=').map_or(part, |(name, _)| name)
}

fn is_named(name: &str, expected: &[u8]) -> bool {
    if name.len() < expected.len() {
        return false;
    }
    let mut decoded = Cow::Borrowed(name.as_bytes());
    for _ in 0..MAX_DECODE_ROUNDS {
        match decode_lenient(&decoded, Plus::Space) {
            Cow::Owned(once) => decoded = Cow::Owned(once),
            Cow::Borrowed(_) => break,
        }
    }
    decoded.trim_ascii().eq_ignore_ascii_case(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    // S243
    #[test]
    fn removes_tokens_in_every_spelling_and_nothing_else() {
        for (query, expected) in [
            ("access_token=s", Some("")),
            ("access%5ftoken=s", Some("")),
            ("access%5Ftoken=s", Some("")),
            ("%61%63cess_token=s&x=1", Some("x=1")),
            ("Access_Token=s", Some("")),
            ("access%255ftoken=s", Some("")),
            ("x=1&access_token", Some("x=1")),
            ("x=1;access_token=s", Some("x=1")),
            ("x=1;access_token=s&y=%2f", Some("x=1;y=%2f")),
            ("x=1&access_token=s&access%5ftoken=t&y=2", Some("x=1&y=2")),
            ("+access_token=s&y", Some("y")),
            ("a&&access_token=s", Some("a&")),
            ("x_access_token=1", None),
            ("access_tokens=1", None),
            ("x=access_token", None),
            ("x=%5f&y=%zz&z=%", None),
            ("", None),
        ] {
            assert_eq!(without_tokens(query).as_deref(), expected, "{query}");
        }
    }

    #[test]
    fn parameter_is_enabled_unless_it_is_false() {
        for (query, expected) in [
            ("watch=true", true),
            ("watch=1", true),
            ("watch", true),
            ("w%61tch=true", true),
            ("limit=1&watch=t", true),
            ("watch=false", false),
            ("watch=0", false),
            ("watch=False", false),
            ("watcher=true", false),
            ("x=watch", false),
            ("", false),
        ] {
            assert_eq!(is_enabled(query, "watch"), expected, "{query}");
        }
    }
}
