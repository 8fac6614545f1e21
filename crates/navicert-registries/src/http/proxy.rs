//! HTTPS proxy support (`HTTPS_PROXY`, `NO_PROXY`) with `CONNECT` tunnels.
//!
//! Metadata servers, IP addresses and plain HTTP bypass the proxy.

use std::io::{self, Read, Write};
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use navicert_plugin::Environment;
use navicert_types::Secret;
use thiserror::Error;

use super::dial::DeadlineStream;
use super::url::{HttpUrl, HttpUrlError, UrlScheme};
use super::{HttpError, http_error_from_io};
use crate::percent::percent_decode;

/// Maximum size of the header of a `CONNECT` response.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// The proxy for HTTPS connections and its exceptions.
#[derive(Debug, Default)]
pub struct HttpsProxy {
    url: Option<HttpUrl>,
    authorization: Option<Secret<String>>,
    exceptions: Vec<String>,
}

/// The proxy in the environment is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HttpsProxyError {
    /// The value is not a URL.
    #[error("invalid proxy in HTTPS_PROXY: {0}")]
    Url(HttpUrlError),
    /// The scheme is not `http`.
    #[error("invalid proxy in HTTPS_PROXY: expected an `http://` URL")]
    Scheme,
}

/// A tunnel to open.
#[derive(Debug)]
pub(super) struct Tunnel<'a> {
    pub(super) proxy: &'a HttpUrl,
    authorization: Option<&'a Secret<String>>,
    target: &'a HttpUrl,
}

impl HttpsProxy {
    /// Reads `HTTPS_PROXY` and `NO_PROXY`, in uppercase or lowercase.
    ///
    /// # Errors
    /// [`HttpsProxyError`].
    pub fn from_environment(environment: &Environment) -> Result<Self, HttpsProxyError> {
        let variable = |names: [&str; 2]| {
            let found = names.into_iter().find_map(|name| environment.variable(name));
            found.map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
        };
        let Some(text) = variable(["HTTPS_PROXY", "https_proxy"]) else { return Ok(HttpsProxy::default()) };
        let text = if text.contains("://") { text } else { format!("http://{text}") };
        let (scheme, rest) = text.split_once("://").ok_or(HttpsProxyError::Scheme)?;
        if scheme != "http" {
            return Err(HttpsProxyError::Scheme);
        }
        let (user, rest) = rest.rsplit_once('@').map_or((None, rest), |(user, rest)| (Some(user), rest));
        let url = HttpUrl::parse(&format!("http://{rest}")).map_err(HttpsProxyError::Url)?;
        let authorization =
            user.map(|user| Secret::new(format!("Basic {}", STANDARD.encode(percent_decode(user)))));
        let exceptions = variable(["NO_PROXY", "no_proxy"]).unwrap_or_default();
        let exceptions = exceptions.split(',').map(|entry| entry.trim().to_ascii_lowercase());
        Ok(HttpsProxy {
            url: Some(url),
            authorization,
            exceptions: exceptions.filter(|e| !e.is_empty()).collect(),
        })
    }

    /// The tunnel for a URL, or `None` for a direct connection.
    pub(super) fn for_url<'a>(&'a self, target: &'a HttpUrl) -> Option<Tunnel<'a>> {
        let proxy = self.url.as_ref()?;
        let direct = target.scheme == UrlScheme::Http
            || target.host == "localhost"
            || target.host.parse::<IpAddr>().is_ok()
            || self.exceptions.iter().any(|exception| is_excepted(exception, target));
        (!direct).then_some(Tunnel { proxy, authorization: self.authorization.as_ref(), target })
    }
}

impl Tunnel<'_> {
    /// Opens the tunnel.
    pub(super) fn open(&self, stream: &mut DeadlineStream<'_>) -> Result<(), HttpError> {
        let limit = stream.limit();
        let failed = |error: io::Error| http_error_from_io(error, self.proxy.authority(), limit);
        let target = format!("{}:{}", self.target.host, self.target.port);
        let authorization =
            self.authorization.map(|value| format!("proxy-authorization: {}\r\n", value.expose()));
        let head = Secret::new(format!(
            "CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n{}\r\n",
            authorization.unwrap_or_default()
        ));
        stream.write_all(head.expose().as_bytes()).map_err(failed)?;
        let status = read_status(stream).map_err(failed)?;
        if status == 200 {
            return Ok(());
        }
        Err(HttpError::ProxyRejected { proxy: self.proxy.authority(), status, host: target })
    }
}

/// Reads the status byte by byte, since the bytes after the header belong to TLS.
fn read_status(stream: &mut impl Read) -> io::Result<u16> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if head.len() >= MAX_HEAD_BYTES || stream.read(&mut byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&byte);
    }
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    response.parse(&head).map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
    Ok(response.code.unwrap_or_default())
}

/// Whether a `NO_PROXY` entry matches: `*`, a name and its subdomains, subdomains only (leading dot), each with an
/// optional port.
fn is_excepted(exception: &str, target: &HttpUrl) -> bool {
    let (name, port) = exception.rsplit_once(':').map_or((exception, None), |(n, p)| (n, Some(p)));
    if port.is_some_and(|port| port != target.port.to_string()) {
        return false;
    }
    let name = name.strip_prefix('*').unwrap_or(name);
    let host = target.host.trim_end_matches('.');
    match name.strip_prefix('.') {
        Some(parent) => host.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.')),
        None if name.is_empty() => true,
        None => host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(variables: &[(&str, &str)]) -> Result<HttpsProxy, HttpsProxyError> {
        HttpsProxy::from_environment(&variables.iter().copied().collect())
    }

    #[test]
    fn exceptions_match_names_and_subdomains() {
        let none =
            [("HTTPS_PROXY", "proxy.example:3128"), ("NO_PROXY", " a.example, .b.example,c.example:8443")];
        let found = proxy(&none).unwrap();
        for (url, through) in [
            ("https://x.example", true),
            ("https://a.example", false),
            ("https://sub.a.example", false),
            ("https://nota.example", true),
            ("https://b.example", true),
            ("https://sub.b.example", false),
            ("https://c.example", true),
            ("https://c.example:8443", false),
            ("http://x.example", false),
            ("https://127.0.0.1", false),
            ("https://localhost", false),
        ] {
            assert_eq!(found.for_url(&HttpUrl::parse(url).unwrap()).is_some(), through, "{url}");
        }
        let all = [("https_proxy", "http://p:1"), ("no_proxy", "*")];
        let found = proxy(&all).unwrap();
        assert!(found.for_url(&HttpUrl::parse("https://x.example").unwrap()).is_none());
    }

    #[test]
    fn rejects_invalid_proxy_without_showing_its_password() {
        assert_eq!(proxy(&[("HTTPS_PROXY", "https://p")]).unwrap_err(), HttpsProxyError::Scheme);
        let error = proxy(&[("HTTPS_PROXY", "http://u:canary@p:x")]).unwrap_err();
        assert!(!error.to_string().contains("canary"));
        let proxy = proxy(&[("HTTPS_PROXY", "http://u:c%61nary@p:1")]).unwrap();
        assert_eq!(proxy.authorization.as_ref().unwrap().expose(), "Basic dTpjYW5hcnk=");
        assert!(!format!("{proxy:?}").contains("dTpjYW5hcnk"));
    }
}
