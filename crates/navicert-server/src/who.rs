//! A look at somebody, whoever said who it is: an issuer's token, or the API server in a `TokenReview`. Logs and headers are
//! written from it.

use std::collections::BTreeMap;

use navicert_authn::metrics::hashed;
use navicert_authn::{CREDENTIAL_ID, Judgement, Outcome, User, jwt};
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

impl<'w> Told<'w> {
    /// The `jti` of the token that was shown (S138), if it had one. Only for headers and hashes: whoever reads a log need not
    /// know it.
    pub fn token_identifier(&self) -> Option<&'w str> {
        self.extra.get(CREDENTIAL_ID)?.first()?.strip_prefix("JTI=")
    }
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

/// As a log shows somebody: without the token's own identifier (S224).
impl Serialize for Told<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("username", self.username)?;
        if !self.uid.is_empty() {
            map.serialize_entry("uid", self.uid)?;
        }
        map.serialize_entry("groups", self.groups)?;
        map.serialize_entry("extra", &Shown(self.extra))?;
        map.end()
    }
}

struct Shown<'w>(&'w BTreeMap<String, Vec<String>>);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().filter(|(key, _)| *key != CREDENTIAL_ID))
    }
}

/// Which token was judged, for a log (S224): the hash of its `jti`. Only of tokens of our own issuers: nobody has read what
/// others say.
pub(crate) fn jti_hash(judgement: &Judgement, token: &str) -> Option<String> {
    match &judgement.outcome {
        Outcome::Authenticated(user) => {
            Told::from(&**user).token_identifier().map(|jti| hashed(jti.as_bytes()))
        }
        _ => {
            judgement.issuer()?;
            jwt::identifier(token).map(|jti| hashed(jti.as_bytes()))
        }
    }
}

/// Whoever comes without a credential (S57).
pub(crate) fn anonymous() -> UserInfo {
    let groups = vec!["system:unauthenticated".to_owned()];
    UserInfo { username: ANONYMOUS.to_owned(), groups, ..UserInfo::default() }
}

/// The name of whoever has none.
pub(crate) const ANONYMOUS: &str = "system:anonymous";
