//! A credential that stays as it is: a token, a password, a certificate, or nobody in particular.

use std::sync::Arc;

use super::{Asking, BoxFuture, Credential, CredentialError, CredentialSource, Generation, Refused};

/// Always the same credential.
#[derive(Clone, Debug)]
pub struct Fixed {
    credential: Arc<Credential>,
    hint: Option<String>,
}

impl Fixed {
    /// This one.
    pub fn new(credential: Credential) -> Self {
        Fixed { credential: Arc::new(credential), hint: None }
    }

    /// With something to tell the user when it is turned down (C168).
    #[must_use]
    pub fn with_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl CredentialSource for Fixed {
    fn ready(&self) -> Option<Arc<Credential>> {
        Some(Arc::clone(&self.credential))
    }

    fn current(&self, _: Asking) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(async { Ok(Arc::clone(&self.credential)) })
    }

    fn refused(
        &self,
        _: Generation,
        _: Refused,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        Box::pin(async { Ok(None) })
    }

    fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}
