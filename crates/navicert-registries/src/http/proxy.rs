//! Connections through the proxy that the environment names: http, https and SOCKS5, as every client of the workspace
//! chooses them.

use navicert_plugin::Environment;
use navicert_types::proxy::{Proxy, ProxyEnvironment, ProxyError, ProxyScheme, Tunnel, TunnelStep};

use super::dial::{self, Deadline, Stream};
use super::trust::TlsTrust;
use super::url::{HttpUrl, UrlScheme};
use super::{HttpError, http_error_from_io};

/// The proxies of the environment.
#[derive(Debug)]
pub(super) struct Proxies {
    variables: ProxyEnvironment,
    /// The variables that name the proxies for https and http, for errors.
    names: [&'static str; 2],
}

impl Proxies {
    pub(super) fn from_environment(environment: &Environment) -> Self {
        let lookup = |name: &str| Some(environment.variable(name)?.to_string_lossy().into_owned());
        let names = [true, false].map(|https| ProxyEnvironment::variable(https, lookup));
        Proxies { variables: ProxyEnvironment::read(lookup), names }
    }

    /// The proxy for a URL, if any.
    pub(super) fn for_url(&self, url: &HttpUrl) -> Result<Option<Proxy>, HttpError> {
        let is_https = url.scheme == UrlScheme::Https;
        let [https, http] = self.names;
        let variable = if is_https { https } else { http };
        self.variables
            .proxy_for(is_https, &url.host, url.port)
            .map_err(|source| HttpError::InvalidProxy { variable, source })
    }
}

/// Whether a proxy forwards requests for a URL instead of opening a tunnel.
pub(super) fn forwards(proxy: &Proxy, url: &HttpUrl) -> bool {
    url.scheme == UrlScheme::Http && proxy.scheme() != ProxyScheme::Socks5
}

/// Connects to the proxy and opens a tunnel, unless the proxy forwards.
pub(super) fn connect<'a>(
    proxy: &Proxy,
    url: &HttpUrl,
    trust: &TlsTrust,
    deadline: Deadline<'a>,
) -> Result<Box<dyn Stream + 'a>, HttpError> {
    let mut stream = dial::connect(proxy.host(), proxy.port(), None, deadline)?;
    if proxy.scheme() == ProxyScheme::Https {
        stream = trust.connect(proxy.host(), None, stream)?;
    }
    if !forwards(proxy, url) {
        open_tunnel(&mut *stream, Tunnel::new(proxy, &url.host, url.port)).map_err(|error| match error {
            ProxyError::Io(source) => http_error_from_io(source, proxy.address(), deadline.limit()),
            source => HttpError::Proxy { proxy: proxy.address(), host: url.authority(), source },
        })?;
    }
    Ok(stream)
}

fn open_tunnel(stream: &mut dyn Stream, mut tunnel: Tunnel<'_>) -> Result<(), ProxyError> {
    let mut received = Vec::new();
    loop {
        match tunnel.advance(&received)? {
            TunnelStep::Send(bytes) => {
                stream.write_all(bytes.expose())?;
                stream.flush()?;
                received.clear();
            }
            TunnelStep::Receive(count) => {
                received.resize(count, 0);
                stream.read_exact(&mut received)?;
            }
            TunnelStep::Done => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(variables: &[(&str, &str)], url: &str) -> Result<Option<String>, HttpError> {
        let proxies = Proxies::from_environment(&variables.iter().copied().collect());
        let found = proxies.for_url(&HttpUrl::parse(url).unwrap())?;
        Ok(found.map(|proxy| proxy.address()))
    }

    // An empty variable is as good as none.
    #[test]
    fn empty_upper_case_variable_does_not_hide_the_lower_case_one() {
        let variables =
            [("HTTPS_PROXY", ""), ("https_proxy", "p:1"), ("NO_PROXY", ""), ("no_proxy", "b.example")];
        assert_eq!(proxy(&variables, "https://a.example").unwrap().as_deref(), Some("http://p:1"));
        assert_eq!(proxy(&variables, "https://b.example").unwrap(), None);
    }

    #[test]
    fn each_scheme_has_a_variable_and_loopback_none() {
        let variables =
            [("HTTPS_PROXY", "https://p"), ("http_proxy", "socks5://q"), ("NO_PROXY", "10.0.0.0/8")];
        for (url, expected) in [
            ("https://a.example", Some("https://p:443")),
            ("http://a.example", Some("socks5://q:1080")),
            ("https://11.0.0.1", Some("https://p:443")),
            ("https://10.0.0.1", None),
            ("https://127.0.0.1", None),
            ("https://localhost", None),
        ] {
            assert_eq!(proxy(&variables, url).unwrap().as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn error_names_the_variable_and_no_password() {
        for (variable, value) in [("HTTPS_PROXY", "ftp://u:canary@p"), ("https_proxy", "http://u:canary@p:x")]
        {
            let error = proxy(&[(variable, value)], "https://a.example").unwrap_err();
            let text = navicert_types::error_chain(&error);
            assert!(text.contains(variable) && !text.contains("canary"), "{text}");
            assert!(proxy(&[(variable, value)], "http://127.0.0.1").unwrap().is_none(), "used nowhere else");
        }
    }
}
