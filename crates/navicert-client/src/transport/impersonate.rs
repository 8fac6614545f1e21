//! User impersonation: the `Impersonate-*` headers.
// C170

use http::header::{HeaderMap, HeaderName, HeaderValue};
use navicert_go::percent::{Plus, encode, is_header_key_byte};
use navicert_types::kubeconfig::AuthInfo;

use super::error::BuildError;

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
const EXTRA: &str = "impersonate-extra-";

/// The impersonation headers of a user entry.
#[derive(Clone, Debug)]
pub struct Impersonation(Vec<(HeaderName, HeaderValue)>);

impl Impersonation {
    /// The headers for a user entry; `None` if `as` is empty.
    ///
    /// # Errors
    /// A value is not valid in a header.
    pub(crate) fn from_user(user: &AuthInfo) -> Result<Option<Self>, BuildError> {
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
            let name =
                HeaderName::try_from(format!("{EXTRA}{}", encode(key, Plus::Literal, is_header_key_byte)))
                    .map_err(|_| BuildError::Impersonate { field: "as-user-extra" })?;
            for extra in values {
                headers.push((name.clone(), value("as-user-extra", extra)?));
            }
        }
        Ok(Some(Impersonation(headers)))
    }

    /// Adds the headers, unless the request already impersonates a user.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(user: &AuthInfo, mut before: HeaderMap) -> HeaderMap {
        Impersonation::from_user(user).unwrap().unwrap().add_to(&mut before);
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
    fn sends_user_uid_groups_and_extra() {
        let headers = headers(&bob(), HeaderMap::new());
        let all = |name: &str| headers.get_all(name).iter().map(|v| v.to_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(all("impersonate-user"), ["bob"]);
        assert_eq!(all("impersonate-uid"), ["42"]);
        assert_eq!(all("impersonate-group"), ["dev", "ops"]);
        assert_eq!(all("impersonate-extra-scopes%2f%c3%a4%25"), ["a", "b"]);
    }

    // C170
    #[test]
    fn keeps_the_requests_own_impersonation() {
        let own = HeaderMap::from_iter([(USER, HeaderValue::from_static("eve"))]);
        assert_eq!(headers(&bob(), own.clone()), own);
    }

    // C170
    #[test]
    fn groups_without_a_user_are_not_sent() {
        let user = AuthInfo { impersonate: String::new(), ..bob() };
        assert!(Impersonation::from_user(&user).unwrap().is_none());
    }

    #[test]
    fn error_for_invalid_value_names_the_field_only() {
        let user = AuthInfo { impersonate: "bob\r\nx: y".into(), ..AuthInfo::default() };
        let error = Impersonation::from_user(&user).unwrap_err().to_string();
        assert_eq!(error, "invalid impersonation value in `as`: not allowed in a header");
    }
}
