//! Attaches a credential to a request. For a cached credential this costs a few atomic operations and no allocation beyond
//! what the header map needs.

use std::sync::Arc;

use http::header::{AUTHORIZATION, HeaderMap};

use crate::credential::{Credential, CredentialSource};

/// Adds the cached credential, if any, to a request's headers. Returns it, because it also selects the connection.
///
/// ```
/// use http::HeaderMap;
/// use navicert_client::credential::CredentialSource;
/// use navicert_client::transport::attach_cached;
///
/// fn prepare(source: &dyn CredentialSource) -> HeaderMap {
///     let mut headers = HeaderMap::new();
///     if attach_cached(source, &mut headers).is_none() {
///         // Nothing is cached: `source.get(…)` gets a credential.
///     }
///     headers
/// }
/// # let _ = prepare;
/// ```
pub fn attach_cached(source: &dyn CredentialSource, headers: &mut HeaderMap) -> Option<Arc<Credential>> {
    let credential = source.cached()?;
    attach(&credential, headers);
    Some(credential)
}

/// Adds a credential to a request's headers, unless the request already has an `Authorization` header.
// C167, C471
pub fn attach(credential: &Credential, headers: &mut HeaderMap) {
    if let Some(authorization) = &credential.authorization
        && !headers.contains_key(AUTHORIZATION)
    {
        headers.insert(AUTHORIZATION, authorization.clone());
    }
}
