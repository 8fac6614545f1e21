//! Why a request got no answer, or an answer no end.

use std::io;

use http::uri::InvalidUri;
use navicert_signer::SignError;
use thiserror::Error;

use super::proxy::ProxyError;
use crate::credential::{ChooseError, CredentialError};

/// Why a request failed. No variant holds a header, a token or a key.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransportError {
    /// There is no credential to send (C326).
    #[error("getting credentials: {0}")]
    Credentials(#[source] CredentialError),
    /// The request names another server than the one the credentials are for.
    #[error("the request is for `{asked}`, but this client is for `{server}`")]
    OtherServer {
        /// The scheme and authority asked for.
        asked: String,
        /// The server.
        server: String,
    },
    /// The request's path does not go together with the server's address.
    #[error("the request's path makes no address")]
    Path(#[from] http::Error),
    /// The server's name has no address.
    #[error("look up `{host}`")]
    Lookup {
        /// The name.
        host: String,
        /// The resolver's word.
        source: io::Error,
    },
    /// The server's name leads to addresses that this client leaves alone.
    #[error("`{host}` leads to this machine or its own network link, which is not allowed here")]
    PrivateAddress {
        /// The name.
        host: String,
    },
    /// Nobody answers there.
    #[error("connect to `{address}`")]
    Connect {
        /// Host and port.
        address: String,
        /// The operating system's word.
        source: io::Error,
    },
    /// It took too long to connect (C182).
    #[error("connect to `{address}`: no answer within {seconds} s")]
    ConnectTimeout {
        /// Host and port.
        address: String,
        /// The limit.
        seconds: u64,
    },
    /// The proxy did not let us through.
    #[error("proxy `{proxy}`")]
    Proxy {
        /// Its address, without user information.
        proxy: String,
        /// What it said.
        source: ProxyError,
    },
    /// TLS could not be agreed on.
    #[error("TLS handshake with `{name}`")]
    Handshake {
        /// The name the certificate was checked for.
        name: String,
        /// What went wrong.
        source: io::Error,
    },
    /// The TLS handshake took too long (C182).
    #[error("TLS handshake with `{name}`: no answer within {seconds} s")]
    HandshakeTimeout {
        /// The name the certificate would have been checked for.
        name: String,
        /// The limit.
        seconds: u64,
    },
    /// The server turned the client certificate down with a fatal alert (C435).
    #[error("the server turned the client certificate down: {alert}")]
    CertificateRefused {
        /// The alert's name.
        alert: String,
    },
    /// The key of the client certificate did not sign (§8).
    #[error("the client certificate's key: {}", .0.with_sources())]
    Signer(SignError),
    /// The server had gone when a slow signer was done, twice (C842).
    #[error(
        "TLS handshake with `{name}`: signing took {seconds} s, and a server waits about half a minute; touch the device when it blinks, and enter its PIN beforehand with `navicert signer serve`"
    )]
    SlowSigner {
        /// The name the certificate was checked for.
        name: String,
        /// How long the second attempt took.
        seconds: u64,
    },
    /// The connection broke, or the server does not speak HTTP.
    #[error("exchange with the server")]
    Http(#[source] hyper::Error),
    /// The connection belongs to a credential that has been replaced, and was closed (C463). Try again.
    #[error("the connection was closed because its client certificate has been replaced; try again")]
    Retired,
    /// The client certificate cannot be used for TLS.
    #[error("client certificate")]
    Identity(#[source] rustls::Error),
    /// The answer is not the gzip stream it says it is.
    #[error("decompress the answer")]
    Decompress(#[source] io::Error),
}

impl TransportError {
    /// Whether the same request may succeed when sent again: the network's doing, not a configuration's.
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
            | TransportError::PrivateAddress { .. }
            | TransportError::Path(_)
            | TransportError::Handshake { .. }
            | TransportError::Identity(_)
            | TransportError::Signer(_)
            | TransportError::SlowSigner { .. }
            | TransportError::CertificateRefused { .. }
            | TransportError::Decompress(_) => false,
        }
    }
}

/// Why there is no transport.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The server's address cannot be used. It is not repeated: there may be a password in it.
    #[error("the server's address cannot be used: {0}")]
    Server(String),
    /// The server's address is no URI.
    #[error("the server's address cannot be used")]
    Uri(#[from] InvalidUri),
    /// The name to check the server's certificate for is none.
    #[error("`{0}` is neither a DNS name nor an IP address")]
    ServerName(String),
    /// What the user has is no credential.
    #[error(transparent)]
    Credentials(#[from] ChooseError),
    /// Both a certificate authority and no check (C180).
    #[error("specifying a root certificates file with the insecure flag is not allowed")]
    InsecureWithAuthority,
    /// The certificate authority's file cannot be read.
    #[error("unable to read certificate-authority `{path}`")]
    ReadAuthority {
        /// The file.
        path: String,
        /// The operating system's word.
        source: io::Error,
    },
    /// There is no certificate in what should be a certificate authority's.
    #[error("unable to load root certificates: no certificate in it can be read")]
    ParseAuthority,
    /// The proxy's address cannot be used.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// Something to impersonate cannot be a header.
    #[error("impersonate: {field} cannot be sent as a header")]
    Impersonate {
        /// Which one.
        field: &'static str,
    },
    /// The cryptographic library does not take the settings.
    #[error("TLS settings")]
    Tls(#[source] rustls::Error),
}
