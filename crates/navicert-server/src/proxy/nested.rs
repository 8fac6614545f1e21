//! `kubectl --as` through the proxy (structured-authentication.md S239): what the client asks for becomes the identity,
//! if the client's own user may act as that, and the user stays visible in attributes that nobody else can set.

use std::collections::BTreeMap;

use http::HeaderMap;
use navicert_client::transport::Transport;
use navicert_types::token_review::UserInfo;

use super::identity_headers::extra_key;
use super::reviews::{Permission, ReviewError, may_they};
use crate::who::Told;

/// Where the user behind a nested identity is told; a key with this beginning cannot be asked for.
pub const ORIGINAL: &str = "original-user.navicert/";
/// What is told there.
pub const ORIGINAL_KEYS: [&str; 3] =
    ["original-user.navicert/username", "original-user.navicert/uid", "original-user.navicert/groups"];

/// More questions than this are not asked for one request.
const MOST_QUESTIONS: usize = 64;
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Whom a client wants to act as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish(UserInfo);

/// Why a wish is not granted.
#[derive(Debug, thiserror::Error)]
pub enum Denied {
    /// It makes no sense.
    #[error("{0}")]
    Malformed(&'static str),
    /// The user may not.
    #[error("{} is forbidden: User \"{user}\" cannot impersonate resource \"{resource}\"", Quoted(.resource, .name))]
    Forbidden {
        /// Who asks.
        user: String,
        /// For what.
        resource: String,
        /// Which one.
        name: String,
    },
    /// Nobody says whether the user may.
    #[error("the API server did not say whether impersonation is allowed")]
    Unanswered(#[from] ReviewError),
}

struct Quoted<'a>(&'a String, &'a String);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} \"{}\"", self.0, self.1)
    }
}

impl Wish {
    /// What a request asks for; `None` if nothing.
    ///
    /// # Errors
    /// [`Denied::Malformed`]: it asks for something without saying whom, or for what only we may say.
    pub fn read(headers: &HeaderMap) -> Result<Option<Self>, Denied> {
        let mut person = UserInfo::default();
        let (mut names, mut uids, mut others) = (0, 0, 0);
        for (name, value) in headers {
            let Some(what) = name.as_str().strip_prefix("impersonate-") else { continue };
            let text = std::str::from_utf8(value.as_bytes())
                .map_err(|_| Denied::Malformed("an impersonation header is not UTF-8"))?;
            match what {
                "user" => {
                    text.clone_into(&mut person.username);
                    names += 1;
                }
                "uid" => {
                    text.clone_into(&mut person.uid);
                    uids += 1;
                }
                "group" => person.groups.push(text.to_owned()),
                _ => {
                    let key = what.strip_prefix("extra-").map(key).unwrap_or_default();
                    let key =
                        key.ok_or(Denied::Malformed("an impersonation header's name is not understood"))?;
                    if key.starts_with(ORIGINAL) {
                        return Err(Denied::Malformed("the original user cannot be chosen"));
                    }
                    person.extra.entry(key).or_default().push(text.to_owned());
                }
            }
            others += 1;
        }
        match (others, names, uids) {
            (0, ..) => Ok(None),
            (_, 1, 0 | 1) if !person.username.is_empty() => Ok(Some(Wish(person))),
            _ => Err(Denied::Malformed("impersonation needs one user to act as")),
        }
    }

    /// Grants it to this user, if the API server says that the user may act as each part of it.
    ///
    /// # Errors
    /// [`Denied`]: it does not.
    pub async fn grant(self, user: Told<'_>, upstream: &Transport) -> Result<UserInfo, Denied> {
        let questions = self.questions();
        if questions.len() > MOST_QUESTIONS {
            return Err(Denied::Malformed("more groups and attributes than are looked at for one request"));
        }
        for permission in questions {
            if !may_they(upstream, user, &permission).await? {
                let Permission { resource, name, .. } = permission;
                return Err(Denied::Forbidden { user: user.username.to_owned(), resource, name });
            }
        }
        let mut person = self.0;
        person.extra.extend(original(user));
        Ok(person)
    }

    /// S233: the same resources that the API server itself would ask about.
    fn questions(&self) -> Vec<Permission> {
        let UserInfo { username, uid, groups, extra } = &self.0;
        let account = username.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
        let mut questions = vec![match account {
            Some((namespace, name)) => {
                Permission::impersonate("", "serviceaccounts").within(namespace).named(name)
            }
            None => Permission::impersonate("", "users").named(username),
        }];
        questions.extend(groups.iter().map(|group| Permission::impersonate("", "groups").named(group)));
        if !uid.is_empty() {
            questions.push(Permission::impersonate(AUTHENTICATION, "uids").named(uid));
        }
        for (key, values) in extra {
            let one =
                |value: &String| Permission::impersonate(AUTHENTICATION, "userextras").part(key).named(value);
            questions.extend(values.iter().map(one));
        }
        questions
    }
}

/// A key that means itself and nothing else (A73).
fn key(rest: &str) -> Option<String> {
    let key = String::from_utf8(extra_key(rest)).ok()?;
    let is_lower = !key.chars().any(char::is_uppercase);
    (is_lower && !key.is_empty()).then_some(key)
}

/// Who is behind it.
fn original(user: Told<'_>) -> BTreeMap<String, Vec<String>> {
    let one = |text: &str| vec![text.to_owned()].into_iter().filter(|text| !text.is_empty()).collect();
    let values: [Vec<String>; 3] = [one(user.username), one(user.uid), user.groups.to_vec()];
    ORIGINAL_KEYS.map(str::to_owned).into_iter().zip(values).collect()
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
        Wish::read(&headers).map(|wish| wish.map(|wish| wish.0)).map_err(|denied| denied.to_string())
    }

    // S239, A73
    #[test]
    fn a_wish_names_one_user_and_nothing_that_is_ours() {
        assert_eq!(read(&[("accept", "a")]), Ok(None));
        let wish = read(&[
            ("impersonate-user", "bob"),
            ("impersonate-uid", "7"),
            ("impersonate-group", "a"),
            ("impersonate-group", "b"),
            ("impersonate-extra-example.org%2ffoo", "x"),
        ]);
        let person = wish.unwrap().unwrap();
        assert_eq!((person.username.as_str(), person.uid.as_str(), person.groups.len()), ("bob", "7", 2));
        assert_eq!(person.extra["example.org/foo"], ["x"]);
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
    fn the_questions_are_the_servers_own() {
        let wish = Wish(UserInfo {
            username: "system:serviceaccount:ns:robot".into(),
            uid: "7".into(),
            groups: vec!["g".into()],
            extra: [("k.io/x".to_owned(), vec!["v".to_owned()])].into(),
        });
        let asked: Vec<String> = wish
            .questions()
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
