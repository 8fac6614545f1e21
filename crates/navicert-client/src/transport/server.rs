//! The API server's address, parsed once: where to connect, the TLS server name and the path prefix.

use http::uri::{Authority, PathAndQuery, Scheme};
use navicert_go::host_port;
use navicert_go::url::Url;
use rustls_pki_types::ServerName;

use super::error::{BuildError, TransportError};

/// An API server's address.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) scheme: Scheme,
    pub(super) host: String,
    pub(super) port: u16,
    /// Host and port as written, without user information.
    pub(super) authority: Authority,
    /// Prefix of all request paths, without a trailing slash; usually empty.
    prefix: String,
    pub(super) name: ServerName<'static>,
}

impl Server {
    /// Parses an address as kubectl does: without a scheme it is plain http.
    // C161
    pub(super) fn parse(text: &str, tls_server_name: &str) -> Result<Self, BuildError> {
        let invalid = |reason: &str| BuildError::Server(reason.to_owned());
        let completed;
        let mut address = Url::parse_without_fragment(text);
        if !address.as_ref().is_ok_and(|address| !address.scheme.is_empty() && !address.host.is_empty()) {
            completed = format!("http://{text}");
            address = Url::parse_without_fragment(&completed);
            if address.as_ref().is_ok_and(|address| !matches!(address.path, "" | "/")) {
                return Err(invalid("neither a URL nor host:port"));
            }
        }
        let address = address.map_err(|error| BuildError::Server(error.to_string()))?;
        let (scheme, default_port) = match address.scheme.as_str() {
            "https" => (Scheme::HTTPS, 443),
            "http" => (Scheme::HTTP, 80),
            _ => return Err(invalid("the scheme is neither https nor http")),
        };
        let (host, port) = host_port::split(address.host).ok_or_else(|| invalid("missing host"))?;
        let name = if tls_server_name.is_empty() { host } else { tls_server_name };
        Ok(Server {
            authority: Authority::try_from(address.host)?,
            prefix: address.path.trim_end_matches('/').to_owned(),
            host: host.to_owned(),
            port: port.unwrap_or(default_port),
            name: ServerName::try_from(name.to_owned())
                .map_err(|_| BuildError::ServerName(name.to_owned()))?,
            scheme,
        })
    }

    pub(super) fn is_https(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// Whether an absolute URI names this server.
    pub(super) fn matches(&self, scheme: Option<&str>, authority: &Authority) -> bool {
        let default_port = if self.is_https() { 443 } else { 80 };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        scheme.is_none_or(|scheme| scheme.eq_ignore_ascii_case(self.scheme.as_str()))
            && host.eq_ignore_ascii_case(&self.host)
            && authority.port_u16().unwrap_or(default_port) == self.port
    }

    /// Joins a path to the server's path prefix.
    pub(super) fn join_path(&self, path: PathAndQuery) -> Result<PathAndQuery, TransportError> {
        if self.prefix.is_empty() {
            return Ok(path);
        }
        let whole = PathAndQuery::try_from(format!("{}{path}", self.prefix)).map_err(http::Error::from)?;
        Ok(whole)
    }

    /// Scheme, host and port.
    pub(super) fn origin(&self) -> String {
        format!("{}://{}", self.scheme, host_port::join(&self.host, self.port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_addresses_as_kubectl_does() {
        for (text, shown, prefix) in [
            ("https://h", "https://h:443", ""),
            ("https://h:6443/", "https://h:6443", ""),
            ("https://[::1]:6443/a/b/", "https://[::1]:6443", "/a/b"),
            ("h:8080", "http://h:8080", ""),
            ("localhost", "http://localhost:80", ""),
            ("https://ann:secret@h", "https://h:443", ""),
        ] {
            let server = Server::parse(text, "").unwrap();
            assert_eq!((server.origin().as_str(), server.prefix.as_str()), (shown, prefix), "{text}");
        }
    }

    #[test]
    fn error_for_invalid_address_does_not_repeat_it() {
        for text in
            ["", "https://", "ftp://ann:secret@h", "https://ann:secret@h:99999", "https://ann:secret@ä"]
        {
            let error = Server::parse(text, "").map(|server| server.origin()).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{text}: {error}");
        }
        assert!(matches!(Server::parse("https://h", "not a name"), Err(BuildError::ServerName(_))));
    }

    #[test]
    fn matches_only_the_servers_own_addresses() {
        let server = Server::parse("https://h/prefix", "").unwrap();
        let at = |text: &str| {
            let uri: http::Uri = text.parse().unwrap();
            server.matches(uri.scheme_str(), uri.authority().unwrap())
        };
        assert!(at("https://h/x") && at("https://H:443/x"));
        assert!(!at("http://h/x") && !at("https://h:444/x") && !at("https://other/x"));
    }
}
