//! The HTTP interface that the caller implements: one GET with limits and trust roots. This crate opens no sockets.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use navicert_types::Secret;

use crate::config::{CompiledIssuer, Egress};
use crate::profile::{AuthnProfile, Hardening};

/// A boxed future that is `Send`.
pub type BoxFuture<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// Fetches documents over HTTP.
///
/// An implementation follows redirects within the limits, verifies certificates against the given roots only, stops reading
/// at the size limit and fails at the time limit. Every status is a response, not an error. Responses are not cached: the
/// caller decides how long they are fresh.
///
/// ```
/// use navicert_authn::jwks::{BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse};
///
/// /// Responds to every request with an empty key set.
/// #[derive(Debug)]
/// struct NoKeys;
///
/// impl Fetch for NoKeys {
///     fn get<'f>(&'f self, request: FetchRequest<'f>) -> BoxFuture<'f, Result<FetchResponse, FetchError>> {
///         let response = FetchResponse::new(200, request.url, br#"{"keys": []}"#);
///         Box::pin(std::future::ready(Ok(response)))
///     }
/// }
/// ```
pub trait Fetch: fmt::Debug + Send + Sync {
    /// Fetches one document.
    fn get<'f>(&'f self, request: FetchRequest<'f>) -> BoxFuture<'f, Result<FetchResponse, FetchError>>;
}

/// One GET request.
#[derive(Clone, Copy, Debug)]
pub struct FetchRequest<'r> {
    /// The absolute URL.
    pub url: &'r str,
    /// Base URL for relative redirects, if not `url` itself.
    // S156
    pub redirect_base: Option<&'r str>,
    /// Sent as `Authorization: Bearer`, and never to another host.
    pub bearer: Option<&'r Secret<String>>,
    /// The only trusted roots, in DER; empty: the system roots.
    // S153
    pub roots: &'r [Vec<u8>],
    /// The egress selector.
    // S154
    pub egress: Option<Egress>,
    /// Limits of the exchange.
    pub limits: FetchLimits,
}

/// Limits of an exchange.
// S152, H18
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Maximum size of the body in bytes.
    pub bytes: usize,
    /// Maximum number of redirects.
    pub redirects: usize,
    /// Redirects may not change the scheme.
    pub keeps_scheme: bool,
    /// Redirects may not change the host.
    // H23
    pub keeps_host: bool,
    /// Loopback and link-local addresses are not connected to, also when a host name resolves to one.
    // H23
    pub public_only: bool,
    /// Maximum duration of the whole exchange.
    pub time: Duration,
}

impl FetchLimits {
    /// The limits of a profile.
    pub fn for_profile(profile: &AuthnProfile) -> Self {
        let capped = profile.has(Hardening::BoundedResponses);
        FetchLimits {
            bytes: if capped { 1 << 20 } else { usize::MAX },
            redirects: if capped { 5 } else { 10 },
            keeps_scheme: capped,
            keeps_host: false,
            public_only: false,
            time: Duration::from_secs(30),
        }
    }
}

impl<'r> FetchRequest<'r> {
    /// A request to an issuer with the trust roots and egress of its configuration.
    pub fn for_issuer(issuer: &'r CompiledIssuer, url: &'r str, profile: &AuthnProfile) -> Self {
        FetchRequest {
            url,
            redirect_base: None,
            bearer: None,
            roots: &issuer.certificate_authority,
            egress: issuer.egress,
            limits: FetchLimits::for_profile(profile),
        }
    }
}

/// A response.
#[derive(Clone, PartialEq, Eq)]
pub struct FetchResponse {
    /// The status code.
    pub status: u16,
    /// The URL after all redirects.
    pub url: String,
    /// The headers; names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl FetchResponse {
    /// A response without headers.
    pub fn new(status: u16, url: &str, body: &[u8]) -> Self {
        FetchResponse { status, url: url.to_owned(), headers: Vec::new(), body: body.to_vec() }
    }

    /// All values of a header, joined with commas.
    pub fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> =
            self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}

/// The body is not shown: it may be a token.
// S174
impl fmt::Debug for FetchResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchResponse")
            .field("status", &self.status)
            .field("url", &self.url)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// The stage at which a request failed, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FetchStage {
    /// The URL is usable.
    Address,
    /// The host name resolves.
    Lookup,
    /// The TCP connection is established.
    Connect,
    /// The proxy connects.
    Proxy,
    /// The TLS handshake succeeds with a trusted certificate.
    Tls,
    /// An HTTP response arrives within the limits.
    Http,
}

/// Why a request failed, and at which stage.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct FetchError {
    /// The stage.
    pub stage: FetchStage,
    /// What failed.
    pub what: String,
    /// The cause.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl FetchError {
    /// An error without a cause.
    pub fn new(stage: FetchStage, what: impl Into<String>) -> Self {
        FetchError { stage, what: what.into(), source: None }
    }
}
