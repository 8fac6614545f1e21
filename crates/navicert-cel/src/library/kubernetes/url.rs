//! `kubernetes.URL`: URLs as parsed by Go's `net/url`, either absolute or with an absolute path.
//!
//! As upstream, a text must be valid both as a request target, where `#` has no meaning, and as a URL, whose parts
//! are kept. The WHATWG rules of browsers (lower-case hosts, dot segments) do not apply.

use std::collections::HashMap;
use std::fmt;

mod escape;
mod parse;

use escape::Mode;

/// A parsed URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    /// The part after the scheme of a URL such as `mailto:name`, which has no host and no path.
    opaque: String,
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    host: Vec<u8>,
    /// The path as written.
    raw_path: String,
    /// `http:/path`: a scheme and a path without `//` and host.
    omit_host: bool,
    /// The text ends in `?` without a query.
    force_query: bool,
    raw_query: String,
    fragment: String,
}

/// An invalid URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("URL parse error during conversion from string: parse {}: {fault}", Quoted(text))]
pub(crate) struct UrlError {
    /// The input.
    pub text: String,
    /// The cause.
    pub fault: UrlFault,
}

/// Why a URL is invalid, worded as in Go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlFault {
    /// The text is empty.
    #[error("empty url")]
    Empty,
    /// The text is neither absolute nor an absolute path.
    #[error("invalid URI for request")]
    Relative,
    /// `:a`
    #[error("missing protocol scheme")]
    MissingScheme,
    /// `a:b/c` without a scheme
    #[error("first path segment in URL cannot contain colon")]
    ColonInFirstSegment,
    /// A control character.
    #[error("net/url: invalid control character in URL")]
    Control,
    /// `%zz`
    #[error("invalid URL escape {0:?}")]
    Escape(String),
    /// A character that is invalid in a host.
    #[error("invalid character {0:?} in host name")]
    HostCharacter(String),
    /// `[::1`
    #[error("missing ']' in host")]
    MissingBracket,
    /// Brackets that do not enclose the whole host or do not enclose an IPv6 address.
    #[error("invalid IP-literal")]
    IpLiteral,
    /// `:abc`
    #[error("invalid port {0:?} after host")]
    Port(String),
    /// A character that is invalid in user information.
    #[error("net/url: invalid userinfo")]
    UserInfo,
}

impl Url {
    /// `url(text)`; `isURL(text)` is whether this succeeds.
    pub(crate) fn parse(text: &str) -> Result<Self, UrlError> {
        parse::parse(text).map_err(|fault| UrlError { text: text.to_owned(), fault })
    }

    /// Checks whether the text is a valid request target; the error is worded as in Go.
    pub(crate) fn check_request(text: &str) -> Result<(), String> {
        parse::check_request(text).map_err(|fault| format!("parse {}: {fault}", Quoted(text)))
    }

    /// `getScheme()`, in lower case.
    #[must_use]
    pub(crate) fn scheme(&self) -> &str {
        &self.scheme
    }

    /// `getHost()`, including the port.
    #[must_use]
    pub(crate) fn host(&self) -> String {
        text(&self.host)
    }

    /// `getHostname()`, without port and brackets.
    #[must_use]
    pub(crate) fn hostname(&self) -> String {
        let (name, _) = self.host_and_port();
        text(name.strip_prefix(b"[").and_then(|inner| inner.strip_suffix(b"]")).unwrap_or(name))
    }

    /// `getPort()`, empty if absent.
    #[must_use]
    pub(crate) fn port(&self) -> String {
        text(self.host_and_port().1)
    }

    /// `getEscapedPath()`: as written if correctly escaped, otherwise re-escaped.
    #[must_use]
    pub(crate) fn escaped_path(&self) -> String {
        escape::ensure_escaped(&self.raw_path, Mode::Path)
    }

    /// `getQuery()`: each key with its values in order. Keys are in order of first appearance; a pair with a
    /// semicolon or an invalid escape is omitted.
    #[must_use]
    pub(crate) fn query(&self) -> Vec<(String, Vec<String>)> {
        let mut places = HashMap::new();
        let mut query: Vec<(String, Vec<String>)> = Vec::new();
        for pair in self.raw_query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let parts = [key, value].map(|part| escape::unescape(part, Mode::Query));
            let [Ok(key), Ok(value)] = parts else { continue };
            let (key, value) = (text(&key), text(&value));
            let place = *places.entry(key.clone()).or_insert(query.len());
            match query.get_mut(place) {
                Some((_, values)) => values.push(value),
                None => query.push((key, vec![value])),
            }
        }
        query
    }

    fn host_and_port(&self) -> (&[u8], &[u8]) {
        let at = self.host.iter().rposition(|&byte| byte == b':');
        at.and_then(|at| self.host.split_at_checked(at))
            .and_then(|(name, port)| Some((name, port.strip_prefix(b":")?)))
            .filter(|(_, port)| port.iter().all(u8::is_ascii_digit))
            .unwrap_or((&self.host, b""))
    }
}

/// Displays a text quoted as in Go.
struct Quoted<'t>(&'t str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::library::strings_quote::write_go_quoted(f, self.0)
    }
}

/// Decodes bytes as UTF-8 with replacement characters: escapes can encode invalid UTF-8.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reassembles the URL; incorrectly escaped parts are re-escaped.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            self.write_hierarchy(f)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if self.force_query || !self.raw_query.is_empty() {
            write!(f, "?{}", self.raw_query)?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", escape::ensure_escaped(&self.fragment, Mode::Fragment))?;
        }
        Ok(())
    }
}

impl Url {
    fn write_hierarchy(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.escaped_path();
        let named = !self.host.is_empty() || self.user.is_some();
        let slashes = named || !self.scheme.is_empty() && !self.omit_host && !path.is_empty();
        if slashes {
            f.write_str("//")?;
        }
        if let Some((name, password)) = &self.user {
            f.write_str(&escape::escape(name, Mode::User))?;
            if let Some(password) = password {
                write!(f, ":{}", escape::escape(password, Mode::User))?;
            }
            f.write_str("@")?;
        }
        f.write_str(&escape::escape(&self.host, Mode::Host))?;
        f.write_str(&path)
    }
}

#[cfg(test)]
mod tests;
