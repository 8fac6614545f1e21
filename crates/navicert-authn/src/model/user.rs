//! The user that a token maps to.

use std::collections::BTreeMap;

use navicert_cel::kubernetes;

/// Extra key of the token's identifier.
// S138
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The user that a token maps to. Only the mappings construct one.
#[derive(Clone, Debug)]
pub struct AuthenticatedUser(kubernetes::User);

impl AuthenticatedUser {
    /// A mapped user.
    pub(crate) fn new(user: kubernetes::User) -> Self {
        AuthenticatedUser(user)
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
        self.0.groups.retain(|group| keep(group));
        self
    }

    /// The user as a CEL value.
    pub(crate) fn as_cel_user(&self) -> &kubernetes::User {
        &self.0
    }
}
