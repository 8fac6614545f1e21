//! The user that a token maps to.

use std::collections::BTreeMap;
use std::sync::Arc;

use navicert_cel::kubernetes;
use navicert_types::token_review::UserInfo;

/// Extra key of the token's identifier.
// S138
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The group that an API server adds to every authenticated user.
// S145
const AUTHENTICATED_GROUP: &str = "system:authenticated";

/// The user that a token maps to. Constructed by the mappings, and from an API server's answer to a `TokenReview`. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct AuthenticatedUser(Arc<kubernetes::User>);

impl AuthenticatedUser {
    /// A mapped user.
    pub(crate) fn new(user: kubernetes::User) -> Self {
        AuthenticatedUser(Arc::new(user))
    }

    /// The user of a `TokenReview` that an API server answered with `authenticated: true`. Drops the group
    /// `system:authenticated`, so that a user has the same groups whether the token was reviewed or verified here.
    pub fn from_token_review(user: UserInfo) -> Self {
        let UserInfo { username, uid, mut groups, extra, .. } = user;
        groups.retain(|group| group != AUTHENTICATED_GROUP);
        AuthenticatedUser::new(kubernetes::User { username, uid, groups, extra })
    }

    /// The username.
    pub fn username(&self) -> &str {
        &self.0.username
    }

    /// The UID; empty if there is none.
    pub fn uid(&self) -> &str {
        &self.0.uid
    }

    /// The groups, in the order of their source. Does not include `system:authenticated`.
    // S145
    pub fn groups(&self) -> &[String] {
        &self.0.groups
    }

    /// The extra attributes.
    pub fn extra(&self) -> &BTreeMap<String, Vec<String>> {
        &self.0.extra
    }

    /// The same user with only the groups that pass the test.
    pub(crate) fn retain_groups(mut self, keep: impl Fn(&str) -> bool) -> Self {
        Arc::make_mut(&mut self.0).groups.retain(|group| keep(group));
        self
    }

    /// The user as a CEL value.
    pub(crate) fn as_cel_user(&self) -> &kubernetes::User {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviewed_user_has_the_groups_of_a_verified_one() {
        let extra = BTreeMap::from([("example.org/team".to_owned(), vec!["a".to_owned()])]);
        let groups = ["dev", AUTHENTICATED_GROUP, "ops"].map(str::to_owned).to_vec();
        let (username, uid) = ("ann".to_owned(), "u-1".to_owned());
        let user =
            AuthenticatedUser::from_token_review(UserInfo { username, uid, groups, extra: extra.clone() });
        assert_eq!((user.username(), user.uid()), ("ann", "u-1"));
        assert_eq!((user.groups(), user.extra()), (&["dev".to_owned(), "ops".to_owned()][..], &extra));
    }

    #[test]
    fn dropping_groups_leaves_clones_as_they_are() {
        let groups = vec!["a".to_owned(), String::new()];
        let user = AuthenticatedUser::new(kubernetes::User { groups, ..kubernetes::User::default() });
        let copy = user.clone();
        assert_eq!(user.retain_groups(|group| !group.is_empty()).groups(), ["a"]);
        assert_eq!(copy.groups(), ["a", ""]);
    }
}
