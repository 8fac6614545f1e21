//! What is asked of whoever has a socket: one GET, with its limits and with whom to trust. This crate has none.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use navicert_types::Secret;

use crate::config::{CompiledIssuer, Egress};
use crate::profile::{Profile, Rule};

/// A future that can be sent anywhere.
pub type BoxFuture<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// Gets documents over HTTP.
///
/// An implementation follows redirects within the limits, checks certificates against the given roots (and no
/// others), stops reading at the size limit and gives up when the time is over. Any status is an answer, not an
/// error. It keeps no document: what is fresh and what is stale is decided by whoever asks.
///
/// ```
/// use navicert_authn::jwks::{BoxFuture, Fetch, FetchError, FetchRequest, Fetched};
///
/// /// Answers everything with an empty key set.
/// #[derive(Debug)]
/// struct NoKeys;
///
/// impl Fetch for NoKeys {
///     fn get<'f>(&'f self, request: FetchRequest<'f>) -> BoxFuture<'f, Result<Fetched, FetchError>> {
///         let answer = Fetched::new(200, request.url, br#"{"keys": []}"#);
///         Box::pin(std::future::ready(Ok(answer)))
///     }
/// }
/// ```
pub trait Fetch: fmt::Debug + Send + Sync {
    /// Gets one document.
    fn get<'f>(&'f self, request: FetchRequest<'f>) -> BoxFuture<'f, Result<Fetched, FetchError>>;
}

/// One GET.
#[derive(Clone, Copy, Debug)]
pub struct FetchRequest<'r> {
    /// The whole address.
    pub url: &'r str,
    /// What a relative redirect is resolved against, if not the address itself (S156).
    pub known_as: Option<&'r str>,
    /// Sent as `Authorization: Bearer`, and never to another host.
    pub bearer: Option<&'r Secret<String>>,
    /// The only roots, in DER; empty: the system's (S153).
    pub roots: &'r [Vec<u8>],
    /// The way out (S154).
    pub egress: Option<Egress>,
    /// How much, how far, how long.
    pub limits: FetchLimits,
}

/// How much, how far, how long (S152, H18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Bytes of the body.
    pub bytes: usize,
    /// How many redirects are followed.
    pub redirects: usize,
    /// A redirect may not lead to another scheme.
    pub keeps_scheme: bool,
    /// A redirect may not lead to another host (H23).
    pub keeps_host: bool,
    /// Loopback and link-local addresses are not spoken to (H23). Names are judged by what they resolve to.
    pub public_only: bool,
    /// From the first byte out to the last byte in.
    pub time: Duration,
}

impl FetchLimits {
    /// What a profile allows.
    pub fn of(profile: &Profile) -> Self {
        let capped = profile.has(Rule::H18);
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
    /// A request to an issuer, the way its configuration says.
    pub fn to(issuer: &'r CompiledIssuer, url: &'r str, profile: &Profile) -> Self {
        FetchRequest {
            url,
            known_as: None,
            bearer: None,
            roots: &issuer.certificate_authority,
            egress: issuer.egress,
            limits: FetchLimits::of(profile),
        }
    }
}

/// An answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its status.
    pub status: u16,
    /// Where it came from after all redirects.
    pub url: String,
    /// Its headers; names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Fetched {
    /// An answer without headers.
    pub fn new(status: u16, url: &str, body: &[u8]) -> Self {
        Fetched { status, url: url.to_owned(), headers: Vec::new(), body: body.to_vec() }
    }

    /// The values of a header, all of them, joined as HTTP joins them.
    pub fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> =
            self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}

/// A body may be a token (S174): it is not shown.
impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetched")
            .field("status", &self.status)
            .field("url", &self.url)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// How far a request came, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The address can be used.
    Address,
    /// The name has addresses.
    Lookup,
    /// Somebody listens there.
    Connect,
    /// A proxy lets us through.
    Proxy,
    /// TLS is agreed on, with somebody trusted.
    Tls,
    /// An answer in HTTP, within limits.
    Http,
}

/// Why there is no answer, and how far the request came.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct FetchError {
    /// Where it failed.
    pub stage: Stage,
    /// What failed.
    pub what: String,
    /// Why.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl FetchError {
    /// A failure that speaks for itself.
    pub fn new(stage: Stage, what: impl Into<String>) -> Self {
        FetchError { stage, what: what.into(), source: None }
    }

    /// What failed and why, down to the first cause, on one line.
    pub fn chain(&self) -> String {
        let mut text = self.what.clone();
        let mut source = self.source();
        while let Some(error) = source {
            let next = error.to_string();
            // Some libraries repeat their cause in their own text.
            if !text.contains(&next) {
                text = format!("{text}: {next}");
            }
            source = error.source();
        }
        text
    }
}
