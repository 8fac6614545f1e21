//! Parses a reference without a scheme into host, port and path as the kubelet does.
//!
//! The kubelet passes `https://` plus the text to Go's URL parser, so that parser's treatment of unusual input decides
//! which registry gets a credential. This module implements exactly those rules: no lowercasing, no default ports, no
//! path cleaning. Both sides of a match use it; [`crate::pattern`] adds globs, [`crate::reference`] normalizes image names.
// I61–I70

use std::borrow::Cow;
use std::ops::Range;

use navicert_go::url::{self, UrlError, UrlPart};
use thiserror::Error;

/// Host, port and path of a reference.
///
/// Holds bytes rather than text, since percent escapes may decode to invalid UTF-8. Hosts are compared byte by byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// Host and port, escapes decoded, brackets kept.
    authority: Cow<'a, [u8]>,
    host: Range<usize>,
    port: Range<usize>,
    path: Cow<'a, [u8]>,
}

/// Why a text does not parse.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LocationError {
    /// The text contains a control character.
    // I61
    #[error("contains a control character")]
    ControlCharacter,
    /// A percent escape is malformed or not allowed at this position.
    // I62, I66, I67
    #[error("invalid percent escape `{0}`")]
    Escape(String),
    /// The user info before `@` is invalid.
    // I64
    #[error("invalid user info before `@`")]
    UserInfo,
    /// Square brackets do not enclose the whole host.
    // I65
    #[error("`[` is only allowed at the start of an IPv6 address in brackets")]
    Bracket,
    /// The text in brackets is not an IPv6 address.
    // I65
    #[error("invalid IPv6 address `{0}`")]
    Ipv6(String),
    /// The port is not a number.
    // I65
    #[error("invalid port `{0}`: expected digits after the colon")]
    Port(String),
    /// The host contains a character that is not allowed.
    // I66
    #[error("`{0}` is not allowed in a host name")]
    HostCharacter(char),
}

impl From<UrlError> for LocationError {
    fn from(error: UrlError) -> Self {
        match error {
            UrlError::Escape(text) => LocationError::Escape(text),
            UrlError::Ipv6(text) => LocationError::Ipv6(text),
            UrlError::Port(text) => LocationError::Port(text),
            UrlError::HostCharacter(character) => LocationError::HostCharacter(character),
            UrlError::MisplacedBracket | UrlError::MissingBracket => LocationError::Bracket,
            UrlError::ControlCharacter => LocationError::ControlCharacter,
            _ => LocationError::UserInfo,
        }
    }
}

impl<'a> Location<'a> {
    /// Parses a text without a scheme.
    ///
    /// ```
    /// use navicert_image::Location;
    ///
    /// let location = Location::parse(b"registry.example:5000/team/app").unwrap();
    /// assert_eq!(location.host(), b"registry.example");
    /// assert_eq!((location.port(), location.path()), (&b"5000"[..], &b"/team/app"[..]));
    /// ```
    ///
    /// # Errors
    /// [`LocationError`] where the kubelet's parser fails.
    pub fn parse(text: &'a [u8]) -> Result<Self, LocationError> {
        if text.iter().any(|&byte| byte < 0x20 || byte == 0x7F) {
            return Err(LocationError::ControlCharacter);
        }
        let (text, fragment) = cut(text, b'#');
        let (text, _query) = cut(text, b'?');
        let (authority, path) = match text.iter().position(|&byte| byte == b'/') {
            Some(slash) => text.split_at_checked(slash).unwrap_or((text, b"")),
            None => (text, &b""[..]),
        };
        let authority = url::authority("https", authority)?;
        let path = url::unescape(path, UrlPart::Other)?;
        url::unescape(fragment, UrlPart::Other)?;
        let (host, port) = split_port(&authority);
        Ok(Location { authority, host, port, path })
    }

    /// The host with escapes decoded. An IPv6 address keeps its brackets only if no port follows.
    // I69
    pub fn host(&self) -> &[u8] {
        self.authority.get(self.host.clone()).unwrap_or_default()
    }

    /// The port's digits; empty if the port is missing or empty.
    // I69
    pub fn port(&self) -> &[u8] {
        self.authority.get(self.port.clone()).unwrap_or_default()
    }

    /// The path with its leading slash and escapes decoded, or empty.
    // I63, I67
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The host's labels, including empty ones.
    // I70
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &[u8]> + Clone {
        self.host().split(|&byte| byte == b'.')
    }

    /// Host and port as written in front of the path, escapes decoded.
    pub(crate) fn authority(&self) -> &[u8] {
        &self.authority
    }
}

fn cut(text: &[u8], at: u8) -> (&[u8], &[u8]) {
    match text.iter().position(|&byte| byte == at) {
        Some(position) => {
            (text.get(..position).unwrap_or_default(), text.get(position + 1..).unwrap_or_default())
        }
        None => (text, b""),
    }
}

/// Splits off the port like Go's `net.SplitHostPort`; a text that Go rejects is treated as a host without a port.
// I69
fn split_port(authority: &[u8]) -> (Range<usize>, Range<usize>) {
    let end = authority.len();
    let whole = (0..end, end..end);
    let Some(colon) = authority.iter().rposition(|&byte| byte == b':') else { return whole };
    let port = colon + 1..end;
    if authority.first() == Some(&b'[') {
        let close = authority.iter().position(|&byte| byte == b']');
        return if close.is_some_and(|close| close + 1 == colon) { (1..colon - 1, port) } else { whole };
    }
    let before = authority.get(..colon).unwrap_or_default();
    if before.iter().any(|byte| b":]".contains(byte)) { whole } else { (0..colon, port) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<(String, String, String)> {
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let location = Location::parse(text.as_bytes()).ok()?;
        Some((text_of(location.host()), text_of(location.port()), text_of(location.path())))
    }

    #[test]
    fn splits_host_port_and_path_as_the_kubelet_does() {
        // I61, I62, I63, I64, I65, I66, I67, I68, I69
        type Parts<'a> = Option<(&'a str, &'a str, &'a str)>;
        let cases: &[(&str, Parts<'_>)] = &[
            ("a.io", Some(("a.io", "", ""))),
            ("a.io/x/y", Some(("a.io", "", "/x/y"))),
            ("a.io:5000/x", Some(("a.io", "5000", "/x"))),
            ("a.io:/x", Some(("a.io", "", "/x"))),
            ("a.io:05000", Some(("a.io", "05000", ""))),
            ("a.io:99999999", Some(("a.io", "99999999", ""))),
            ("a.io:5x", None),
            ("a.io:*", None),
            ("a:80:80", None),
            ("a.io#f/x", Some(("a.io", "", ""))),
            ("a.io#%zz", None),
            ("a.io?%zz/x", Some(("a.io", "", ""))),
            ("u:p@a.io/x", Some(("a.io", "", "/x"))),
            ("u@v@a.io", Some(("a.io", "", ""))),
            ("u p@a.io", None),
            ("u%zz@a.io", None),
            ("a.io/u@b", Some(("a.io", "", "/u@b"))),
            ("[::1]", Some(("[::1]", "", ""))),
            ("[::1]:", Some(("::1", "", ""))),
            ("[::1]:5000/x", Some(("::1", "5000", "/x"))),
            ("[fe80::1%25en0]:5", Some(("fe80::1%en0", "5", ""))),
            ("[fe80::1%25]", None),
            ("[10.0.0.1]:5", None),
            ("[::1", None),
            ("a[::1]", None),
            ("[::1]x", None),
            ("%C3%BC.io", Some(("ü.io", "", ""))),
            ("%41.io", None),
            ("a%25b.io", Some(("a%b.io", "", ""))),
            ("a b.io", None),
            ("{a}.io", None),
            ("a\\b.io", None),
            ("a.io/%66oo", Some(("a.io", "", "/foo"))),
            ("a.io/%", None),
            ("a.io/%6", None),
            ("a.io/a b/../*", Some(("a.io", "", "/a b/../*"))),
            ("a\n.io", None),
            ("a.io/\u{7f}", None),
            ("", Some(("", "", ""))),
            ("https://a.io", Some(("https", "", "//a.io"))),
        ];
        for (text, expected) in cases {
            let expected =
                expected.map(|(host, port, path)| (host.to_owned(), port.to_owned(), path.to_owned()));
            assert_eq!(parts(text), expected, "{text}");
        }
    }

    #[test]
    fn keeps_empty_labels() {
        // I70
        let location = Location::parse(b".a..io.").unwrap();
        assert_eq!(location.labels().collect::<Vec<_>>(), [&b""[..], b"a", b"", b"io", b""]);
    }

    #[test]
    fn errors_name_the_cause() {
        let reason = |text: &str| Location::parse(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(reason("a.io:80:80"), "invalid port `:80:80`: expected digits after the colon");
        assert_eq!(reason("a b.io"), "` ` is not allowed in a host name");
        assert_eq!(reason("a.io/%zz"), "invalid percent escape `%zz`");
        assert_eq!(reason("[ab].io"), "invalid port `.io`: expected digits after the colon");
    }
}
