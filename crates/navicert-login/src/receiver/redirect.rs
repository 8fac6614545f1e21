//! The redirect URI: which text is sent to the provider, and what requests to it look like when they arrive.

use std::net::IpAddr;

use navicert_go::url::Url;
use thiserror::Error;

use super::listen::BoundSockets;

/// Path of the callback where the redirect URI is ours to choose.
const CALLBACK_PATH: &str = "/callback";

/// Which redirect URI a receiver uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectTarget(Target);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Localhost,
    LoopbackAddress,
    Explicit(ExplicitRedirect),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ExplicitRedirect {
    url: String,
    scheme: String,
    /// Host and port, in lower case.
    authority: String,
    path: String,
}

/// A redirect URL that a receiver cannot serve.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("invalid redirect URL `{url}`: {reason}")]
pub struct RedirectUrlError {
    url: String,
    reason: &'static str,
}

impl RedirectTarget {
    /// `http://localhost:<port>`, as kubelogin registers it.
    pub const LOCALHOST: RedirectTarget = RedirectTarget(Target::Localhost);
    /// `http://127.0.0.1:<port>/callback`.
    pub const LOOPBACK_ADDRESS: RedirectTarget = RedirectTarget(Target::LoopbackAddress);

    /// Exactly this text (`--oidc-redirect-url`). Its path is the callback's; its port need not be the one that is bound.
    ///
    /// # Errors
    /// It is not an `http` or `https` URL with a host, or it has user information or a fragment.
    pub fn explicit(text: &str) -> Result<Self, RedirectUrlError> {
        let invalid = |reason| RedirectUrlError { url: text.to_owned(), reason };
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(invalid("a character must be escaped"));
        }
        let url = Url::parse(text).map_err(|_| invalid("it is not a URL"))?;
        if !matches!(&*url.scheme, "http" | "https") {
            return Err(invalid("expected http or https"));
        }
        if host_and_port(url.host).0.is_empty() {
            return Err(invalid("missing host"));
        }
        if url.user_info.is_some() || url.fragment.is_some() {
            return Err(invalid("user information and fragments are not allowed"));
        }
        Ok(RedirectTarget(Target::Explicit(ExplicitRedirect {
            url: text.to_owned(),
            scheme: url.scheme,
            authority: url.host.to_ascii_lowercase(),
            path: if url.path.is_empty() { "/".to_owned() } else { url.path.to_owned() },
        })))
    }

    /// The port of an explicit redirect URL, the scheme's default included: where to listen if nothing else is said.
    pub fn port(&self) -> Option<u16> {
        let Target::Explicit(explicit) = &self.0 else { return None };
        let default = if explicit.scheme == "https" { 443 } else { 80 };
        Some(host_and_port(&explicit.authority).1.unwrap_or(default))
    }

    pub(super) fn explicit_url(&self) -> Option<&str> {
        match &self.0 {
            Target::Explicit(explicit) => Some(&explicit.url),
            Target::Localhost | Target::LoopbackAddress => None,
        }
    }

    /// Whether the browser resolves a name, and may connect to either family.
    pub(super) fn is_localhost(&self) -> bool {
        match &self.0 {
            Target::Localhost => true,
            Target::LoopbackAddress => false,
            Target::Explicit(explicit) => host_and_port(&explicit.authority).0 == "localhost",
        }
    }
}

/// The redirect URI of bound sockets.
#[derive(Debug)]
pub(super) struct RedirectUri {
    uri: String,
    /// Scheme and authority that the browser of this machine reaches: the redirect URI's if its host is this machine.
    /// The start link has the same host, because the cookie that it sets belongs to a host.
    origin: String,
    path: String,
    authorities: Vec<String>,
}

impl RedirectUri {
    pub(super) fn new(target: &RedirectTarget, scheme: &str, sockets: &BoundSockets) -> Self {
        let port = sockets.port();
        // L904
        let mut authorities: Vec<String> =
            ["127.0.0.1", "[::1]", "localhost"].iter().map(|host| format!("{host}:{port}")).collect();
        if !sockets.first().ip().is_unspecified() {
            authorities.push(sockets.first().to_string());
        }
        if let Target::Explicit(explicit) = &target.0 {
            authorities.push(explicit.authority.clone());
        }
        // Browsers leave the scheme's own port out.
        let without_port = |authority: &String| {
            let (host, port) = host_and_port(authority);
            (port == Some(80) || port == Some(443)).then(|| host.to_owned())
        };
        authorities.extend(authorities.iter().filter_map(without_port).collect::<Vec<_>>());
        let bound_origin = || {
            let ip = sockets.first().ip();
            let host = if ip.is_unspecified() { "127.0.0.1".to_owned() } else { show_host(ip) };
            format!("{scheme}://{host}:{port}")
        };
        match &target.0 {
            // L120, L713
            Target::Localhost => {
                let uri = format!("{scheme}://localhost:{port}");
                RedirectUri { origin: uri.clone(), uri, path: "/".to_owned(), authorities }
            }
            Target::LoopbackAddress => {
                let origin = bound_origin();
                let uri = format!("{origin}{CALLBACK_PATH}");
                RedirectUri { uri, origin, path: CALLBACK_PATH.to_owned(), authorities }
            }
            Target::Explicit(explicit) => {
                let origin = match is_this_machine(host_and_port(&explicit.authority).0) {
                    true => format!("{}://{}", explicit.scheme, explicit.authority),
                    false => bound_origin(),
                };
                RedirectUri { uri: explicit.url.clone(), origin, path: explicit.path.clone(), authorities }
            }
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.uri
    }

    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    /// Path of the callback, as in a request.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The values of `Host` that requests may have.
    pub(super) fn authorities(&self) -> &[String] {
        &self.authorities
    }
}

fn show_host(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
}

fn is_this_machine(host: &str) -> bool {
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

/// The host, in brackets if it is an IPv6 address, and the port.
fn host_and_port(authority: &str) -> (&str, Option<u16>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
        _ => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_may_lack_the_port_of_the_scheme() {
        let sockets = BoundSockets::of_addresses(&["127.0.0.1:80"]);
        let uri = RedirectUri::new(&RedirectTarget::LOCALHOST, "http", &sockets);
        assert!(uri.authorities().contains(&"localhost".to_owned()), "{uri:?}");
        let sockets = BoundSockets::of_addresses(&["127.0.0.1:8000"]);
        let explicit = RedirectTarget::explicit("https://Login.example:443/cb").unwrap();
        let uri = RedirectUri::new(&explicit, "http", &sockets);
        assert!(uri.authorities().contains(&"login.example".to_owned()), "{uri:?}");
        assert!(!uri.authorities().contains(&"localhost".to_owned()), "{uri:?}");
    }

    #[test]
    fn explicit_urls_have_a_path_and_a_port() {
        for (text, port, path, is_localhost) in [
            ("http://localhost:9000/cb", 9000, "/cb", true),
            ("http://LOCALHOST", 80, "/", true),
            ("https://localhost/", 443, "/", true),
            ("http://127.0.0.1:8000/a/b?tenant=1", 8000, "/a/b", false),
            ("http://[::1]:8000", 8000, "/", false),
            ("https://login.example.com:8443/x", 8443, "/x", false),
        ] {
            let target = RedirectTarget::explicit(text).unwrap();
            assert_eq!(target.port(), Some(port), "{text}");
            assert_eq!(target.is_localhost(), is_localhost, "{text}");
            assert_eq!(target.explicit_url(), Some(text), "sent literally");
            let Target::Explicit(explicit) = &target.0 else { panic!("{text}") };
            assert_eq!(explicit.path, path, "{text}");
        }
    }

    #[test]
    fn urls_that_no_receiver_can_serve_are_rejected() {
        for text in [
            "",
            "localhost:8000",
            "ftp://localhost/",
            "urn:ietf:wg:oauth:2.0:oob",
            "http://",
            "http://:80/",
            "http://a@localhost/",
            "http://localhost/#x",
            "http://localhost/a b",
            "http://localhost/\u{e9}",
            "javascript:alert(1)",
        ] {
            assert!(RedirectTarget::explicit(text).is_err(), "{text}");
        }
    }
}
