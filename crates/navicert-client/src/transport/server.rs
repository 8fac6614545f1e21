//! The server's address, taken apart once: where to connect, what to call it, and what all paths begin with.

use http::uri::{Authority, PathAndQuery, Scheme};
use rustls_pki_types::ServerName;

use super::error::{BuildError, TransportError};
use super::proxy::{host_and_port, join};
use crate::kubeconfig::Address;

/// One API server.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) scheme: Scheme,
    pub(super) host: String,
    pub(super) port: u16,
    /// As written, without user information.
    pub(super) authority: Authority,
    /// What requests' paths are below, without a slash at the end; mostly empty.
    prefix: String,
    pub(super) name: ServerName<'static>,
}

impl Server {
    /// Reads an address as kubectl does: without a scheme it is plain http (C161).
    pub(super) fn parse(text: &str, tls_server_name: &str) -> Result<Self, BuildError> {
        let unusable = |reason: &str| BuildError::Server(reason.to_owned());
        let completed;
        let mut address = Address::parse_without_fragment(text);
        if !address.as_ref().is_ok_and(|address| !address.scheme.is_empty() && !address.host.is_empty()) {
            completed = format!("http://{text}");
            address = Address::parse_without_fragment(&completed);
            if address.as_ref().is_ok_and(|address| !matches!(address.path, "" | "/")) {
                return Err(unusable("neither a URL nor host:port"));
            }
        }
        let address = address.map_err(|error| BuildError::Server(error.to_string()))?;
        let (scheme, usual_port) = match address.scheme.as_str() {
            "https" => (Scheme::HTTPS, 443),
            "http" => (Scheme::HTTP, 80),
            _ => return Err(unusable("its scheme is neither https nor http")),
        };
        let (host, port) = host_and_port(address.host).ok_or_else(|| unusable("it has no host"))?;
        let name = if tls_server_name.is_empty() { host } else { tls_server_name };
        Ok(Server {
            authority: Authority::try_from(address.host)?,
            prefix: address.path.trim_end_matches('/').to_owned(),
            host: host.to_owned(),
            port: port.unwrap_or(usual_port),
            name: ServerName::try_from(name.to_owned())
                .map_err(|_| BuildError::ServerName(name.to_owned()))?,
            scheme,
        })
    }

    pub(super) fn is_https(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// Whether a whole address is this server's.
    pub(super) fn is_at(&self, scheme: Option<&str>, authority: &Authority) -> bool {
        let usual_port = if self.is_https() { 443 } else { 80 };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        scheme.is_none_or(|scheme| scheme.eq_ignore_ascii_case(self.scheme.as_str()))
            && host.eq_ignore_ascii_case(&self.host)
            && authority.port_u16().unwrap_or(usual_port) == self.port
    }

    /// A path below the server's own.
    pub(super) fn below(&self, path: PathAndQuery) -> Result<PathAndQuery, TransportError> {
        if self.prefix.is_empty() {
            return Ok(path);
        }
        let whole = PathAndQuery::try_from(format!("{}{path}", self.prefix)).map_err(http::Error::from)?;
        Ok(whole)
    }

    /// Scheme, host and port.
    pub(super) fn shown(&self) -> String {
        format!("{}://{}", self.scheme, join(&self.host, self.port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_as_kubectl_does() {
        for (text, shown, prefix) in [
            ("https://h", "https://h:443", ""),
            ("https://h:6443/", "https://h:6443", ""),
            ("https://[::1]:6443/a/b/", "https://[::1]:6443", "/a/b"),
            ("h:8080", "http://h:8080", ""),
            ("localhost", "http://localhost:80", ""),
            ("https://ann:secret@h", "https://h:443", ""),
        ] {
            let server = Server::parse(text, "").unwrap();
            assert_eq!((server.shown().as_str(), server.prefix.as_str()), (shown, prefix), "{text}");
        }
    }

    #[test]
    fn an_unusable_address_is_an_error_that_does_not_repeat_it() {
        for text in
            ["", "https://", "ftp://ann:secret@h", "https://ann:secret@h:99999", "https://ann:secret@ä"]
        {
            let error = Server::parse(text, "").map(|server| server.shown()).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{text}: {error}");
        }
        assert!(matches!(Server::parse("https://h", "not a name"), Err(BuildError::ServerName(_))));
    }

    #[test]
    fn only_the_servers_own_addresses_are_its_own() {
        let server = Server::parse("https://h/prefix", "").unwrap();
        let at = |text: &str| {
            let uri: http::Uri = text.parse().unwrap();
            server.is_at(uri.scheme_str(), uri.authority().unwrap())
        };
        assert!(at("https://h/x") && at("https://H:443/x"));
        assert!(!at("http://h/x") && !at("https://h:444/x") && !at("https://other/x"));
    }
}
