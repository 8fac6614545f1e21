//! Putting a credential on a request. On the way every request takes, this costs a few atomic operations and no
//! allocation beyond what the header map itself may need.

use std::sync::Arc;

use http::header::{AUTHORIZATION, HeaderMap};

use crate::credential::{Credential, CredentialSource};

/// Takes the credential that is ready, if there is one, and puts it on a request's headers. The credential is needed
/// once more to choose the connection, so it is given back.
///
/// ```
/// use http::HeaderMap;
/// use navicert_client::credential::CredentialSource;
/// use navicert_client::transport::attach_ready;
///
/// fn prepare(source: &dyn CredentialSource) -> HeaderMap {
///     let mut headers = HeaderMap::new();
///     if attach_ready(source, &mut headers).is_none() {
///         // Nothing is ready: `source.current(…)` gets one.
///     }
///     headers
/// }
/// # let _ = prepare;
/// ```
pub fn attach_ready(source: &dyn CredentialSource, headers: &mut HeaderMap) -> Option<Arc<Credential>> {
    let credential = source.ready()?;
    attach(&credential, headers);
    Some(credential)
}

/// Puts a credential on a request's headers; one that is already there stays (C167, C471).
pub(super) fn attach(credential: &Credential, headers: &mut HeaderMap) {
    if let Some(authorization) = &credential.authorization
        && !headers.contains_key(AUTHORIZATION)
    {
        headers.insert(AUTHORIZATION, authorization.clone());
    }
}
