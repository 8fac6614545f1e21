//! Strict parsing of endpoint URLs; ambiguous ones are rejected.

use std::fmt;
use std::net::IpAddr;

use thiserror::Error;

/// An endpoint URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpUrl {
    /// The scheme.
    pub scheme: UrlScheme,
    /// The host: a lowercase name, or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query, never empty.
    pub target: String,
}

/// The scheme of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UrlScheme {
    /// Plain HTTP: metadata servers and explicitly configured endpoints.
    Http,
    /// HTTP over TLS.
    Https,
}

impl UrlScheme {
    /// The default port.
    pub(crate) fn default_port(self) -> u16 {
        match self {
            UrlScheme::Http => 80,
            UrlScheme::Https => 443,
        }
    }
}

/// Why a URL is invalid. Messages do not repeat the URL, which may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum HttpUrlError {
    /// Neither `http://` nor `https://`.
    #[error("expected a URL starting with `https://` or `http://`")]
    Scheme,
    /// The URL contains a user name or password.
    #[error("URL must not contain user info")]
    UserInfo,
    /// The host or a character is invalid.
    #[error("invalid host in URL")]
    Host,
    /// The port is invalid.
    #[error("invalid port in URL")]
    Port,
}

impl HttpUrl {
    /// Creates an HTTPS URL with the default port; `target` starts with a slash.
    pub(crate) fn https(host: &str, target: &str) -> Self {
        HttpUrl {
            scheme: UrlScheme::Https,
            host: host.to_ascii_lowercase(),
            port: 443,
            target: target.to_owned(),
        }
    }

    /// Parses a URL.
    ///
    /// # Errors
    /// [`HttpUrlError`].
    pub(crate) fn parse(text: &str) -> Result<Self, HttpUrlError> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(HttpUrlError::Host);
        }
        let (scheme, rest) = if let Some(rest) = text.strip_prefix("https://") {
            (UrlScheme::Https, rest)
        } else if let Some(rest) = text.strip_prefix("http://") {
            (UrlScheme::Http, rest)
        } else {
            return Err(HttpUrlError::Scheme);
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at_checked(end).ok_or(HttpUrlError::Host)?;
        if authority.contains('@') {
            return Err(HttpUrlError::UserInfo);
        }
        let (host, port) = split_port(authority)?;
        let port = port.map_or(Ok(scheme.default_port()), parse_port)?;
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        Ok(HttpUrl { scheme, host: host.to_ascii_lowercase(), port, target })
    }

    /// Appends `path`, which starts with a slash, and drops the query.
    #[must_use]
    pub(crate) fn join(&self, path: &str) -> Self {
        let base = self.target.split('?').next().unwrap_or_default().trim_end_matches('/');
        HttpUrl { target: format!("{base}{path}"), ..self.clone() }
    }

    /// Host and port, as in a `Host` header.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == self.scheme.default_port() { host } else { format!("{host}:{}", self.port) }
    }

    /// Whether the host is `localhost` or a loopback address.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// Without the query, which may contain secrets.
impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            UrlScheme::Http => "http",
            UrlScheme::Https => "https",
        };
        let path = self.target.split('?').next().unwrap_or_default();
        write!(f, "{scheme}://{}{path}", self.authority())
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), HttpUrlError> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, behind) = rest.split_once(']').ok_or(HttpUrlError::Host)?;
        host.parse::<std::net::Ipv6Addr>().map_err(|_| HttpUrlError::Host)?;
        match behind.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if behind.is_empty() => (host, None),
            None => return Err(HttpUrlError::Host),
        }
    } else {
        let (host, port) = authority.split_once(':').map_or((authority, None), |(h, p)| (h, Some(p)));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if host.is_empty() || !host.bytes().all(plain) {
            return Err(HttpUrlError::Host);
        }
        (host, port)
    };
    Ok((host, port))
}

fn parse_port(text: &str) -> Result<u16, HttpUrlError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0).ok_or(HttpUrlError::Port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_urls_strictly() {
        for (text, authority, target) in [
            ("https://a.example", "a.example", "/"),
            ("https://A.Example/x?y=1#z", "a.example", "/x?y=1"),
            ("http://127.0.0.1:8080/", "127.0.0.1:8080", "/"),
            ("http://[fd00:ec2::23]:80/v1/credentials", "[fd00:ec2::23]", "/v1/credentials"),
            ("http://metadata.google.internal.:443?x", "metadata.google.internal.:443", "/?x"),
        ] {
            let url = HttpUrl::parse(text).unwrap();
            assert_eq!((url.authority().as_str(), url.target.as_str()), (authority, target), "{text}");
        }
        for text in [
            "",
            "a.example",
            "ftp://a",
            "https://",
            "https:///x",
            "https://u:p@a",
            "https://a:0",
            "https://a:x",
            "https://a:65536",
            "https://a:+1",
            "https://[::1",
            "https://[::1]x",
            "https://[a]",
            "https://a b",
            "https://a\n",
            "https://ä",
            "https://a\\b",
            "https://a:1:2",
        ] {
            assert!(HttpUrl::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn display_omits_the_query() {
        let url = HttpUrl::parse("https://a.example:8443/x?token=canary").unwrap();
        assert_eq!(url.to_string(), "https://a.example:8443/x");
        assert_eq!(HttpUrl::parse("https://a.example/base/?q").unwrap().join("/y").target, "/base/y");
    }
}
