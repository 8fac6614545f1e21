//! Proxies as Go's `httpproxy` chooses them, and the dialogue that opens a tunnel through one. For every client of the
//! workspace, blocking or not.
// C148

mod environment;
mod tunnel;

use std::fmt;
use std::io;

use base64::Engine as _;
use navicert_go::base64::STANDARD;
use navicert_go::url::Url;
use navicert_go::{host_port, percent};
use thiserror::Error;

pub use environment::ProxyEnvironment;
pub use tunnel::{Tunnel, TunnelStep};

use crate::Secret;

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
pub enum ProxyScheme {
    /// HTTP.
    Http,
    /// HTTP over TLS.
    Https,
    /// SOCKS5; the proxy resolves names.
    Socks5,
}

/// A proxy's address and credentials.
#[derive(Clone)]
pub struct Proxy {
    scheme: ProxyScheme,
    host: String,
    port: u16,
    /// User name and password, percent-decoded.
    user: Option<(String, Secret<String>)>,
}

impl Proxy {
    /// Parses a `proxy-url`.
    ///
    /// # Errors
    /// The text is not a URL, or its scheme is not `http`, `https` or `socks5`.
    pub fn parse(text: &str) -> Result<Self, ProxyError> {
        let address = Url::parse(text).map_err(|_| ProxyError::Address("not a URL"))?;
        let scheme = match address.scheme.as_str() {
            "http" => ProxyScheme::Http,
            "https" => ProxyScheme::Https,
            // The proxy always resolves names, which is what the `h` stands for.
            "socks5" | "socks5h" => ProxyScheme::Socks5,
            other => return Err(ProxyError::Scheme(other.to_owned())),
        };
        let (host, port) = host_port::split(address.host).ok_or(ProxyError::Address("missing host"))?;
        let port = port.unwrap_or(match scheme {
            ProxyScheme::Http => 80,
            ProxyScheme::Https => 443,
            ProxyScheme::Socks5 => 1080,
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
            ProxyScheme::Http => "http",
            ProxyScheme::Https => "https",
            ProxyScheme::Socks5 => "socks5",
        };
        format!("{scheme}://{}", host_port::join(&self.host, self.port))
    }

    /// The protocol.
    pub fn scheme(&self) -> ProxyScheme {
        self.scheme
    }

    /// The host, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The value of the `Proxy-Authorization` header.
    pub fn authorization(&self) -> Option<Secret<String>> {
        let (name, password) = self.user.as_ref()?;
        let pair = Secret::new(format!("{name}:{}", password.expose()));
        Some(Secret::new(format!("Basic {}", STANDARD.encode(pair.expose()))))
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("address", &self.address()).field("user", &self.user.is_some()).finish()
    }
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
