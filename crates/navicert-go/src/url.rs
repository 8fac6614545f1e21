//! URLs as Go's `net/url` parses them, so that navicert accepts what kubectl, kube-apiserver and the kubelet accept.
//!
//! The `url` crate follows the WHATWG rules, which normalize invalid input; this module does not. [`Url`] keeps the parts as
//! they are written. [`authority`] and [`unescape`] are its building blocks, for texts that are only a part of a URL and
//! need not be UTF-8.
//!
//! The registry providers have a parser of their own: it reads addresses of cloud services and redirects, and accepts far
//! less than Go.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;

use crate::percent;

/// Why a text is not a URL. `Display` and `Debug` show no part of the text, which may hold a password.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// A control character.
    #[error("control character in address")]
    ControlCharacter,
    /// Starts with a colon.
    #[error("missing scheme")]
    MissingScheme,
    /// `host:port` without a scheme that does not parse as a scheme either.
    #[error("first path segment contains a colon; add the scheme")]
    ColonInFirstSegment,
    /// A `%` that is not an escape, or an escape that is not allowed at this position.
    #[error("invalid percent escape")]
    Escape(String),
    /// User information with characters that need escaping.
    #[error("invalid user information")]
    UserInfo,
    /// An invalid escape in the user information.
    #[error("invalid percent escape")]
    UserInfoEscape(String),
    /// `[` that is not at the start of the host.
    #[error("invalid host")]
    MisplacedBracket,
    /// `[` without `]`.
    #[error("invalid host")]
    MissingBracket,
    /// The text in brackets is not an IPv6 address.
    #[error("invalid host")]
    Ipv6(String),
    /// The host contains a character that is not allowed.
    #[error("invalid host")]
    HostCharacter(char),
    /// The port is not a number.
    #[error("invalid port")]
    Port(String),
}

impl UrlError {
    /// Go's message, which quotes the invalid part of the text.
    pub fn go_message(&self) -> String {
        match self {
            UrlError::ControlCharacter => "net/url: invalid control character in URL".to_owned(),
            UrlError::MissingScheme => "missing protocol scheme".to_owned(),
            UrlError::ColonInFirstSegment => "first path segment in URL cannot contain colon".to_owned(),
            UrlError::Escape(text) | UrlError::UserInfoEscape(text) => format!("invalid URL escape {text:?}"),
            UrlError::UserInfo => "net/url: invalid userinfo".to_owned(),
            UrlError::MisplacedBracket => "invalid IP-literal".to_owned(),
            UrlError::MissingBracket => "missing ']' in host".to_owned(),
            UrlError::Ipv6(_) => "invalid host".to_owned(),
            UrlError::HostCharacter(c) => format!("invalid character {:?} in host name", c.to_string()),
            UrlError::Port(text) => format!("invalid port {text:?} after host"),
        }
    }
}

impl fmt::Debug for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UrlError({self})")
    }
}

/// A parsed URL; the parts are as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url<'t> {
    /// Lower-case scheme; empty if absent.
    pub scheme: String,
    /// `scheme:rest` without a slash: there is no host, and the path is not checked.
    pub is_opaque: bool,
    /// User information before the `@`, if any.
    pub user_info: Option<&'t str>,
    /// Host and port, empty if the text has no `//`.
    pub host: &'t str,
    /// Path, still escaped.
    pub path: &'t str,
    /// Query without the question mark.
    pub query: Option<&'t str>,
    /// Fragment without the number sign.
    pub fragment: Option<&'t str>,
}

impl<'t> Url<'t> {
    /// Parses a text.
    ///
    /// # Errors
    /// Where Go's `url.Parse` returns one.
    pub fn parse(text: &'t str) -> Result<Self, UrlError> {
        let (rest, fragment) = cut(text, '#');
        let mut url = Self::parse_without_fragment(rest)?;
        check_escapes(fragment.unwrap_or_default())?;
        url.fragment = fragment;
        Ok(url)
    }

    /// The same, but `#` is part of the path, as in server addresses.
    ///
    /// # Errors
    /// Where Go's `url.ParseRequestURI` returns one for a part of the text.
    pub fn parse_without_fragment(text: &'t str) -> Result<Self, UrlError> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err(UrlError::ControlCharacter);
        }
        let (scheme, rest) = split_scheme(text)?;
        let (rest, query) = cut(rest, '?');
        let mut url = Url { scheme: scheme.to_ascii_lowercase(), path: rest, query, ..Url::default() };
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                url.is_opaque = true;
                return Ok(url);
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err(UrlError::ColonInFirstSegment);
            }
        }
        let has_authority = !scheme.is_empty() || !rest.starts_with("///");
        if let Some(after) = rest.strip_prefix("//").filter(|_| has_authority) {
            let (written, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            authority(&url.scheme, written.as_bytes())?;
            (url.user_info, url.host) = match written.rsplit_once('@') {
                Some((user_info, host)) => (Some(user_info), host),
                None => (None, written),
            };
            url.path = path;
        }
        check_escapes(url.path)?;
        Ok(url)
    }
}

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// A path as Go prints it: unchanged if it is a valid encoding, otherwise decoded and escaped again.
pub fn escaped_path(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte);
    let may_occur = |byte: u8| is_plain(byte) || b"!'()*[]%".contains(&byte);
    if path.bytes().all(may_occur) {
        return path.to_owned();
    }
    let mut escaped = String::with_capacity(path.len());
    let decoded = percent::decode_lenient(path.as_bytes(), percent::Plus::Literal);
    percent::encode_into(&mut escaped, &decoded, percent::Plus::Literal, is_plain);
    escaped
}

/// A scheme is a letter followed by letters, digits, `+`, `-`, `.`; anything else before the colon means there is none.
fn split_scheme(text: &str) -> Result<(&str, &str), UrlError> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err(UrlError::MissingScheme),
            b':' => return Ok(text.split_once(':').unwrap_or(("", text))),
            _ => break,
        }
    }
    Ok(("", text))
}

/// Checks user information, host and port: the text between `//` and the path. Returns the host with its port, escapes
/// decoded, brackets kept. Rules for the port depend on the scheme, which is in lower case.
///
/// # Errors
/// Where Go's parser returns one.
pub fn authority<'t>(scheme: &str, text: &'t [u8]) -> Result<Cow<'t, [u8]>, UrlError> {
    let at = text.iter().rposition(|&byte| byte == b'@');
    let host = at.and_then(|at| text.get(at + 1..)).unwrap_or(text);
    let host = host_and_port(scheme, host)?;
    check_user_info(at.and_then(|at| text.get(..at)).unwrap_or_default())?;
    Ok(host)
}

fn check_user_info(text: &[u8]) -> Result<(), UrlError> {
    let is_legal = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(byte);
    if !text.iter().all(is_legal) {
        return Err(UrlError::UserInfo);
    }
    unescape(text, UrlPart::Other).map(drop).map_err(|error| match error {
        UrlError::Escape(text) => UrlError::UserInfoEscape(text),
        other => other,
    })
}

fn host_and_port<'t>(scheme: &str, text: &'t [u8]) -> Result<Cow<'t, [u8]>, UrlError> {
    match text.iter().rposition(|&byte| byte == b'[') {
        Some(0) => ip_literal(text),
        Some(_) => Err(UrlError::MisplacedBracket),
        None => {
            // The first colon: since Go 1.26 `h:80:80` is invalid for http, but other schemes may list several hosts.
            let mut bytes = text.iter();
            let colon = match scheme {
                "http" | "https" => bytes.position(|&byte| byte == b':'),
                _ => bytes.rposition(|&byte| byte == b':'),
            };
            check_port(colon.and_then(|colon| text.get(colon..)).unwrap_or_default())?;
            unescape(text, UrlPart::Host)
        }
    }
}

/// An IPv6 address in brackets with an optional zone, which is written `%25name` and may contain escapes.
fn ip_literal(text: &[u8]) -> Result<Cow<'_, [u8]>, UrlError> {
    let close = text.iter().rposition(|&byte| byte == b']').ok_or(UrlError::MissingBracket)?;
    let port = text.get(close + 1..).unwrap_or_default();
    check_port(port)?;
    let inside = text.get(1..close).unwrap_or_default();
    let zone_at = inside.windows(3).position(|three| three == b"%25").unwrap_or(inside.len());
    let (address, zone) = inside.split_at_checked(zone_at).unwrap_or((inside, b""));
    let (address, zone) = (unescape(address, UrlPart::Host)?, unescape(zone, UrlPart::Zone)?);
    let is_address = str::from_utf8(&address).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok());
    // The decoded zone starts with the percent sign and must have a name after it.
    if !is_address || zone.len() == 1 {
        return Err(UrlError::Ipv6(String::from_utf8_lossy(inside).into_owned()));
    }
    Ok(Cow::Owned([b"[", &*address, &*zone, b"]", port].concat()))
}

/// Empty, or a colon and digits.
fn check_port(text: &[u8]) -> Result<(), UrlError> {
    match text.split_first() {
        None => Ok(()),
        Some((b':', digits)) if digits.iter().all(u8::is_ascii_digit) => Ok(()),
        Some(_) => Err(UrlError::Port(String::from_utf8_lossy(text).into_owned())),
    }
}

fn check_escapes(text: &str) -> Result<(), UrlError> {
    unescape(text.as_bytes(), UrlPart::Other).map(drop)
}

/// A part of a URL: which bytes are allowed in it, unescaped and escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlPart {
    /// Path, fragment, user information: every well-formed escape and every unescaped byte.
    Other,
    /// Host: escapes of bytes from 0x80 up, and `%25`.
    Host,
    /// IPv6 zone: escapes of host bytes, of a space, and `%25`.
    Zone,
}

impl UrlPart {
    fn is_allowed_unescaped(self, byte: u8) -> bool {
        self == UrlPart::Other || is_host_byte(byte)
    }

    fn is_allowed_escaped(self, byte: u8) -> bool {
        match self {
            UrlPart::Other => true,
            UrlPart::Host => byte >= 0x80 || byte == b'%',
            UrlPart::Zone => byte == b'%' || byte == b' ' || is_host_byte(byte) && byte < 0x80,
        }
    }
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
}

/// Decodes the percent escapes of a part; borrows if there are none. The result may be invalid UTF-8.
///
/// # Errors
/// Where Go's parser returns one.
pub fn unescape(text: &[u8], part: UrlPart) -> Result<Cow<'_, [u8]>, UrlError> {
    if let Some(&byte) = text.iter().find(|&&byte| byte != b'%' && !part.is_allowed_unescaped(byte)) {
        return Err(UrlError::HostCharacter(byte.into()));
    }
    if !text.contains(&b'%') {
        return Ok(Cow::Borrowed(text));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'%' {
            decoded.push(first);
            rest = tail;
            continue;
        }
        let byte = percent::escaped_byte(tail).filter(|&byte| part.is_allowed_escaped(byte));
        decoded.push(byte.ok_or_else(|| {
            let shown = rest.get(..3.min(rest.len())).unwrap_or_default();
            UrlError::Escape(String::from_utf8_lossy(shown).into_owned())
        })?);
        rest = tail.get(2..).unwrap_or_default();
    }
    Ok(Cow::Owned(decoded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_urls_into_parts_as_written() {
        let url = Url::parse("HTTPS://u:p@h:1/a%20b?q#f").unwrap();
        assert_eq!(url.scheme, "https");
        assert_eq!(url.user_info, Some("u:p"));
        assert_eq!((url.host, url.path), ("h:1", "/a%20b"));
        assert_eq!((url.query, url.fragment), (Some("q"), Some("f")));
        assert!(Url::parse("https:opaque").unwrap().is_opaque);
    }

    // S23, VV3–VV7
    #[test]
    fn rejects_what_go_rejects() {
        let (character, port) = (UrlError::HostCharacter, |text: &str| UrlError::Port(text.into()));
        let (escape, ipv6) =
            (|text: &str| UrlError::Escape(text.into()), |text: &str| UrlError::Ipv6(text.into()));
        for (text, error) in [
            ("http://%1", escape("%1")),
            ("http://%41", escape("%41")),
            ("https://x%41", escape("%41")),
            ("http://h/%zz", escape("%zz")),
            ("https://x#%", escape("%")),
            ("http://[::1%41]", escape("%41")),
            ("http://[fe80::1%25%5c]", escape("%5c")),
            ("http://[fe80::1%25a b]", character(' ')),
            ("http://a b", character(' ')),
            ("https://ex ample", character(' ')),
            ("http://h:x", port(":x")),
            ("https://x:port", port(":port")),
            ("http://::bad::dev", port("::bad::dev")),
            ("https://:0.1:1", port(":0.1:1")),
            ("https://h:80:80", port(":80:80")),
            ("https://::1/", port("::1")),
            ("http://[::1]x", port("x")),
            (":x", UrlError::MissingScheme),
            ("127.0.0.1:3128", UrlError::ColonInFirstSegment),
            (" https://x", UrlError::ColonInFirstSegment),
            ("http://[::1", UrlError::MissingBracket),
            ("http://[]", ipv6("")),
            ("https://[x]", ipv6("x")),
            ("http://[1.2.3.4]", ipv6("1.2.3.4")),
            ("http://[fe80::1%25]", ipv6("fe80::1%25")),
            ("http://h[::1]", UrlError::MisplacedBracket),
            ("https://[[::1]]", UrlError::MisplacedBracket),
            ("https://issuer.example.c[om", UrlError::MisplacedBracket),
            ("https://a[b]c", UrlError::MisplacedBracket),
            ("ttps://127.0.0.[:1/base", UrlError::MisplacedBracket),
            ("http://h/\u{1}", UrlError::ControlCharacter),
            ("https://x/\u{7f}", UrlError::ControlCharacter),
            ("http://u[@h", UrlError::UserInfo),
            ("https://a b@x", UrlError::UserInfo),
            ("https://u%zz@x", UrlError::UserInfoEscape("%zz".into())),
        ] {
            assert!(Url::parse(text) == Err(error.clone()), "{text}: {:?}", Url::parse(text));
        }
    }

    #[test]
    fn accepts_what_go_accepts() {
        for (text, scheme, host) in [
            ("p1:3128", "p1", ""),
            ("proxy1", "", ""),
            ("socks5://127.0.0.1:1080", "socks5", "127.0.0.1:1080"),
            ("http://[::1]:80", "http", "[::1]:80"),
            ("http://[fe80::1%25eth0]:80", "http", "[fe80::1%25eth0]:80"),
            ("http://[fe80::1%25a%20b]", "http", "[fe80::1%25a%20b]"),
            ("http://h:", "http", "h:"),
            ("http://[::ffff:1.2.3.4]", "http", "[::ffff:1.2.3.4]"),
            ("mongodb://h:1,i:2", "mongodb", "h:1,i:2"),
            ("//h/p", "", "h"),
            ("http://%C3%A4", "http", "%C3%A4"),
            ("https://:p@x", "https", "x"),
            ("https:///p", "https", ""),
            ("https://é", "https", "é"),
            ("https://x]", "https", "x]"),
            ("https://x:99999", "https", "x:99999"),
            ("https://x?%zz", "https", "x"),
            ("https://x/../y#", "https", "x"),
            ("*", "", ""),
            ("", "", ""),
        ] {
            let url = Url::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((url.scheme.as_str(), url.host), (scheme, host), "{text}");
        }
    }

    #[test]
    fn only_the_message_in_go_s_words_shows_the_text() {
        let error = Url::parse("https://ann:se/cret@h").unwrap_err();
        assert_eq!(error.go_message(), "invalid port \":se\" after host");
        assert_eq!(
            (error.to_string(), format!("{error:?}")),
            ("invalid port".into(), "UrlError(invalid port)".into())
        );
    }

    #[test]
    fn escapes_a_path_only_if_it_has_to() {
        for (path, escaped) in [
            ("/a%2fb", "/a%2fb"),
            ("/a b", "/a%20b"),
            ("/a b%2f", "/a%20b/"),
            ("/é", "/%C3%A9"),
            ("/[x]", "/[x]"),
        ] {
            assert_eq!(escaped_path(path), escaped, "{path}");
        }
    }
}
