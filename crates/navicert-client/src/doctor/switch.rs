//! A credential source that is replaced during the diagnosis, so that requests with and without a credential can share a
//! connection.

use std::sync::{Arc, Mutex, PoisonError};

use crate::credential::{
    BoxFuture, Credential, CredentialError, CredentialSource, Generation, Rejection, RequestOrigin,
    StaticCredential,
};

/// Anonymous until another source is set.
#[derive(Debug)]
pub(super) struct SwitchableCredential(Mutex<Arc<dyn CredentialSource>>);

impl SwitchableCredential {
    pub(super) fn anonymous() -> Self {
        SwitchableCredential(Mutex::new(Arc::new(StaticCredential::new(Credential::anonymous()))))
    }

    pub(super) fn set(&self, source: Arc<dyn CredentialSource>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = source;
    }

    fn current(&self) -> Arc<dyn CredentialSource> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl CredentialSource for SwitchableCredential {
    fn cached(&self) -> Option<Arc<Credential>> {
        self.current().cached()
    }

    fn get(&self, origin: RequestOrigin) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        let source = self.current();
        Box::pin(async move { source.get(origin).await })
    }

    fn refresh_rejected(
        &self,
        generation: Generation,
        reason: Rejection,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        let source = self.current();
        Box::pin(async move { source.refresh_rejected(generation, reason).await })
    }
}
