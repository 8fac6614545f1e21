//! Borrowed view of an authenticated user, from a verified token or from a `TokenReview`. Logs and identity headers
//! are written from it.

use std::collections::BTreeMap;

use navicert_authn::{AuthenticatedUser, CREDENTIAL_ID};
use navicert_types::token_review::UserInfo;
use serde::{Serialize, Serializer, ser::SerializeMap as _};

/// User name, UID, groups and extra attributes.
#[derive(Clone, Copy, Debug)]
pub struct UserRef<'w> {
    /// The user name.
    pub username: &'w str,
    /// The UID; empty if there is none.
    pub uid: &'w str,
    /// The groups.
    pub groups: &'w [String],
    /// The extra attributes.
    pub extra: &'w BTreeMap<String, Vec<String>>,
}

static NO_EXTRA: BTreeMap<String, Vec<String>> = BTreeMap::new();

impl<'w> UserRef<'w> {
    /// The user name alone.
    pub(crate) fn without_attributes(self) -> Self {
        UserRef { username: self.username, uid: "", groups: &[], extra: &NO_EXTRA }
    }

    /// The `jti` of the user's token, if it had one. Only for headers and hashes; logs must not contain it.
    // S138
    pub fn jti(&self) -> Option<&'w str> {
        self.extra.get(CREDENTIAL_ID)?.first()?.strip_prefix("JTI=")
    }
}

impl<'w> From<&'w AuthenticatedUser> for UserRef<'w> {
    fn from(user: &'w AuthenticatedUser) -> Self {
        UserRef { username: user.username(), uid: user.uid(), groups: user.groups(), extra: user.extra() }
    }
}

impl<'w> From<&'w UserInfo> for UserRef<'w> {
    fn from(user: &'w UserInfo) -> Self {
        let UserInfo { username, uid, groups, extra } = user;
        UserRef { username, uid, groups, extra }
    }
}

/// Log representation: leaves out the token identifier.
// S224
impl Serialize for UserRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("username", self.username)?;
        if !self.uid.is_empty() {
            map.serialize_entry("uid", self.uid)?;
        }
        map.serialize_entry("groups", self.groups)?;
        map.serialize_entry("extra", &LoggedExtra(self.extra))?;
        map.end()
    }
}

struct LoggedExtra<'w>(&'w BTreeMap<String, Vec<String>>);

impl Serialize for LoggedExtra<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().filter(|(key, _)| *key != CREDENTIAL_ID))
    }
}

/// The anonymous user.
// S57
pub(crate) fn anonymous() -> UserInfo {
    let groups = vec![UNAUTHENTICATED.to_owned()];
    UserInfo { username: ANONYMOUS.to_owned(), groups, ..UserInfo::default() }
}

/// User name of unauthenticated requests.
pub(crate) const ANONYMOUS: &str = "system:anonymous";
/// Their group.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
