//! The request of a stored session: how its provider is reached, without the flags of the login.

use crate::args::{ExtensionDefaults, LoginVerb, login_request, parse, split_verb};
use crate::cache::Entry;
use crate::context::LoginContext;
use crate::error::LoginError;
use crate::key::KeyFields;
use crate::request::{Form, LoginRequest};

/// The request with which the provider is reached as at the login. Secrets on the command line were not stored, so that the
/// client of such a session is a public one here.
///
/// # Errors
/// A file of the login is missing, or another root, proxy or client certificate would be trusted.
pub(super) fn stored_request(entry: &Entry, context: &LoginContext) -> Result<LoginRequest, LoginError> {
    let mut request = LoginRequest::new(Form::Own, &entry.key.issuer, &entry.key.client_id);
    if let Some((_, words)) = entry.arguments.split_first() {
        let (verb, words) = split_verb(words, false);
        let LoginVerb::Get(form) = verb else { return Err(changed(entry)) };
        request = login_request(form, &parse(words)?, context.home.as_deref(), ExtensionDefaults::default())?;
    }
    // Left out of the arguments because they may contain secrets; a proxy with a password is not known here.
    request.connection.headers = entry.key.headers.clone().into_iter().collect();
    let key = KeyFields::new(&request)?;
    let is_same_way = (&key.issuer, &key.client_id, &key.headers, &key.trust)
        == (&entry.key.issuer, &entry.key.client_id, &entry.key.headers, &entry.key.trust);
    if is_same_way { Ok(request) } else { Err(changed(entry)) }
}

/// A refresh token is never sent over a connection that the login would not have trusted.
// L411
fn changed(entry: &Entry) -> LoginError {
    LoginError::Usage(format!(
        "the session at {} was made with other certificates or another proxy; log out with the flags of its login",
        crate::request::host_of(&entry.key.issuer)
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use navicert_plugin::Environment;
    use navicert_types::Timestamp;

    use super::*;
    use crate::context::Invocation;
    use crate::request::SecretSource;
    use crate::test_support::Silent;

    fn entry(request: &LoginRequest) -> Entry {
        let mut entry = Entry::new(KeyFields::new(request).unwrap(), Timestamp::UNIX_EPOCH);
        entry.arguments = request.arguments();
        entry
    }

    fn stored(entry: &Entry) -> Result<LoginRequest, LoginError> {
        let context = LoginContext::new(Environment::empty(), None, Invocation::ByHand, Arc::new(Silent));
        stored_request(entry, &context)
    }

    // L411, L1102
    #[test]
    fn provider_of_a_stored_session_is_reached_as_at_the_login_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("ca.pem");
        let pem = |text: &str| format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
        std::fs::write(&root, pem("AAAA")).unwrap();
        let mut request = LoginRequest::new(Form::Compatible, "https://id.example", "c");
        request.connection.authorities.push(root.clone());
        request.connection.headers.push(("X-A".to_owned(), "1".to_owned()));
        request.connection.proxy_url = "http://proxy:1".to_owned();
        request.client.secret = Some(SecretSource::Argument("canary".to_owned().into()));
        let entry = entry(&request);
        let found = stored(&entry).unwrap();
        request.client.secret = None;
        assert_eq!(found, request);
        std::fs::write(&root, pem("BBBB")).unwrap();
        assert!(stored(&entry).unwrap_err().to_string().contains("other certificates"));
        std::fs::remove_file(&root).unwrap();
        assert!(stored(&entry).is_err());
    }

    #[test]
    fn session_of_an_earlier_version_without_arguments_is_reached_with_default_trust() {
        let mut entry = entry(&LoginRequest::new(Form::Own, "https://id.example", "c"));
        entry.arguments.clear();
        assert_eq!(stored(&entry).unwrap().client_id, "c");
        entry.key.trust.insecure = true;
        assert!(stored(&entry).is_err());
    }
}
