//! Recognizes texts that are sent instead of a token: a whole header, an encoded token, another kind of token.

use base64::Engine as _;
use navicert_go::base64::{RAW_STANDARD, RAW_URL};

/// What a text is instead of a token, and how to get the token.
pub(super) struct Disguise {
    pub(super) hint: &'static str,
    pub(super) remedy: &'static str,
}

/// What a text is, if it is no token in compact form.
pub(super) fn recognize(text: &str) -> Option<Disguise> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    if lower.starts_with("authorization:") {
        return Some(Disguise {
            hint: "it is a whole Authorization header",
            remedy: "send only what follows the word `Bearer`",
        });
    }
    if lower.starts_with("bearer ") {
        return Some(Disguise {
            hint: "it starts with the word `Bearer`, which belongs to the Authorization header, not to the token",
            remedy: "remove `Bearer ` from the start of the token",
        });
    }
    if is_encoded_token(text) {
        return Some(Disguise {
            hint: "it is a token encoded as base64 once more, as in the `data` of a Secret",
            remedy: "decode it first, for example with `base64 -d`",
        });
    }
    let opaque = OPAQUE_PREFIXES.iter().find(|(prefix, _)| text.starts_with(prefix));
    opaque.map(|(_, hint)| Disguise {
        hint,
        remedy: "send the ID token: the client has to request the scope `openid`",
    })
}

/// How tokens that are no JWTs begin.
const OPAQUE_PREFIXES: [(&str, &str); 4] = [
    ("ya29.", "it is an access token of Google, which is no JWT"),
    ("1//", "it is a refresh token of Google, which is no JWT"),
    ("gho_", "it is an access token of GitHub, which is no JWT"),
    ("glpat-", "it is an access token of GitLab, which is no JWT"),
];

/// Whether the text is base64 of a token in compact form. Line breaks are ignored, as `base64` writes them.
fn is_encoded_token(text: &str) -> bool {
    let text: String = text.split_ascii_whitespace().collect();
    [RAW_STANDARD, RAW_URL].iter().any(|engine| {
        let decoded = engine.decode(text.trim_end_matches('=')).unwrap_or_default();
        decoded.starts_with(b"eyJ") && decoded.iter().filter(|byte| **byte == b'.').count() == 2
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwczovL2kifQ.c2lnbmF0dXJl";

    #[test]
    fn recognizes_what_is_sent_instead_of_a_token() {
        let encoded = base64::engine::general_purpose::STANDARD.encode(TOKEN);
        let (start, end) = encoded.split_at(40);
        for (text, expected) in [
            (format!("Bearer {TOKEN}"), "starts with the word `Bearer`"),
            (format!("bearer {TOKEN}"), "starts with the word `Bearer`"),
            (format!("Authorization: Bearer {TOKEN}"), "a whole Authorization header"),
            (encoded.clone(), "encoded as base64 once more"),
            (format!("{start}\n{end}\n"), "encoded as base64 once more"),
            (encoded.trim_end_matches('=').to_owned(), "encoded as base64 once more"),
            ("ya29.a0AfB_byC".to_owned(), "access token of Google"),
        ] {
            let found = recognize(&text).map(|found| found.hint).unwrap_or_default();
            assert!(found.contains(expected), "{text}: {found}");
        }
        for other in [TOKEN, "", "opaque", "eyJhbGciOiJSUzI1NiJ9", "a.b.c"] {
            assert!(recognize(other).is_none(), "{other}");
        }
    }
}
