//! The credential a request carries, and the seam between whoever has one and whoever sends it.
//!
//! ```text
//! kubeconfig::Effective ──which source wins──▶ dyn CredentialSource ──▶ Arc<Credential> ──▶ transport
//!                         (fixed, files, exec, signer, oidc) ▲                                 │
//!                                                            └──────── refused(generation) ◀───┘
//! ```
//!
//! No runtime is needed, except by [`Oidc`]: every future here is woken by the thread that does the work.

mod block_on;
mod certificate_files;
mod choose;
pub(crate) mod claims;
mod error;
mod fixed;
pub(crate) mod hardware_key;
mod identity;
mod oidc;
mod token_file;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode};
use navicert_types::Timestamp;

use crate::kubeconfig::Files;

pub use block_on::block_on;
pub use certificate_files::CertificateFiles;
#[cfg(test)]
pub(crate) use certificate_files::PairFiles;
pub use choose::{ChooseError, choose};
pub use error::CredentialError;
pub use fixed::Fixed;
pub use hardware_key::{HardwareKey, SignerConfigError, SignerError};
pub use identity::{Identity, IdentityError, Validity};
pub use oidc::{Oidc, OidcError, TokenStore};
pub use token_file::{TokenFile, TokenFileError};

/// A future that can be sent anywhere.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Files that several sources read.
pub type SharedFiles = Arc<dyn Files + Send + Sync>;

/// Which credential of a source this is. The first is 1; every one that differs from its predecessor has a larger
/// number, and no number is given twice by one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u64);

impl Generation {
    /// The first generation of any source.
    pub const FIRST: Generation = Generation(1);

    /// The one after this.
    #[must_use]
    pub fn next(self) -> Self {
        Generation(self.0.saturating_add(1))
    }

    /// As a number, for logs and metrics.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What proves who is calling: a header, a client certificate, both, or (anonymous) neither.
///
/// Immutable and shared: expiry, header and certificate are replaced together or not at all (C414).
#[derive(Clone)]
pub struct Credential {
    /// Which credential of its source this is (C460).
    pub generation: Generation,
    /// The value of `Authorization`, whole (`Bearer …`, `Basic …`) and marked sensitive. A request that already has
    /// that header is left alone (C471).
    pub authorization: Option<HeaderValue>,
    /// The certificate chain and its key. A change of generation does not always mean another identity: compare with
    /// [`Identity::is_same`] (C464). From some to `None` is a rotation too (C465).
    pub identity: Option<Arc<Identity>>,
    /// When it expires; `None` is never.
    pub expires: Option<Timestamp>,
}

impl Credential {
    /// Nobody in particular.
    pub fn anonymous() -> Self {
        Credential { generation: Generation::FIRST, authorization: None, identity: None, expires: None }
    }

    /// Whether the two present the same client certificate, or both none.
    pub fn has_same_identity(&self, other: &Credential) -> bool {
        match (&self.identity, &other.identity) {
            (None, None) => true,
            (Some(one), Some(another)) => one.is_same(another),
            _ => false,
        }
    }
}

/// Shows what there is, not what it says.
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

/// Who is asking for a credential, which decides whether a wait after failures applies (C443).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asking {
    /// Nobody is watching: an informer, a retry. Obeys every wait.
    #[default]
    Background,
    /// A person asked for this request: the wait after a failed interactive run does not apply.
    Foreground,
}

/// How a server turned a credential down.
#[derive(Clone, Debug)]
pub enum Refused {
    /// With status 401. The answer is passed on to plugins that speak v1alpha1 and to nobody else (C202).
    Unauthorized(Option<Arc<Answer>>),
    /// With a fatal TLS alert about the client certificate (C435).
    TlsAlert,
}

/// The head of an answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
}

/// Somewhere credentials come from.
///
/// A request asks [`ready`](CredentialSource::ready) first, and only if that has nothing awaits
/// [`current`](CredentialSource::current). When the server turns the credential down, it says so with
/// [`refused`](CredentialSource::refused), and may send the request once more if that brings something new (C432).
///
/// ```
/// use navicert_client::credential::{Asking, CredentialError, CredentialSource, Credential, Refused};
/// use std::sync::Arc;
///
/// async fn attach(source: &dyn CredentialSource) -> Result<Arc<Credential>, CredentialError> {
///     match source.ready() {
///         Some(credential) => Ok(credential),
///         None => source.current(Asking::Background).await,
///     }
/// }
/// ```
pub trait CredentialSource: fmt::Debug + Send + Sync {
    /// The credential, if there is one that is fresh: no wait, no lock, no allocation. The source reads its own clock,
    /// and only if the credential can expire.
    fn ready(&self) -> Option<Arc<Credential>>;

    /// The credential, got anew if need be. Dropping the future stops the waiting, not the work (C422).
    ///
    /// The error is the same for everybody who waited (C421). It is shown to users as `getting credentials: <error>`
    /// (C326): the transport adds that.
    fn current(&self, asking: Asking) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>>;

    /// The credential of this generation was turned down: get another one, if that one is still current.
    ///
    /// `Ok(Some(_))` is a credential that differs from the one that was turned down (perhaps got by somebody else
    /// meanwhile). `Ok(None)` means nothing new: the source cannot get another one, may not yet, or got the same
    /// again.
    ///
    /// # Errors
    /// The attempt failed; the old credential stays, and the caller returns the answer it has (C430).
    fn refused(
        &self,
        generation: Generation,
        reason: Refused,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>>;

    /// Whether the server may be called before there is a credential. Not where a human is asked for a PIN first: the
    /// server's patience would run out meanwhile (C842, C845).
    fn may_call_ahead(&self) -> bool {
        true
    }

    /// What to tell the user about a refusal that stays one, if this source knows something: a plugin that is
    /// configured but not used because of a static credential (C168), say.
    fn hint(&self) -> Option<&str> {
        None
    }
}
