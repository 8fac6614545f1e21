//! `AuthenticationConfiguration`: the file that tells kube-apiserver which tokens to accept and how to map them to users.
//!
//! This module has the hub type; there is one module per wire version. All three versions have the same fields. Values
//! are as written in the file, without defaults and without validation.
// S1, S13

mod v1;
mod v1alpha1;
mod v1beta1;

use crate::decode::DecodeMode;
use crate::diagnostic::Diagnostics;
use crate::tree::{Node, Syntax};
use crate::versioned::Versions;
use crate::wire_text::wire_text;

/// The kind's name.
pub const KIND: &str = "AuthenticationConfiguration";

static CONFIGURATION: Versions<AuthenticationConfiguration> = Versions {
    syntax: Syntax::JsonOrYaml,
    mode: DecodeMode::Strict,
    default_api_version: None,
    default_kind: None,
    kinds: &[v1::KIND, v1beta1::KIND, v1alpha1::KIND],
};

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthenticationConfiguration {
    /// JWT authenticators, tried in order.
    pub jwt: Vec<JwtAuthenticator>,
    /// Anonymous authentication. Missing and empty are different.
    // S10
    pub anonymous: Option<AnonymousAuthConfig>,
}

/// One issuer and the mapping of its tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JwtAuthenticator {
    /// The issuer and its audiences.
    pub issuer: Issuer,
    /// Rules the claims must satisfy.
    pub claim_validation_rules: Vec<ClaimValidationRule>,
    /// Mapping of claims to a user.
    pub claim_mappings: ClaimMappings,
    /// Rules the mapped user must satisfy.
    pub user_validation_rules: Vec<UserValidationRule>,
}

/// The token issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issuer {
    /// The exact value of `iss`.
    pub url: String,
    /// URL of the discovery document if it is not below `url`; empty if unset.
    pub discovery_url: String,
    /// PEM certificates that replace the system root certificates; empty if unset.
    pub certificate_authority: String,
    /// Accepted audiences.
    pub audiences: Vec<String>,
    /// How several audiences are matched.
    pub audience_match_policy: AudienceMatchPolicy,
    /// Egress selector for requests to the issuer.
    pub egress_selector_type: String,
}

wire_text! {
    /// How several audiences are matched.
    AudienceMatchPolicy {
        /// One of them suffices.
        MatchAny = "MatchAny",
    }
}

/// A rule about claims: a claim with its required value, or an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimValidationRule {
    /// The claim to compare.
    pub claim: String,
    /// The required value of the claim.
    pub required_value: String,
    /// An expression over `claims` of type bool.
    pub expression: String,
    /// Message when the expression is false.
    pub message: String,
}

/// Mapping of claims to a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimMappings {
    /// The name.
    pub username: PrefixedClaimOrExpression,
    /// The groups.
    pub groups: PrefixedClaimOrExpression,
    /// The UID.
    pub uid: ClaimOrExpression,
    /// Extra attributes.
    pub extra: Vec<ExtraMapping>,
}

/// A claim with a prefix, or an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrefixedClaimOrExpression {
    /// The claim.
    pub claim: String,
    /// Prefix of the value. Missing and empty are different.
    // S10
    pub prefix: Option<String>,
    /// An expression over `claims`.
    pub expression: String,
}

/// A claim, or an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimOrExpression {
    /// The claim.
    pub claim: String,
    /// An expression over `claims`.
    pub expression: String,
}

/// One extra attribute of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtraMapping {
    /// Its name, such as `example.com/tenant`.
    pub key: String,
    /// An expression over `claims`.
    pub value_expression: String,
}

/// A rule about the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserValidationRule {
    /// An expression over `user` of type bool.
    pub expression: String,
    /// Message when the expression is false.
    pub message: String,
}

/// Anonymous authentication settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnonymousAuthConfig {
    /// Whether anonymous requests are allowed.
    pub enabled: bool,
    /// Which requests may be anonymous; empty for all.
    pub conditions: Vec<AnonymousAuthCondition>,
}

/// A request that may be anonymous.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnonymousAuthCondition {
    /// The request's exact path.
    pub path: String,
}

impl AuthenticationConfiguration {
    /// Parses a JSON or YAML file strictly.
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
    /// Every error, in the order of the text.
    pub fn parse(text: &[u8]) -> Result<Self, Diagnostics> {
        CONFIGURATION.decode(text)
    }

    /// Decodes a parsed file.
    ///
    /// # Errors
    /// As [`AuthenticationConfiguration::parse`].
    pub fn from_tree(tree: &Node) -> Result<Self, Diagnostics> {
        CONFIGURATION.decode_tree(tree)
    }
}

#[cfg(test)]
mod tests;
