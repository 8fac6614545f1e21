//! Acting as somebody else: the `Impersonate-*` headers (client-credentials.md C170).

use http::header::{HeaderMap, HeaderName, HeaderValue};
use navicert_types::kubeconfig::AuthInfo;

use super::error::BuildError;

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
const EXTRA: &str = "impersonate-extra-";

/// Whom requests are sent as, ready to be added to them.
#[derive(Clone, Debug)]
pub struct Impersonation(Vec<(HeaderName, HeaderValue)>);

impl Impersonation {
    /// What a user entry asks for; nothing unless `as` says whom.
    ///
    /// # Errors
    /// A value that no header can carry.
    pub fn of(user: &AuthInfo) -> Result<Option<Self>, BuildError> {
        if user.impersonate.is_empty() {
            return Ok(None);
        }
        let mut headers = vec![(USER, value("as", &user.impersonate)?)];
        if !user.impersonate_uid.is_empty() {
            headers.push((UID, value("as-uid", &user.impersonate_uid)?));
        }
        for group in &user.impersonate_groups {
            headers.push((GROUP, value("as-groups", group)?));
        }
        for (key, values) in &user.impersonate_user_extra {
            let name = HeaderName::try_from(format!("{EXTRA}{}", escaped(key)))
                .map_err(|_| BuildError::Impersonate { field: "as-user-extra" })?;
            for extra in values {
                headers.push((name.clone(), value("as-user-extra", extra)?));
            }
        }
        Ok(Some(Impersonation(headers)))
    }

    /// Adds the headers, unless the request already says whom it is sent as.
    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        if headers.contains_key(USER) {
            return;
        }
        for (name, value) in &self.0 {
            headers.append(name.clone(), value.clone());
        }
    }
}

fn value(field: &'static str, text: &str) -> Result<HeaderValue, BuildError> {
    HeaderValue::try_from(text).map_err(|_| BuildError::Impersonate { field })
}

/// Bytes that are no characters of an HTTP token, and `%` itself, as `%XX`.
fn escaped(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    for byte in key.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
        if plain {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(user: &AuthInfo, mut before: HeaderMap) -> HeaderMap {
        Impersonation::of(user).unwrap().unwrap().add_to(&mut before);
        before
    }

    fn bob() -> AuthInfo {
        AuthInfo {
            impersonate: "bob".into(),
            impersonate_uid: "42".into(),
            impersonate_groups: vec!["dev".into(), "ops".into()],
            impersonate_user_extra: [("scopes/ä%".to_owned(), vec!["a".to_owned(), "b".to_owned()])].into(),
            ..AuthInfo::default()
        }
    }

    // C170
    #[test]
    fn user_uid_groups_and_extra_are_all_sent() {
        let headers = headers(&bob(), HeaderMap::new());
        let all = |name: &str| headers.get_all(name).iter().map(|v| v.to_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(all("impersonate-user"), ["bob"]);
        assert_eq!(all("impersonate-uid"), ["42"]);
        assert_eq!(all("impersonate-group"), ["dev", "ops"]);
        assert_eq!(all("impersonate-extra-scopes%2f%c3%a4%25"), ["a", "b"]);
    }

    // C170
    #[test]
    fn a_request_that_says_whom_it_is_sent_as_is_left_alone() {
        let own = HeaderMap::from_iter([(USER, HeaderValue::from_static("eve"))]);
        assert_eq!(headers(&bob(), own.clone()), own);
    }

    // C170
    #[test]
    fn nobody_is_impersonated_without_a_user() {
        let user = AuthInfo { impersonate: String::new(), ..bob() };
        assert!(Impersonation::of(&user).unwrap().is_none());
    }

    #[test]
    fn a_value_that_is_no_header_is_named_and_not_repeated() {
        let user = AuthInfo { impersonate: "bob\r\nx: y".into(), ..AuthInfo::default() };
        let error = Impersonation::of(&user).unwrap_err().to_string();
        assert_eq!(error, "impersonate: as cannot be sent as a header");
    }
}
