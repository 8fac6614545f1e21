//! `AuthenticationConfiguration`: the file that tells kube-apiserver which tokens to take and whom they stand for.
//!
//! The hub type is here, one file per wire version beside it. The three versions have one shape (S1); what is in a
//! value is what the file says, no field has a default (S13), and whether it makes sense is asked elsewhere.

mod v1;
mod v1alpha1;
mod v1beta1;

use crate::decode::Mode;
use crate::diagnostic::Diagnostics;
use crate::tree::{Node, Syntax};
use crate::versioned::Versions;

/// The kind's name.
pub const KIND: &str = "AuthenticationConfiguration";

static CONFIGURATION: Versions<AuthenticationConfiguration> = Versions {
    syntax: Syntax::JsonOrYaml,
    mode: Mode::Strict,
    default_api_version: None,
    default_kind: None,
    kinds: &[v1::KIND, v1beta1::KIND, v1alpha1::KIND],
};

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthenticationConfiguration {
    /// Tried in order.
    pub jwt: Vec<JwtAuthenticator>,
    /// Absent, and present but empty, are two things (S10).
    pub anonymous: Option<AnonymousAuthConfig>,
}

/// One issuer and what its tokens mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JwtAuthenticator {
    /// Who signs, and for whom.
    pub issuer: Issuer,
    /// What has to hold for the claims.
    pub claim_validation_rules: Vec<ClaimValidationRule>,
    /// From claims to a user.
    pub claim_mappings: ClaimMappings,
    /// What has to hold for the user.
    pub user_validation_rules: Vec<UserValidationRule>,
}

/// Who signs the tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issuer {
    /// The exact value of `iss`.
    pub url: String,
    /// Where discovery is found if not below `url`; empty for none.
    pub discovery_url: String,
    /// PEM certificates that replace the system's roots; empty for none.
    pub certificate_authority: String,
    /// Whom the tokens are for.
    pub audiences: Vec<String>,
    /// How several audiences are matched.
    pub audience_match_policy: String,
    /// Which way requests to the issuer take.
    pub egress_selector_type: String,
}

/// A rule about claims: a claim with its required value, or an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimValidationRule {
    /// The claim that is compared.
    pub claim: String,
    /// What it has to be.
    pub required_value: String,
    /// An expression over `claims` of type bool.
    pub expression: String,
    /// What is said when the expression is false.
    pub message: String,
}

/// From claims to a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimMappings {
    /// The name.
    pub username: PrefixedClaimOrExpression,
    /// The groups.
    pub groups: PrefixedClaimOrExpression,
    /// The UID.
    pub uid: ClaimOrExpression,
    /// Further attributes.
    pub extra: Vec<ExtraMapping>,
}

/// A claim with a prefix, or an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrefixedClaimOrExpression {
    /// The claim.
    pub claim: String,
    /// What is put before it; absent and empty are two things (S10).
    pub prefix: Option<String>,
    /// An expression over `claims`.
    pub expression: String,
}

/// A claim, or an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimOrExpression {
    /// The claim.
    pub claim: String,
    /// An expression over `claims`.
    pub expression: String,
}

/// One further attribute of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraMapping {
    /// Its name, such as `example.com/tenant`.
    pub key: String,
    /// An expression over `claims`.
    pub value_expression: String,
}

/// A rule about the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserValidationRule {
    /// An expression over `user` of type bool.
    pub expression: String,
    /// What is said when the expression is false.
    pub message: String,
}

/// Who may come without a credential.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnonymousAuthConfig {
    /// Whether anyone may.
    pub enabled: bool,
    /// For which requests; none: for all.
    pub conditions: Vec<AnonymousAuthCondition>,
}

/// A request that may come without a credential.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnonymousAuthCondition {
    /// The request's exact path.
    pub path: String,
}

impl AuthenticationConfiguration {
    /// Reads a file: JSON or YAML, strictly.
    ///
    /// ```
    /// use navicert_types::authentication_config::AuthenticationConfiguration;
    ///
    /// let text = b"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwts: []\n";
    /// let wrong = AuthenticationConfiguration::parse(text).unwrap_err();
    /// assert_eq!(wrong.to_string(), "jwts: unknown field (line 3, column 1); did you mean `jwt`?");
    /// ```
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the text.
    pub fn parse(text: &[u8]) -> Result<Self, Diagnostics> {
        CONFIGURATION.decode(text)
    }

    /// Reads a file that has been parsed.
    ///
    /// # Errors
    /// As [`AuthenticationConfiguration::parse`].
    pub fn from_tree(tree: &Node) -> Result<Self, Diagnostics> {
        CONFIGURATION.decode_tree(tree)
    }
}

#[cfg(test)]
mod tests;
