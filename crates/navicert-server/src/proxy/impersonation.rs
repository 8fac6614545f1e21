//! `kubectl --as` through the proxy. The requested identity is used if the authenticated user may impersonate it; the
//! original user is recorded in extra attributes that clients cannot set.
// S239

mod authorization;

use std::collections::BTreeMap;

use http::HeaderMap;
use navicert_client::transport::Transport;
use navicert_types::token_review::UserInfo;

use super::denial::Denial;
use super::identity_headers::extra_key;
use super::permission::ConstrainedMode;
use super::reviews::AccessReviewError;
use crate::request_info::RequestInfo;
use crate::user_ref::UserRef;
use authorization::Authorization;

pub(super) use authorization::{legacy_permissions, node};

/// Prefix of the extra attributes that name the original user. Clients cannot request keys with it.
pub(crate) const ORIGINAL_USER_PREFIX: &str = "original-user.navicert/";
/// The extra attributes that name the original user.
pub(crate) const ORIGINAL_USER_KEYS: [&str; 3] =
    ["original-user.navicert/username", "original-user.navicert/uid", "original-user.navicert/groups"];

/// The identity that a client asks to impersonate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImpersonationRequest(UserInfo);

/// An impersonation request was rejected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImpersonationError {
    /// The headers are invalid.
    #[error("{0}")]
    Malformed(&'static str),
    /// The user lacks the permission.
    #[error("{0}")]
    Forbidden(Box<Denial>),
    /// The access review failed.
    #[error("failed to check whether impersonation is allowed")]
    Review(#[from] AccessReviewError),
}

impl ImpersonationRequest {
    /// Reads the impersonation headers; `None` if there are none.
    ///
    /// # Errors
    /// [`ImpersonationError::Malformed`]: no user is named, or a reserved key is used.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Option<Self>, ImpersonationError> {
        let mut user = UserInfo::default();
        let (mut names, mut uids, mut others) = (0, 0, 0);
        for (name, value) in headers {
            let Some(what) = name.as_str().strip_prefix("impersonate-") else { continue };
            let text = std::str::from_utf8(value.as_bytes())
                .map_err(|_| ImpersonationError::Malformed("invalid impersonation header: not UTF-8"))?;
            match what {
                "user" => {
                    text.clone_into(&mut user.username);
                    names += 1;
                }
                "uid" => {
                    text.clone_into(&mut user.uid);
                    uids += 1;
                }
                "group" => user.groups.push(text.to_owned()),
                _ => {
                    let key = what.strip_prefix("extra-").map(parse_extra_key).unwrap_or_default();
                    let key = key.ok_or(ImpersonationError::Malformed("unknown impersonation header"))?;
                    if key.starts_with(ORIGINAL_USER_PREFIX) {
                        return Err(ImpersonationError::Malformed("the original user cannot be set"));
                    }
                    user.extra.entry(key).or_default().push(text.to_owned());
                }
            }
            others += 1;
        }
        match (others, names, uids) {
            (0, ..) => Ok(None),
            (_, 1, 0 | 1) if !user.username.is_empty() => Ok(Some(ImpersonationRequest(user))),
            _ => Err(ImpersonationError::Malformed("impersonation requires exactly one user")),
        }
    }

    /// The requested identity, which nothing has authorized.
    pub(super) fn into_user(self) -> UserInfo {
        self.0
    }

    /// Asks the API server whether `user` may impersonate the identity: for this request, if the API server has constrained
    /// impersonation, or for any.
    ///
    /// # Errors
    /// [`ImpersonationError`]: it may not, or the review failed.
    pub(crate) async fn authorize(
        self,
        user: UserRef<'_>,
        request: Option<&RequestInfo<'_>>,
        upstream: &Transport,
    ) -> Result<UserInfo, ImpersonationError> {
        let authorization = Authorization { user, target: &self.0, request, upstream };
        let mode = authorization.run().await?;
        let mut target = self.0;
        // The API server sets the groups of a node itself in these modes; those of a service account in any.
        if matches!(mode, Some(ConstrainedMode::AssociatedNode | ConstrainedMode::ArbitraryNode)) {
            target.groups = vec!["system:nodes".to_owned()];
        }
        target.extra.extend(original_user(user));
        Ok(target)
    }
}

/// Namespace and name of a service account's user name. A name with the prefix but without exactly one namespace and
/// one name, both valid, belongs to a user, as in the API server.
pub(super) fn service_account(username: &str) -> Option<(&str, &str)> {
    let (namespace, name) = username.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let is_label = namespace.len() <= 63 && is_dns_label_text(namespace);
    (is_label && is_subdomain(name)).then_some((namespace, name))
}

fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_dns_label_text)
}

/// Lower-case letters, digits and dashes, with a letter or digit at both ends.
fn is_dns_label_text(text: &str) -> bool {
    let is_alphanumeric = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9');
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_alphanumeric)
        && bytes.last().is_some_and(is_alphanumeric)
        && bytes.iter().all(|byte| is_alphanumeric(byte) || *byte == b'-')
}

/// A key that the API server decodes to itself.
// A73
fn parse_extra_key(rest: &str) -> Option<String> {
    let key = String::from_utf8(extra_key(rest)).ok()?;
    let is_lower = !key.chars().any(char::is_uppercase);
    (is_lower && !key.is_empty()).then_some(key)
}

/// Extra attributes that name the original user.
fn original_user(user: UserRef<'_>) -> BTreeMap<String, Vec<String>> {
    let one = |text: &str| vec![text.to_owned()].into_iter().filter(|text| !text.is_empty()).collect();
    let values: [Vec<String>; 3] = [one(user.username), one(user.uid), user.groups.to_vec()];
    ORIGINAL_USER_KEYS.map(str::to_owned).into_iter().zip(values).collect()
}

#[cfg(test)]
mod tests {
    use http::header::{HeaderName, HeaderValue};

    use super::*;

    fn read(lines: &[(&'static str, &str)]) -> Result<Option<UserInfo>, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        ImpersonationRequest::read(&headers)
            .map(|request| request.map(|request| request.0))
            .map_err(|denied| denied.to_string())
    }

    // S239, A73
    #[test]
    fn impersonation_request_names_one_user_and_no_reserved_key() {
        assert_eq!(read(&[("accept", "a")]), Ok(None));
        let request = read(&[
            ("impersonate-user", "bob"),
            ("impersonate-uid", "7"),
            ("impersonate-group", "a"),
            ("impersonate-group", "b"),
            ("impersonate-extra-example.org%2ffoo", "x"),
        ]);
        let user = request.unwrap().unwrap();
        assert_eq!((user.username.as_str(), user.uid.as_str(), user.groups.len()), ("bob", "7", 2));
        assert_eq!(user.extra["example.org/foo"], ["x"]);
        for bad in [
            &[("impersonate-group", "a")][..],
            &[("impersonate-user", "")],
            &[("impersonate-user", "a"), ("impersonate-user", "b")],
            &[("impersonate-user", "a"), ("impersonate-uid", "1"), ("impersonate-uid", "2")],
            &[("impersonate-user", "a"), ("impersonate-extra-", "b")],
            &[("impersonate-user", "a"), ("impersonate-extra-%41", "b")],
            &[("impersonate-user", "a"), ("impersonate-extra-original-user.navicert%2fusername", "b")],
            &[("impersonate-user", "a"), ("impersonate-new", "b")],
        ] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }

    // S233
    #[test]
    fn service_account_names_are_split_as_the_api_server_does() {
        for (username, expected) in [
            ("system:serviceaccount:ns:robot", Some(("ns", "robot"))),
            ("system:serviceaccount:ns:robot.v1-a", Some(("ns", "robot.v1-a"))),
            ("system:serviceaccount:a:b:c", None),
            ("system:serviceaccount:a", None),
            ("system:serviceaccount::b", None),
            ("system:serviceaccount:a:", None),
            ("system:serviceaccount:a.b:c", None),
            ("system:serviceaccount:A:b", None),
            ("system:serviceaccount:a:b_c", None),
            ("system:serviceaccount:a:-b", None),
            ("system:serviceaccounts:a:b", None),
            ("ann", None),
        ] {
            assert_eq!(service_account(username), expected, "{username}");
            let user = UserInfo { username: username.into(), ..UserInfo::default() };
            let resource = if expected.is_some() { "serviceaccounts" } else { "users" };
            let asked = legacy_permissions(UserRef::from(&user))[0].to_string();
            assert!(
                asked.starts_with(&format!("impersonate resource \"{resource}\"")),
                "{username}: {asked}"
            );
        }
    }
}
