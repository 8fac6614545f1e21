//! From the `iss` of a token to the one authenticator that may judge it (S105, S106).

use std::collections::HashMap;
use std::sync::Arc;

use crate::authenticator::Authenticator;
use crate::jwt::claims::routed;

/// Authenticators by issuer. A few are compared with one by one, which is quicker than to hash what a token says.
#[derive(Debug)]
pub(crate) enum Issuers {
    Few(Vec<Arc<Authenticator>>),
    Many(HashMap<String, Arc<Authenticator>>),
}

const FEW: usize = 8;

impl Issuers {
    pub(crate) fn new(authenticators: impl Iterator<Item = Authenticator>) -> Self {
        let issuer = |one: Authenticator| (one.configuration.issuer.url.clone(), Arc::new(one));
        let all: HashMap<_, _> = authenticators.map(issuer).collect();
        if all.len() <= FEW { Issuers::Few(all.into_values().collect()) } else { Issuers::Many(all) }
    }

    /// The authenticator of an issuer, by its exact URL.
    pub(crate) fn find(&self, issuer: &str) -> Option<&Arc<Authenticator>> {
        let issuer = routed(issuer);
        match self {
            Issuers::Few(few) => few.iter().find(|one| one.configuration.issuer.url == issuer),
            Issuers::Many(many) => many.get(issuer),
        }
    }

    /// Every authenticator, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Authenticator>> {
        let (few, many) = match self {
            Issuers::Few(few) => (Some(few), None),
            Issuers::Many(many) => (None, Some(many)),
        };
        few.into_iter().flatten().chain(many.into_iter().flat_map(HashMap::values))
    }
}
