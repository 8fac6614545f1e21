//! From the `iss` of a token to the one authenticator that may judge it (S105, S106).

use std::collections::HashMap;
use std::sync::Arc;

use crate::authenticator::Authenticator;
use crate::jwt::claims::routed;

/// Authenticators by issuer.
#[derive(Debug)]
pub(crate) struct Issuers(HashMap<String, Arc<Authenticator>>);

impl Issuers {
    pub(crate) fn new(authenticators: impl Iterator<Item = Authenticator>) -> Self {
        Issuers(authenticators.map(|one| (one.configuration.issuer.url.clone(), Arc::new(one))).collect())
    }

    /// The authenticator of an issuer, by its exact URL.
    pub(crate) fn find(&self, issuer: &str) -> Option<&Arc<Authenticator>> {
        self.0.get(routed(issuer))
    }

    /// Every authenticator, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Authenticator>> {
        self.0.values()
    }
}
