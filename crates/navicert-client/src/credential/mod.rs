//! Credentials, and the sources that provide them to the transport.
//!
//! ```text
//! Config ──▶ dyn CredentialSource ──▶ Arc<Credential> ──▶ transport
//!  (static, files, exec, signer, oidc) ▲                    │
//!                                      └── refresh_rejected(generation)
//! ```
//!
//! No async runtime is needed, except by `Oidc`: the thread that does the work wakes the future.

mod bearer;
mod block_on;
mod certificate_files;
#[cfg(any(feature = "doctor", feature = "oidc"))]
pub(crate) mod claims;
mod error;
#[cfg(feature = "signer")]
pub(crate) mod external_signer;
mod identity;
#[cfg(feature = "oidc")]
mod oidc;
mod static_credential;
mod token_file;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode};
use navicert_types::Timestamp;

use crate::kubeconfig::FileSystem;

#[cfg(feature = "exec")]
pub(crate) use bearer::BearerError;
pub(crate) use bearer::bearer;
pub use block_on::block_on;
pub(crate) use certificate_files::{CertificateFiles, KeyPairFiles};
pub use error::CredentialError;
#[cfg(feature = "signer")]
pub use external_signer::SignerError;
#[cfg(feature = "signer")]
pub(crate) use external_signer::{ExternalSigner, SignerPlan};
pub use identity::{ClientIdentity, IdentityError, Validity};
#[cfg(feature = "oidc")]
pub use oidc::OidcError;
#[cfg(feature = "oidc")]
pub(crate) use oidc::{Oidc, OidcSettings};
pub use static_credential::StaticCredential;
pub use token_file::TokenFileError;
pub(crate) use token_file::{TokenFile, read_token_file};

/// A boxed future that is `Send`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A file system shared by several sources.
pub type SharedFiles = Arc<dyn FileSystem + Send + Sync>;

/// The version of a source's credential. The first is 1; every credential that differs from its predecessor has a
/// larger number, and a source never reuses a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u64);

impl Generation {
    /// The first generation of any source.
    pub const FIRST: Generation = Generation(1);

    /// The next generation.
    #[must_use]
    pub fn next(self) -> Self {
        Generation(self.0.saturating_add(1))
    }

    /// The generation as a number, for logs and metrics.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What authenticates a request: a header, a client certificate, both, or (anonymous) neither.
///
/// Immutable and shared: expiry, header and certificate are always replaced together.
// C414
#[derive(Clone)]
pub struct Credential {
    /// The version of this credential.
    // C460
    pub generation: Generation,
    /// The complete value of `Authorization` (`Bearer …`, `Basic …`), marked sensitive. A request that already has that
    /// header keeps its own.
    // C471
    pub authorization: Option<HeaderValue>,
    /// The certificate chain and its key. A new generation may have the same identity: compare with
    /// [`ClientIdentity::has_same_chain`]. A change from some to `None` is a rotation too.
    // C464, C465
    pub identity: Option<Arc<ClientIdentity>>,
    /// When it expires; `None` is never.
    pub expires: Option<Timestamp>,
}

impl Credential {
    /// No credential.
    pub fn anonymous() -> Self {
        Credential { generation: Generation::FIRST, authorization: None, identity: None, expires: None }
    }

    /// Whether both present the same client certificate, or none.
    pub fn has_same_identity(&self, other: &Credential) -> bool {
        match (&self.identity, &other.identity) {
            (None, None) => true,
            (Some(one), Some(another)) => one.has_same_chain(another),
            _ => false,
        }
    }
}

/// Shows which parts are set, not their values.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("generation", &self.generation.0)
            .field("authorization", &self.authorization.is_some())
            .field("identity", &self.identity)
            .field("expires", &self.expires)
            .finish()
    }
}

/// Whether a person waits for a request, which decides whether backing off after failures applies.
// C443
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestOrigin {
    /// No person waits: an informer, a retry. Always backs off.
    #[default]
    Background,
    /// A person waits for this request: backing off after a failed interactive run does not apply.
    Foreground,
}

/// How a server rejected a credential.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Rejection {
    /// With status 401. The response is passed to plugins that use v1alpha1 only.
    // C202
    Unauthorized(Option<Arc<RejectedResponse>>),
    /// With a fatal TLS alert about the client certificate.
    // C435
    TlsAlert,
}

/// Status and headers of a 401 response.
#[derive(Clone, Debug)]
pub struct RejectedResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
}

/// Provides credentials.
///
/// A request calls [`cached`](CredentialSource::cached) first, and awaits [`get`](CredentialSource::get) only if
/// nothing is cached. When the server rejects the credential, the transport calls
/// [`refresh_rejected`](CredentialSource::refresh_rejected) and retries the request once if that returns a new
/// credential.
///
/// ```
/// use navicert_client::credential::{Credential, CredentialError, CredentialSource, RequestOrigin};
/// use std::sync::Arc;
///
/// async fn attach(source: &dyn CredentialSource) -> Result<Arc<Credential>, CredentialError> {
///     match source.cached() {
///         Some(credential) => Ok(credential),
///         None => source.get(RequestOrigin::Background).await,
///     }
/// }
/// ```
// C432
pub trait CredentialSource: fmt::Debug + Send + Sync {
    /// The cached credential, if it has not expired: never waits, locks or allocates. The source reads its clock only
    /// if the credential can expire.
    fn cached(&self) -> Option<Arc<Credential>>;

    /// The credential, fetched if needed. Dropping the future cancels the wait, not the work.
    ///
    /// All callers that waited get the same error. Users see it as `getting credentials: <error>`; the transport adds
    /// the prefix.
    // C422, C421, C326
    fn get(&self, origin: RequestOrigin) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>>;

    /// Gets another credential after this generation was rejected, if it is still the current one.
    ///
    /// `Ok(Some(_))` is a credential that differs from the rejected one (another caller may have fetched it).
    /// `Ok(None)` means that there is no new one: the source cannot get another, is backing off, or got the same again.
    ///
    /// # Errors
    /// The refresh failed; the old credential stays, and the caller returns the response it has.
    // C430
    fn refresh_rejected(
        &self,
        generation: Generation,
        reason: Rejection,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>>;

    /// Whether to open a connection before there is a credential. Not if a person has to enter a PIN first: the server
    /// would time out.
    // C842, C845
    fn may_preconnect(&self) -> bool {
        true
    }

    /// A hint for the user when a credential stays rejected, for example that a static credential disables the
    /// configured plugin.
    // C168
    fn hint(&self) -> Option<&str> {
        None
    }
}
