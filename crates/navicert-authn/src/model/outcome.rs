//! The three outcomes of authentication: a user, no opinion (the token belongs to no configured issuer), or a rejection with
//! a reason.

use std::fmt;

use navicert_types::FieldPath;

use super::algorithm::JwsAlgorithmSet;
use super::user::AuthenticatedUser;

/// The outcome of authenticating a token.
#[derive(Clone, Debug)]
pub enum AuthnOutcome {
    /// The token is valid and maps to this user.
    Authenticated(AuthenticatedUser),
    /// The token belongs to no configured issuer; another authenticator may know it.
    NoOpinion(NoOpinion),
    /// The token belongs to a configured issuer and is rejected.
    Rejected(Box<Rejection>),
}

/// Why no authenticator claims a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoOpinion {
    /// Not a JSON web token in compact form.
    #[error("not a JSON web token in compact form")]
    NotCompact,
    /// The payload is not base64.
    #[error("the payload is not base64url without padding")]
    PayloadEncoding,
    /// The payload is not a JSON object.
    #[error("the payload is not a JSON object")]
    PayloadJson,
    /// The payload names no issuer.
    #[error("the payload names no issuer")]
    NoIssuer,
    /// No authenticator has this issuer.
    #[error("no authenticator is configured for this issuer")]
    UnknownIssuer,
}

/// A refusal and the authenticator that made it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{refusal}")]
pub struct Rejection {
    /// Field path of the authenticator in the configuration.
    pub authenticator: FieldPath,
    /// The reason.
    pub refusal: Refusal,
}

/// Why a token is rejected. Messages contain no claim values.
// H16
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The issuer has not been discovered yet.
    // S108
    #[error("oidc: authenticator for this issuer is not initialized")]
    NotReady,
    /// The issuer's signing keys could not be fetched.
    #[error("fetching keys failed: {0}")]
    Keys(String),
    /// The token or its header is malformed.
    #[error("malformed jwt: {0}")]
    Malformed(&'static str),
    /// The token exceeds a limit of the profile.
    #[error("{0}")]
    TooLarge(&'static str),
    /// The user exceeds a limit of the profile.
    // A49
    #[error("the user exceeds the size limit")]
    IdentityTooLarge,
    /// A registered claim has the wrong type or is out of range.
    #[error("claim `{0}` has the wrong type or is out of range")]
    ClaimType(&'static str),
    /// The verified issuer differs from the configured one.
    #[error("id token issued by a different provider")]
    Issuer,
    /// No audience of the token is configured.
    #[error("the token is not for any of the configured audiences")]
    Audience,
    /// The token has expired.
    #[error("token is expired")]
    Expired,
    /// The token is not valid yet.
    #[error(
        "token is not valid yet: `nbf` (not before) is more than {leeway} s in the future, which {by} does not accept"
    )]
    NotYetValid {
        /// The accepted difference, in seconds.
        leeway: i64,
        /// The Kubernetes version or the hardening rule that limits it: `Kubernetes 1.37`.
        by: &'static str,
    },
    /// The signature algorithm is not allowed.
    #[error("id token signed with unsupported algorithm, expected {allowed}")]
    Algorithm {
        /// The allowed algorithms.
        allowed: JwsAlgorithmSet,
    },
    /// The issuer has no key with the token's `kid`.
    #[error("failed to verify id token signature: the issuer has no key with this `kid`")]
    UnknownKey,
    /// No key verifies the signature.
    #[error("failed to verify id token signature")]
    Signature,
    /// The token has been revoked.
    #[error("the token has been revoked")]
    Revoked,
    /// A distributed claim could not be resolved.
    #[error("{0}")]
    Distributed(&'static str),
    /// A claim that a mapping needs is missing.
    #[error("{path}: claim `{claim}` is not present")]
    MissingClaim {
        /// The mapping.
        path: FieldPath,
        /// The claim.
        claim: String,
    },
    /// A claim has a type that a mapping cannot use.
    #[error("{path}: claim `{claim}` is not {expected}")]
    MappingType {
        /// The mapping.
        path: FieldPath,
        /// The claim.
        claim: String,
        /// The expected type.
        expected: &'static str,
    },
    /// The username comes from `email`, and `email_verified` is not true.
    #[error("email not verified")]
    EmailNotVerified,
    /// An expression failed to evaluate.
    #[error("{path}: expression '{text}' resulted in error: {error}")]
    Evaluation {
        /// The expression's field.
        path: FieldPath,
        /// The expression.
        text: String,
        /// What the expression is used for.
        purpose: Purpose,
        /// The evaluation error. Its text is part of this one.
        error: Box<navicert_cel::EvaluationError>,
    },
    /// An expression returned a value of the wrong type.
    #[error("{path}: expression '{text}' must return {expected}")]
    ResultType {
        /// The expression's field.
        path: FieldPath,
        /// The expression.
        text: String,
        /// The expected type.
        expected: &'static str,
    },
    /// The username is empty.
    #[error("an empty username is not allowed")]
    EmptyUsername,
    /// A required claim is missing or has another value.
    #[error("{path}: required claim `{claim}` is missing or does not have the required value")]
    RequiredClaim {
        /// The rule.
        path: FieldPath,
        /// The claim.
        claim: String,
    },
    /// A claim validation rule returned false.
    #[error("{path}: validation expression '{text}' failed: {message}")]
    ClaimRule {
        /// The rule.
        path: FieldPath,
        /// The expression.
        text: String,
        /// Its message.
        message: String,
    },
    /// A user validation rule returned false.
    #[error("{path}: validation expression '{text}' failed: {message}")]
    UserRule {
        /// The rule.
        path: FieldPath,
        /// The expression.
        text: String,
        /// Its message.
        message: String,
    },
    /// Part of the user contains control characters, bidirectional controls, surrounding white space or invalid text.
    // H14
    #[error("the {0} contains control or bidirectional characters, surrounding white space or invalid UTF-8")]
    Unprintable(&'static str),
    /// Part of the user starts with the reserved prefix `system:`.
    // H17
    #[error("the {0} starts with the reserved prefix `system:`")]
    SystemPrefix(&'static str),
    /// A group is `system:masters`.
    // H17
    #[error("the group `system:masters` is not allowed")]
    SystemMasters,
}

/// What an expression is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A claim mapping.
    Mapping,
    /// A claim validation rule.
    ClaimRule,
    /// A user validation rule.
    UserRule,
}

/// Rejection reasons, a closed set used as a metric label.
// S197
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the labels of the metric")]
#[non_exhaustive]
pub enum RefusalClass {
    NotReady,
    Malformed,
    #[serde(rename = "alg")]
    Algorithm,
    #[serde(rename = "kid_unknown")]
    UnknownKey,
    Signature,
    Expired,
    NotYetValid,
    Audience,
    ClaimType,
    Mapping,
    RequiredClaim,
    ClaimRule,
    UserRule,
    Distributed,
    Cost,
    IdentityEncoding,
    IdentityTooLarge,
    Revoked,
    Internal,
}

impl Refusal {
    /// The class of this refusal.
    pub fn class(&self) -> RefusalClass {
        match self {
            Refusal::NotReady | Refusal::Keys(_) => RefusalClass::NotReady,
            Refusal::Malformed(_) | Refusal::TooLarge(_) => RefusalClass::Malformed,
            Refusal::ClaimType(_) => RefusalClass::ClaimType,
            Refusal::Issuer => RefusalClass::Internal,
            Refusal::Audience => RefusalClass::Audience,
            Refusal::Expired => RefusalClass::Expired,
            Refusal::NotYetValid { .. } => RefusalClass::NotYetValid,
            Refusal::Algorithm { .. } => RefusalClass::Algorithm,
            Refusal::UnknownKey => RefusalClass::UnknownKey,
            Refusal::Signature => RefusalClass::Signature,
            Refusal::Revoked => RefusalClass::Revoked,
            Refusal::Distributed(_) => RefusalClass::Distributed,
            Refusal::Evaluation { error, .. } if error.error.kind.is_internal() => RefusalClass::Internal,
            Refusal::Evaluation { error, .. } if error.error.limit().is_some() => RefusalClass::Cost,
            Refusal::Evaluation { purpose: Purpose::ClaimRule, .. } | Refusal::ClaimRule { .. } => {
                RefusalClass::ClaimRule
            }
            Refusal::Evaluation { purpose: Purpose::UserRule, .. } | Refusal::UserRule { .. } => {
                RefusalClass::UserRule
            }
            Refusal::MissingClaim { .. }
            | Refusal::MappingType { .. }
            | Refusal::EmailNotVerified
            | Refusal::Evaluation { .. }
            | Refusal::ResultType { .. }
            | Refusal::EmptyUsername
            | Refusal::SystemPrefix(_)
            | Refusal::SystemMasters => RefusalClass::Mapping,
            Refusal::RequiredClaim { .. } => RefusalClass::RequiredClaim,
            Refusal::Unprintable(_) => RefusalClass::IdentityEncoding,
            Refusal::IdentityTooLarge => RefusalClass::IdentityTooLarge,
        }
    }

    /// The configuration field that the token failed at, if any.
    pub fn path(&self) -> Option<&FieldPath> {
        match self {
            Refusal::MissingClaim { path, .. }
            | Refusal::MappingType { path, .. }
            | Refusal::Evaluation { path, .. }
            | Refusal::ResultType { path, .. }
            | Refusal::RequiredClaim { path, .. }
            | Refusal::ClaimRule { path, .. }
            | Refusal::UserRule { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The message of the validation rule that rejected the token, if one did.
    pub fn message(&self) -> Option<&str> {
        match self {
            Refusal::ClaimRule { message, .. } | Refusal::UserRule { message, .. } => Some(message),
            _ => None,
        }
    }

    /// Whether a retry may succeed: keys may be fetched, time passes.
    // S219
    pub fn is_transient(&self) -> bool {
        matches!(
            self.class(),
            RefusalClass::NotReady
                | RefusalClass::UnknownKey
                | RefusalClass::NotYetValid
                | RefusalClass::Distributed
        )
    }
}

impl RefusalClass {
    /// Every class.
    pub const ALL: [RefusalClass; RefusalClass::Internal as usize + 1] = [
        RefusalClass::NotReady,
        RefusalClass::Malformed,
        RefusalClass::Algorithm,
        RefusalClass::UnknownKey,
        RefusalClass::Signature,
        RefusalClass::Expired,
        RefusalClass::NotYetValid,
        RefusalClass::Audience,
        RefusalClass::ClaimType,
        RefusalClass::Mapping,
        RefusalClass::RequiredClaim,
        RefusalClass::ClaimRule,
        RefusalClass::UserRule,
        RefusalClass::Distributed,
        RefusalClass::Cost,
        RefusalClass::IdentityEncoding,
        RefusalClass::IdentityTooLarge,
        RefusalClass::Revoked,
        RefusalClass::Internal,
    ];

    /// The metric label's value.
    pub fn name(self) -> &'static str {
        match self {
            RefusalClass::NotReady => "not_ready",
            RefusalClass::Malformed => "malformed",
            RefusalClass::Algorithm => "alg",
            RefusalClass::UnknownKey => "kid_unknown",
            RefusalClass::Signature => "signature",
            RefusalClass::Expired => "expired",
            RefusalClass::NotYetValid => "not_yet_valid",
            RefusalClass::Audience => "audience",
            RefusalClass::ClaimType => "claim_type",
            RefusalClass::Mapping => "mapping",
            RefusalClass::RequiredClaim => "required_claim",
            RefusalClass::ClaimRule => "claim_rule",
            RefusalClass::UserRule => "user_rule",
            RefusalClass::Distributed => "distributed",
            RefusalClass::Cost => "cost",
            RefusalClass::IdentityEncoding => "identity_encoding",
            RefusalClass::IdentityTooLarge => "identity_too_large",
            RefusalClass::Revoked => "revoked",
            RefusalClass::Internal => "internal",
        }
    }
}

impl fmt::Display for RefusalClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
