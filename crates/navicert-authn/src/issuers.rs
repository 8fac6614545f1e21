//! Finds the authenticator for a token's `iss`.
// S105, S106

use std::collections::HashMap;
use std::sync::Arc;

use crate::authenticator::IssuerAuthenticator;
use crate::jwt::claims::routing_issuer;

/// Authenticators by issuer. A few are compared one by one, which is faster than hashing the token's `iss`.
#[derive(Debug)]
pub(crate) enum Issuers {
    Few(Vec<Arc<IssuerAuthenticator>>),
    Many(HashMap<String, Arc<IssuerAuthenticator>>),
}

const MAX_LINEAR_ISSUERS: usize = 8;

impl Issuers {
    pub(crate) fn new(authenticators: impl Iterator<Item = IssuerAuthenticator>) -> Self {
        let issuer = |one: IssuerAuthenticator| (one.configuration.issuer.url.clone(), Arc::new(one));
        let all: HashMap<_, _> = authenticators.map(issuer).collect();
        if all.len() <= MAX_LINEAR_ISSUERS {
            Issuers::Few(all.into_values().collect())
        } else {
            Issuers::Many(all)
        }
    }

    /// The authenticator of an issuer, by its exact URL.
    pub(crate) fn find(&self, issuer: &str) -> Option<&Arc<IssuerAuthenticator>> {
        let issuer = routing_issuer(issuer);
        match self {
            Issuers::Few(few) => few.iter().find(|one| one.configuration.issuer.url == issuer),
            Issuers::Many(many) => many.get(issuer),
        }
    }

    /// Every authenticator, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<IssuerAuthenticator>> {
        let (few, many) = match self {
            Issuers::Few(few) => (Some(few), None),
            Issuers::Many(many) => (None, Some(many)),
        };
        few.into_iter().flatten().chain(many.into_iter().flat_map(HashMap::values))
    }
}
