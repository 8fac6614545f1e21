//! A credential that never changes: a token, a password, a certificate, or none.

use std::sync::Arc;

use super::{BoxFuture, Credential, CredentialError, CredentialSource, Generation, Rejection, RequestOrigin};

/// A source that always returns the same credential.
#[derive(Clone, Debug)]
pub struct StaticCredential {
    credential: Arc<Credential>,
    hint: Option<String>,
}

impl StaticCredential {
    /// Wraps this credential.
    pub fn new(credential: Credential) -> Self {
        StaticCredential { credential: Arc::new(credential), hint: None }
    }

    /// Sets a hint for the user, logged when the server rejects the credential.
    // C168
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl CredentialSource for StaticCredential {
    fn cached(&self) -> Option<Arc<Credential>> {
        Some(Arc::clone(&self.credential))
    }

    fn get(&self, _: RequestOrigin) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(async { Ok(Arc::clone(&self.credential)) })
    }

    fn refresh_rejected(
        &self,
        _: Generation,
        _: Rejection,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        Box::pin(async { Ok(None) })
    }

    fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}
