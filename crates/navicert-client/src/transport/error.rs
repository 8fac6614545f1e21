//! Errors of creating a transport, sending requests and reading responses.

use std::io;

use http::uri::InvalidUri;
use navicert_types::proxy::ProxyError;
use thiserror::Error;

use crate::credential::CredentialError;

/// Why a request failed. No variant holds a header, a token or a key.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The credential source failed.
    // C326
    #[error("getting credentials")]
    Credentials(#[source] CredentialError),
    /// The request URI names another server than the one the credentials are for.
    #[error("request URI `{asked}` does not match the server `{server}`")]
    OtherServer {
        /// Scheme and authority of the request.
        asked: String,
        /// The server.
        server: String,
    },
    /// Request path and server address do not form a valid URI.
    #[error("invalid request path")]
    Path(#[from] http::Error),
    /// The server's name could not be resolved.
    #[error("failed to resolve `{host}`")]
    Lookup {
        /// The name.
        host: String,
        /// Error reported by the resolver.
        source: io::Error,
    },
    /// The server's name resolves only to addresses that the settings forbid.
    #[error("`{host}` resolves to a loopback or link-local address, which is not allowed")]
    LocalAddress {
        /// The name.
        host: String,
    },
    /// The connection could not be opened.
    #[error("failed to connect to `{address}`")]
    Connect {
        /// Host and port.
        address: String,
        /// I/O error reported by the operating system.
        source: io::Error,
    },
    /// Connecting took longer than the timeout.
    // C182
    #[error("failed to connect to `{address}`: timed out after {seconds} s")]
    ConnectTimeout {
        /// Host and port.
        address: String,
        /// The timeout.
        seconds: u64,
    },
    /// The proxy could not be used.
    #[error("failed to connect through proxy `{proxy}`")]
    Proxy {
        /// Its address, without user information.
        proxy: String,
        /// The reason.
        source: ProxyError,
    },
    /// The TLS handshake failed.
    #[error("TLS handshake with `{name}` failed")]
    Handshake {
        /// The name the server's certificate is verified for.
        name: String,
        /// The reason.
        source: io::Error,
    },
    /// The TLS handshake took longer than the timeout.
    // C182
    #[error("TLS handshake with `{name}` timed out after {seconds} s")]
    HandshakeTimeout {
        /// The name the server's certificate is verified for.
        name: String,
        /// The timeout.
        seconds: u64,
    },
    /// The server rejected the client certificate with a fatal TLS alert.
    // C435
    #[error("server rejected the client certificate: {alert}")]
    CertificateRejected {
        /// The alert's name.
        alert: String,
    },
    /// The external signer failed to sign the handshake.
    #[cfg(feature = "signer")]
    #[error("failed to sign with the client certificate's key")]
    Signer(#[source] navicert_signer::SignError),
    /// Signing took so long that the server closed the connection, twice.
    // C842
    #[error(
        "TLS handshake with `{name}` failed: signing took {seconds} s and servers wait about 30 s; touch the device when it blinks, and enter its PIN beforehand"
    )]
    SlowSigner {
        /// The name the server's certificate is verified for.
        name: String,
        /// How long the second attempt took.
        seconds: u64,
    },
    /// The connection failed, or the server's response is not HTTP.
    #[error("HTTP exchange with the server failed")]
    Http(#[source] hyper::Error),
    /// The connection was closed because its client certificate was replaced. The request can be retried.
    // C463
    #[error("connection closed because its client certificate was replaced; try again")]
    Retired,
    /// The client certificate is not usable for TLS.
    #[error("invalid client certificate")]
    Identity(#[source] rustls::Error),
    /// The response body is not a valid gzip stream.
    #[error("failed to decompress the response")]
    Decompress(#[source] io::Error),
}

impl TransportError {
    /// Whether a retry may succeed: a network failure, not a configuration error.
    pub fn is_retriable(&self) -> bool {
        match self {
            TransportError::Retired
            | TransportError::Http(_)
            | TransportError::Lookup { .. }
            | TransportError::Connect { .. }
            | TransportError::ConnectTimeout { .. }
            | TransportError::HandshakeTimeout { .. }
            | TransportError::Proxy { .. } => true,
            TransportError::Credentials(_)
            | TransportError::OtherServer { .. }
            | TransportError::LocalAddress { .. }
            | TransportError::Path(_)
            | TransportError::Handshake { .. }
            | TransportError::Identity(_)
            | TransportError::SlowSigner { .. }
            | TransportError::CertificateRejected { .. }
            | TransportError::Decompress(_) => false,
            #[cfg(feature = "signer")]
            TransportError::Signer(_) => false,
        }
    }
}

/// Why a transport could not be created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The server address is invalid. The text does not repeat it: it may contain a password.
    #[error("invalid server address: {0}")]
    Server(String),
    /// The server address is not a URI.
    #[error("invalid server address")]
    Uri(#[from] InvalidUri),
    /// The name to verify the server's certificate for is invalid.
    #[error("invalid TLS server name `{0}`: neither a DNS name nor an IP address")]
    ServerName(String),
    /// Both a certificate authority and `insecure-skip-tls-verify` are set.
    // C180
    #[error("specifying a root certificates file with the insecure flag is not allowed")]
    InsecureWithAuthority,
    /// The certificate authority file cannot be read.
    #[error("unable to read certificate-authority `{path}`")]
    ReadAuthority {
        /// The file.
        path: String,
        /// I/O error reported by the operating system.
        source: io::Error,
    },
    /// The certificate authority data contains no valid certificate.
    #[error("unable to load root certificates: no valid certificate found")]
    ParseAuthority,
    /// The proxy address is invalid.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// An impersonation value is not valid in a header.
    #[error("invalid impersonation value in `{field}`: not allowed in a header")]
    Impersonate {
        /// The kubeconfig field.
        field: &'static str,
    },
    /// The TLS library rejected the settings.
    #[error("invalid TLS settings")]
    Tls(#[source] rustls::Error),
}
