//! A look at somebody, whoever said who it is: an issuer's token, or the API server in a `TokenReview`. Logs and headers are
//! written from it.

use std::collections::BTreeMap;

use navicert_authn::User;
use navicert_types::token_review::UserInfo;
use serde::{Serialize, Serializer, ser::SerializeMap as _};

/// Name, UID, groups and further attributes.
#[derive(Clone, Copy, Debug)]
pub struct Told<'w> {
    /// The name.
    pub username: &'w str,
    /// The UID; empty if there is none.
    pub uid: &'w str,
    /// The groups.
    pub groups: &'w [String],
    /// Further attributes.
    pub extra: &'w BTreeMap<String, Vec<String>>,
}

impl<'w> From<&'w User> for Told<'w> {
    fn from(user: &'w User) -> Self {
        Told { username: user.username(), uid: user.uid(), groups: user.groups(), extra: user.extra() }
    }
}

impl<'w> From<&'w UserInfo> for Told<'w> {
    fn from(user: &'w UserInfo) -> Self {
        let UserInfo { username, uid, groups, extra } = user;
        Told { username, uid, groups, extra }
    }
}

impl Serialize for Told<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("username", self.username)?;
        if !self.uid.is_empty() {
            map.serialize_entry("uid", self.uid)?;
        }
        map.serialize_entry("groups", self.groups)?;
        map.serialize_entry("extra", self.extra)?;
        map.end()
    }
}

/// Whoever comes without a credential (S57).
pub(crate) fn anonymous() -> UserInfo {
    let groups = vec!["system:unauthenticated".to_owned()];
    UserInfo { username: ANONYMOUS.to_owned(), groups, ..UserInfo::default() }
}

/// The name of whoever has none.
pub(crate) const ANONYMOUS: &str = "system:anonymous";
