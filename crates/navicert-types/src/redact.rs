//! Masks values that may contain a secret without being a [`crate::Secret`], and escapes untrusted text for terminals.

use std::borrow::Cow;

use unicode_general_category::{GeneralCategory, get_general_category};

/// Replaces a masked value, as in `kubectl config view`.
pub const REDACTED: &str = "REDACTED";

/// Replaces masked certificate and key data, as in `kubectl config view`.
pub(crate) const DATA_OMITTED: &str = "DATA+OMITTED";

const MASKED: &str = "<masked>";

/// Masks the user information of a URL, which may contain a password or a token. The URL need not be valid.
///
/// ```
/// use navicert_types::redact;
///
/// assert_eq!(redact::url("http://user:pass@proxy:3128/x@y"), "http://REDACTED@proxy:3128/x@y");
/// assert_eq!(redact::url("https://example.com/a@b"), "https://example.com/a@b");
/// ```
pub fn url(text: &str) -> Cow<'_, str> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, text),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
    // An unescaped slash in a password must not expose the rest of it.
    let (host, tail) = match (authority.rsplit_once('@'), tail.rsplit_once('@')) {
        (Some((_, host)), _) => (host, tail),
        (None, Some((_, host))) if authority.contains(':') && looks_like_a_password(authority) => (host, ""),
        _ => return Cow::Borrowed(text),
    };
    let (scheme, separator) = scheme.map_or(("", ""), |scheme| (scheme, "://"));
    Cow::Owned(format!("{scheme}{separator}{REDACTED}@{host}{tail}"))
}

/// Whether `user:rest` cannot be `host:port`.
fn looks_like_a_password(authority: &str) -> bool {
    authority.rsplit_once(':').is_some_and(|(_, port)| !port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Masks a header value for logs: only the scheme of a credential is kept.
///
/// ```
/// use navicert_types::redact;
///
/// assert_eq!(redact::header("authorization", "Bearer ey.secret"), "Bearer <masked>");
/// assert_eq!(redact::header("Accept", "application/json"), "application/json");
/// ```
// C195
pub fn header<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    if is("Cookie") || is("Set-Cookie") {
        return Cow::Borrowed(MASKED);
    }
    if value.is_empty() || !(is("Authorization") || is("Proxy-Authorization")) {
        return Cow::Borrowed(value);
    }
    let (scheme, credentials) = value.split_once(' ').unwrap_or((value, ""));
    let known = ["bearer", "basic", "negotiate"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    match (known, credentials.is_empty()) {
        (false, _) => Cow::Borrowed(MASKED),
        (true, true) => Cow::Borrowed(scheme),
        (true, false) => Cow::Owned(format!("{scheme} {MASKED}")),
    }
}

/// Escapes untrusted text of several lines for a terminal: every character that is not a letter, mark, number, punctuation,
/// symbol, space, tab or line feed is replaced by its code point, such as `U+001B` for ESC.
// C166
pub fn terminal(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_printable(c) || matches!(c, '\n' | '\t'))
}

/// Escapes untrusted text for one line of a terminal: as [`terminal`], and line feeds and tabs too, so that the text cannot
/// forge lines.
///
/// ```
/// use navicert_types::redact;
///
/// assert_eq!(redact::line("ann\ngroups    admins"), "annU+000Agroups    admins");
/// ```
pub fn line(text: &str) -> Cow<'_, str> {
    escape(text, is_printable)
}

/// Escapes what is left in text that is ready for a terminal. Colours (`ESC [ … m`) are kept.
pub fn styled(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return terminal(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('\u{1b}') {
        let (before, sequence) = rest.split_at_checked(start).unwrap_or((rest, ""));
        shown.push_str(&terminal(before));
        let end = colour_length(sequence);
        let (colour, after) = sequence.split_at_checked(end.unwrap_or(1)).unwrap_or((sequence, ""));
        match end {
            Some(_) => shown.push_str(colour),
            None => shown.push_str(&terminal(colour)),
        }
        rest = after;
    }
    shown.push_str(&terminal(rest));
    Cow::Owned(shown)
}

/// Length of the colour sequence that the text starts with.
fn colour_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !matches!(c, '0'..='9' | ';'))?;
    parameters.get(end..)?.starts_with('m').then_some(end + 3)
}

/// Escapes JSON text for a terminal: characters that [`terminal`] replaces become `\uXXXX`, which is the same JSON.
///
/// ```
/// use navicert_types::redact;
///
/// assert_eq!(redact::json("{\"a\":\"\u{202e}\"}"), r#"{"a":"\u202e"}"#);
/// ```
pub fn json(text: &str) -> Cow<'_, str> {
    use std::fmt::Write as _;
    let is_kept = |c: char| is_printable(c) || matches!(c, '\n' | '\t');
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_kept(c) {
            shown.push(c);
            continue;
        }
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            // Writing to a String cannot fail.
            let _ = write!(shown, "\\u{unit:04x}");
        }
    }
    Cow::Owned(shown)
}

fn escape(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&is_kept) {
        return Cow::Borrowed(text);
    }
    let spell = |c: char| if is_kept(c) { c.to_string() } else { format!("U+{:04X}", u32::from(c)) };
    Cow::Owned(text.chars().map(spell).collect())
}

/// Every general category except the C ones, which contain the bidirectional controls, and the line and paragraph separators.
fn is_printable(c: char) -> bool {
    use GeneralCategory::{
        Control, Format, LineSeparator, ParagraphSeparator, PrivateUse, Surrogate, Unassigned,
    };
    !matches!(
        get_general_category(c),
        Control | Format | PrivateUse | Surrogate | Unassigned | LineSeparator | ParagraphSeparator
    )
}

/// Whether a variable, flag or setting with this name probably contains a secret.
pub fn is_secret_name(name: &str) -> bool {
    const SIGNS: [&str; 9] =
        ["token", "secret", "passw", "passphrase", "credential", "private", "apikey", "api-key", "api_key"];
    const WORDS: [&str; 5] = ["key", "pin", "pwd", "pass", "auth"];
    let name = name.to_ascii_lowercase();
    SIGNS.iter().any(|sign| name.contains(sign))
        || name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| WORDS.contains(&word))
}

/// Masks the values of flags that look secret: `--token x`, `--token=x`.
pub fn arguments<S: AsRef<str>>(arguments: &[S]) -> Vec<Cow<'_, str>> {
    let mut value_is_secret = false;
    let mut shown = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let text = argument.as_ref();
        let follows_secret_flag = std::mem::take(&mut value_is_secret);
        shown.push(match text.split_once('=') {
            _ if follows_secret_flag && !text.starts_with('-') => Cow::Borrowed(REDACTED),
            Some((name, _)) if is_secret_name(name) => Cow::Owned(format!("{name}={REDACTED}")),
            Some(_) => url(text),
            None => {
                value_is_secret = text.starts_with('-') && is_secret_name(text);
                url(text)
            }
        });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_user_information_of_urls() {
        let cases = [
            ("http://u:p@127.0.0.1:9", "http://REDACTED@127.0.0.1:9"),
            ("http://token@h/path?q=a@b#c@d", "http://REDACTED@h/path?q=a@b#c@d"),
            ("http://u:p@ss@h", "http://REDACTED@h"),
            ("http://u:p/w@h", "http://REDACTED@h"),
            ("u:p@proxy:3128", "REDACTED@proxy:3128"),
            ("http://%1", "http://%1"),
            ("https://h:6443/a@b", "https://h:6443/a@b"),
            ("proxy1", "proxy1"),
            ("", ""),
        ];
        for (text, shown) in cases {
            assert_eq!(url(text), shown);
        }
    }

    // C195
    #[test]
    fn masks_header_credentials_except_the_scheme() {
        let cases = [
            ("Authorization", "Bearer abc", "Bearer <masked>"),
            ("AUTHORIZATION", "basic abc", "basic <masked>"),
            ("Authorization", "Negotiate abc", "Negotiate <masked>"),
            ("Authorization", "Bearer", "Bearer"),
            ("Authorization", "abc", "<masked>"),
            ("Authorization", "Digest abc", "<masked>"),
            ("Authorization", "", ""),
            ("Proxy-Authorization", "Basic abc", "Basic <masked>"),
            ("Cookie", "a=b", "<masked>"),
            ("Impersonate-User", "ann", "ann"),
        ];
        for (name, value, shown) in cases {
            assert_eq!(header(name, value), shown, "{name}: {value}");
        }
    }

    // C166, T11
    #[test]
    fn escapes_terminal_control_characters() {
        let cases = [
            ("plain\ttext\r\n\u{B}\u{C}", "plain\ttextU+000D\nU+000BU+000C"),
            ("\u{1B}[31mred\u{7}", "U+001B[31mredU+0007"),
            ("übung 日本 – €", "übung 日本 – €"),
            ("a\u{202E}b\u{200B}c\u{FEFF}", "aU+202EbU+200BcU+FEFF"),
            ("\u{0}\u{9F}\u{E000}\u{10FFFF}", "U+0000U+009FU+E000U+10FFFF"),
            ("e\u{301}\u{2028}\u{2029}\u{A0}😀", "e\u{301}U+2028U+2029\u{A0}😀"),
        ];
        for (text, shown) in cases {
            assert_eq!(terminal(text), shown);
        }
        assert_eq!(line("a\nb\tc\u{85}\u{2066}"), "aU+000AbU+0009cU+0085U+2066");
        assert_eq!(
            styled("\u{1b}[1;31merror:\u{1b}[0m a\u{1b}[2Jb\u{1b}]0;x\u{7}"),
            "\u{1b}[1;31merror:\u{1b}[0m aU+001B[2JbU+001B]0;xU+0007"
        );
    }

    #[test]
    fn escaped_json_has_the_same_value_and_no_controls() {
        let text = "a\u{7f}\u{9b}\u{200e}\u{200f}\u{61c}\u{2028}\u{2029}\u{202a}\u{2069}\u{e0001}é😀";
        let document = serde_json::json!({ "a": text }).to_string();
        let shown = json(&document);
        assert!(shown.chars().all(is_printable), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["a"], text);
    }

    #[test]
    fn recognizes_names_of_secrets() {
        for name in [
            "TOKEN",
            "client-secret",
            "AWS_SECRET_ACCESS_KEY",
            "id-token",
            "PGPASSWORD",
            "--pin",
            "apiKey",
            "AUTH",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in
            ["AWS_PROFILE", "idp-issuer-url", "--region", "monkey", "author", "spinner", "compass", ""]
        {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn masks_only_the_values_of_secret_flags() {
        let given = [
            "get-token",
            "--cluster",
            "c",
            "--secret",
            "s",
            "--password=p",
            "-v",
            "--token",
            "--x",
            "http://u:p@h",
        ];
        let shown = [
            "get-token",
            "--cluster",
            "c",
            "--secret",
            "REDACTED",
            "--password=REDACTED",
            "-v",
            "--token",
            "--x",
            "http://REDACTED@h",
        ];
        assert_eq!(arguments(&given), shown);
    }
}
