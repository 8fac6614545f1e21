//! Proxies: choosing one from the configuration, and opening a tunnel with HTTP `CONNECT` or SOCKS5.
// C148

mod environment;
mod tunnel;

use std::fmt;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use navicert_go::percent;
use navicert_go::url::Url;
use navicert_types::Secret;
use thiserror::Error;

pub use environment::ProxyEnvironment;
pub(super) use tunnel::{connect, socks5};

/// Why a proxy cannot be used, or rejected the connection.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The address cannot be parsed.
    #[error("invalid proxy address: {0}")]
    Address(&'static str),
    /// The scheme is not supported.
    #[error("unsupported scheme {0:?}, must be http, https, or socks5")]
    Scheme(String),
    /// The connection to the proxy failed.
    #[error("failed to exchange data with the proxy")]
    Io(#[from] io::Error),
    /// The proxy rejected the request.
    #[error("proxy rejected the connection: {0}")]
    Rejected(String),
    /// The proxy sent a response in another protocol.
    #[error("invalid response from the proxy: not {0}")]
    Protocol(&'static str),
    /// The proxy requires credentials, and those in its address are missing or wrong.
    #[error("proxy rejected the credentials in the proxy address, or requires some")]
    Credentials,
}

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
    Socks5,
}

/// A proxy's address and credentials.
#[derive(Clone)]
pub struct Proxy {
    pub(super) scheme: Scheme,
    pub(super) host: String,
    pub(super) port: u16,
    /// User name and password, percent-decoded.
    pub(super) user: Option<(String, Secret<String>)>,
}

impl Proxy {
    /// Parses a `proxy-url`.
    ///
    /// # Errors
    /// The text is not a URL, or its scheme is not `http`, `https` or `socks5`.
    pub fn parse(text: &str) -> Result<Self, ProxyError> {
        let address = Url::parse(text).map_err(|_| ProxyError::Address("not a URL"))?;
        let scheme = match address.scheme.as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            // The proxy always resolves names, which is what the `h` stands for.
            "socks5" | "socks5h" => Scheme::Socks5,
            other => return Err(ProxyError::Scheme(other.to_owned())),
        };
        let (host, port) = host_and_port(address.host).ok_or(ProxyError::Address("missing host"))?;
        let port = port.unwrap_or(match scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
            Scheme::Socks5 => 1080,
        });
        let user = address.user_info.map(|info| {
            let (name, password) = info.split_once(':').unwrap_or((info, ""));
            (percent_decoded(name), Secret::new(percent_decoded(password)))
        });
        Ok(Proxy { scheme, host: host.to_owned(), port, user })
    }

    /// The address without user information, safe to print.
    pub fn address(&self) -> String {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Socks5 => "socks5",
        };
        format!("{scheme}://{}", join(&self.host, self.port))
    }

    /// The value of the `Proxy-Authorization` header.
    pub(super) fn authorization(&self) -> Option<HeaderValue> {
        let (name, password) = self.user.as_ref()?;
        let pair = STANDARD.encode(format!("{name}:{}", password.expose()));
        let mut value = HeaderValue::try_from(format!("Basic {pair}")).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("address", &self.address()).field("user", &self.user.is_some()).finish()
    }
}

/// Splits `host`, `host:port`, `[v6]` or `[v6]:port`; the host comes without brackets.
pub(crate) fn host_and_port(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, behind) = rest.split_once(']')?;
        (host, behind.strip_prefix(':'))
    } else {
        match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    let port = match port.filter(|digits| !digits.is_empty()) {
        Some(digits) => Some(digits.parse().ok()?),
        None => None,
    };
    (!host.is_empty()).then_some((host, port))
}

/// Joins host and port; the inverse of [`host_and_port`].
pub(super) fn join(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// The escapes are valid: the URL has been parsed.
fn percent_decoded(text: &str) -> String {
    let bytes = percent::decode_lenient(text.as_bytes(), percent::Plus::Literal);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_scheme_host_port_and_user() {
        for (text, shown, user) in [
            ("http://p", "http://p:80", None),
            ("https://p:8443/", "https://p:8443", None),
            ("socks5://[::1]:9", "socks5://[::1]:9", None),
            ("http://ann:s%40f%3Ae@p:3128", "http://p:3128", Some(("ann", "s@f:e"))),
            ("socks5h://ann@p", "socks5://p:1080", Some(("ann", ""))),
        ] {
            let proxy = Proxy::parse(text).unwrap();
            assert_eq!(proxy.address(), shown, "{text}");
            let found =
                proxy.user.as_ref().map(|(name, password)| (name.as_str(), password.expose().as_str()));
            assert_eq!(found, user, "{text}");
        }
    }

    // C153
    #[test]
    fn rejects_other_schemes_as_kubectl_does_without_printing_passwords() {
        let error = Proxy::parse("ftp://ann:hunter2@p").unwrap_err().to_string();
        assert_eq!(error, "unsupported scheme \"ftp\", must be http, https, or socks5");
        for text in ["http://", "http://ann:hunter2@", "http://ann:hunter2@p:99999", ":"] {
            let error = Proxy::parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{text}");
        }
        assert!(!format!("{:?}", Proxy::parse("http://ann:hunter2@p").unwrap()).contains("hunter2"));
    }
}
