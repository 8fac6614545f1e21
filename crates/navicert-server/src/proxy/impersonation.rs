//! `kubectl --as` through the proxy. The requested identity is used if the authenticated user may impersonate it; the
//! original user is recorded in extra attributes that clients cannot set.
// S239

use std::collections::BTreeMap;

use http::HeaderMap;
use navicert_client::transport::Transport;
use navicert_types::token_review::UserInfo;

use super::identity_headers::extra_key;
use super::reviews::{AccessReviewError, Permission, subject_access_review};
use crate::user_ref::UserRef;

/// Prefix of the extra attributes that name the original user. Clients cannot request keys with it.
pub const ORIGINAL_USER_PREFIX: &str = "original-user.navicert/";
/// The extra attributes that name the original user.
pub const ORIGINAL_USER_KEYS: [&str; 3] =
    ["original-user.navicert/username", "original-user.navicert/uid", "original-user.navicert/groups"];

/// Maximum number of access reviews for one request.
const MAX_ACCESS_REVIEWS: usize = 64;
const AUTHENTICATION: &str = "authentication.k8s.io";

/// The identity that a client asks to impersonate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImpersonationRequest(UserInfo);

/// An impersonation request was rejected.
#[derive(Debug, thiserror::Error)]
pub enum ImpersonationError {
    /// The headers are invalid.
    #[error("{0}")]
    Malformed(&'static str),
    /// The user lacks the permission.
    #[error("{} is forbidden: User \"{user}\" cannot impersonate resource \"{resource}\"", QuotedResource(.resource, .name))]
    Forbidden {
        /// The authenticated user.
        user: String,
        /// The resource.
        resource: String,
        /// Name of the resource.
        name: String,
    },
    /// The access review failed.
    #[error("failed to check whether impersonation is allowed")]
    Review(#[from] AccessReviewError),
}

struct QuotedResource<'a>(&'a String, &'a String);

impl std::fmt::Display for QuotedResource<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} \"{}\"", self.0, self.1)
    }
}

impl ImpersonationRequest {
    /// Reads the impersonation headers; `None` if there are none.
    ///
    /// # Errors
    /// [`ImpersonationError::Malformed`]: no user is named, or a reserved key is used.
    pub fn read(headers: &HeaderMap) -> Result<Option<Self>, ImpersonationError> {
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

    /// Asks the API server whether `user` may impersonate each part of the identity.
    ///
    /// # Errors
    /// [`ImpersonationError`]: it may not, or the review failed.
    pub async fn authorize(
        self,
        user: UserRef<'_>,
        upstream: &Transport,
    ) -> Result<UserInfo, ImpersonationError> {
        let permissions = self.required_permissions();
        if permissions.len() > MAX_ACCESS_REVIEWS {
            return Err(ImpersonationError::Malformed("too many groups and attributes to impersonate"));
        }
        for permission in permissions {
            if !subject_access_review(upstream, user, &permission).await? {
                let Permission { resource, name, .. } = permission;
                return Err(ImpersonationError::Forbidden { user: user.username.to_owned(), resource, name });
            }
        }
        let mut target = self.0;
        target.extra.extend(original_user(user));
        Ok(target)
    }

    /// The same permissions that the API server checks.
    // S233
    fn required_permissions(&self) -> Vec<Permission> {
        let UserInfo { username, uid, groups, extra } = &self.0;
        let account = username.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
        let mut permissions = vec![match account {
            Some((namespace, name)) => {
                Permission::impersonate("", "serviceaccounts").with_namespace(namespace).with_name(name)
            }
            None => Permission::impersonate("", "users").with_name(username),
        }];
        permissions.extend(groups.iter().map(|group| Permission::impersonate("", "groups").with_name(group)));
        if !uid.is_empty() {
            permissions.push(Permission::impersonate(AUTHENTICATION, "uids").with_name(uid));
        }
        for (key, values) in extra {
            let one = |value: &String| {
                Permission::impersonate(AUTHENTICATION, "userextras").with_subresource(key).with_name(value)
            };
            permissions.extend(values.iter().map(one));
        }
        permissions
    }
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

    // B13: UIDs and extras are not resources of the core group.
    #[test]
    fn checks_the_same_permissions_as_the_api_server() {
        let request = ImpersonationRequest(UserInfo {
            username: "system:serviceaccount:ns:robot".into(),
            uid: "7".into(),
            groups: vec!["g".into()],
            extra: [("k.io/x".to_owned(), vec!["v".to_owned()])].into(),
        });
        let asked: Vec<String> = request
            .required_permissions()
            .into_iter()
            .map(|one| {
                format!("{}/{}/{} {} {}", one.group, one.resource, one.subresource, one.namespace, one.name)
            })
            .collect();
        let expected = [
            "/serviceaccounts/ ns robot",
            "/groups/  g",
            "authentication.k8s.io/uids/  7",
            "authentication.k8s.io/userextras/k.io/x  v",
        ];
        assert_eq!(asked, expected);
    }
}
