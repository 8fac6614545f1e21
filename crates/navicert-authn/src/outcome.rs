//! The three ways a token's journey ends, kept apart everywhere: a user, nobody's token, or a refusal with a reason.

use std::fmt;
use std::sync::Arc;

use navicert_types::FieldPath;

use crate::jwt::Algorithms;
use crate::mapping::User;

/// How it ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// This is who it is.
    Authenticated(Arc<User>),
    /// The token is nobody's here; another authenticator may know it.
    NoOpinion(NoOpinion),
    /// The token belongs to an issuer of ours and is refused.
    Rejected(Box<Rejection>),
}

/// Why nobody claims a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoOpinion {
    /// Not a JSON web token in compact form.
    #[error("not a JSON web token in compact form")]
    NotCompact,
    /// The payload is not base64.
    #[error("the payload is not base64url without padding")]
    PayloadEncoding,
    /// The payload is no JSON object.
    #[error("the payload is no JSON object")]
    PayloadJson,
    /// The payload names no issuer.
    #[error("the payload names no issuer")]
    NoIssuer,
    /// No authenticator has this issuer.
    #[error("no authenticator has this issuer")]
    UnknownIssuer,
}

/// A refusal and whose it is.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{refusal}")]
pub struct Rejection {
    /// Which authenticator refused: its place in the file.
    pub authenticator: FieldPath,
    /// Why.
    #[source]
    pub refusal: Refusal,
}

/// Why a token is refused. No text here holds a claim's value (H16).
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refusal {
    /// The issuer's keys have never been seen (S108).
    #[error("oidc: authenticator for this issuer is not initialized")]
    NotReady,
    /// The issuer's keys cannot be had.
    #[error("fetching keys failed: {0}")]
    Keys(String),
    /// The text or its header is not as it should be.
    #[error("malformed jwt: {0}")]
    Malformed(&'static str),
    /// Larger than the profile allows.
    #[error("{0}")]
    TooLarge(&'static str),
    /// A registered claim has another type than it has to have.
    #[error("claim `{0}` has the wrong type or is out of range")]
    ClaimType(&'static str),
    /// The verified issuer is another one.
    #[error("id token issued by a different provider")]
    Issuer,
    /// For somebody else.
    #[error("the token is not for any of the configured audiences")]
    Audience,
    /// Too late.
    #[error("token is expired")]
    Expired,
    /// Too early.
    #[error("the token's `nbf` (not before) time has not come")]
    NotYetValid,
    /// An algorithm that is not allowed.
    #[error("id token signed with unsupported algorithm, expected {allowed}")]
    Algorithm {
        /// What is.
        allowed: Algorithms,
    },
    /// No key has the name that the token's header gives.
    #[error("failed to verify id token signature: the issuer has no key of this `kid`")]
    UnknownKey,
    /// No key verifies it.
    #[error("failed to verify id token signature")]
    Signature,
    /// The token has been revoked.
    #[error("the token has been revoked")]
    Revoked,
    /// A distributed claim cannot be had.
    #[error("{0}")]
    Distributed(&'static str),
    /// A claim that a mapping needs is absent.
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
        /// What would do.
        expected: &'static str,
    },
    /// `email` is the name, and it is not verified.
    #[error("email not verified")]
    EmailNotVerified,
    /// An expression gave no value.
    #[error("{path}: expression '{text}' resulted in error: {}", without_values(&source.to_string(), text))]
    Evaluation {
        /// The expression's field.
        path: FieldPath,
        /// The expression.
        text: String,
        /// For which purpose it was evaluated.
        purpose: Purpose,
        /// What happened.
        #[source]
        source: Box<navicert_cel::EvaluationError>,
    },
    /// An expression gave a value of the wrong type.
    #[error("{path}: expression '{text}' must return {expected}")]
    ResultType {
        /// The expression's field.
        path: FieldPath,
        /// The expression.
        text: String,
        /// What would do.
        expected: &'static str,
    },
    /// The name is empty.
    #[error("an empty username is not allowed")]
    EmptyUsername,
    /// A required claim is absent or has another value.
    #[error("{path}: required claim `{claim}` is not as required")]
    RequiredClaim {
        /// The rule.
        path: FieldPath,
        /// The claim.
        claim: String,
    },
    /// A rule over the claims is false.
    #[error("{path}: validation expression '{text}' failed: {message}")]
    ClaimRule {
        /// The rule.
        path: FieldPath,
        /// The expression.
        text: String,
        /// Its message.
        message: String,
    },
    /// A rule over the user is false.
    #[error("{path}: validation expression '{text}' failed: {message}")]
    UserRule {
        /// The rule.
        path: FieldPath,
        /// The expression.
        text: String,
        /// Its message.
        message: String,
    },
    /// Some part of the user cannot be a name (H14).
    #[error("the {0} holds control characters, surrounding white space or bytes that are not text")]
    Unprintable(&'static str),
    /// Some part of the user is for the cluster itself (H17).
    #[error("the {0} begins with `system:`")]
    SystemPrefix(&'static str),
}

/// What an evaluation complains of, without what it quotes from the claims: a text in quotation marks, a key or an
/// index that is not in the expression itself came from there (H16).
pub(crate) fn without_values(message: &str, expression: &str) -> String {
    for start in ["no such key: ", "index out of bounds: "] {
        if let Some(value) = message.strip_prefix(start) {
            let masked = if expression.contains(value) { value } else { "…" };
            return format!("{start}{masked}");
        }
    }
    let mut out = String::with_capacity(message.len());
    for (index, piece) in message.split('"').enumerate() {
        if index > 0 {
            out.push('"');
        }
        let is_quoted = index % 2 == 1;
        out.push_str(if is_quoted && !piece.is_empty() && !expression.contains(piece) {
            "…"
        } else {
            piece
        });
    }
    out
}

/// For which purpose an expression is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A claim mapping.
    Mapping,
    /// A claim validation rule.
    ClaimRule,
    /// A user validation rule.
    UserRule,
}

/// The closed set of reasons, for metrics (S197).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the labels of the metric")]
pub enum Class {
    NotReady,
    Malformed,
    Algorithm,
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
    Revoked,
    Internal,
}

impl Refusal {
    /// Which of the closed set it is.
    pub fn class(&self) -> Class {
        match self {
            Refusal::NotReady | Refusal::Keys(_) => Class::NotReady,
            Refusal::Malformed(_) | Refusal::TooLarge(_) => Class::Malformed,
            Refusal::ClaimType(_) => Class::ClaimType,
            Refusal::Issuer => Class::Internal,
            Refusal::Audience => Class::Audience,
            Refusal::Expired => Class::Expired,
            Refusal::NotYetValid => Class::NotYetValid,
            Refusal::Algorithm { .. } => Class::Algorithm,
            Refusal::UnknownKey => Class::UnknownKey,
            Refusal::Signature => Class::Signature,
            Refusal::Revoked => Class::Revoked,
            Refusal::Distributed(_) => Class::Distributed,
            Refusal::Evaluation { source, .. } if source.error.limit.is_some() => Class::Cost,
            Refusal::Evaluation { purpose: Purpose::ClaimRule, .. } | Refusal::ClaimRule { .. } => {
                Class::ClaimRule
            }
            Refusal::Evaluation { purpose: Purpose::UserRule, .. } | Refusal::UserRule { .. } => {
                Class::UserRule
            }
            Refusal::MissingClaim { .. }
            | Refusal::MappingType { .. }
            | Refusal::EmailNotVerified
            | Refusal::Evaluation { .. }
            | Refusal::ResultType { .. }
            | Refusal::EmptyUsername
            | Refusal::SystemPrefix(_) => Class::Mapping,
            Refusal::RequiredClaim { .. } => Class::RequiredClaim,
            Refusal::Unprintable(_) => Class::IdentityEncoding,
        }
    }

    /// The field that the token failed at, if it is one.
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

    /// The message of the rule that refused it, if one did.
    pub fn message(&self) -> Option<&str> {
        match self {
            Refusal::ClaimRule { message, .. } | Refusal::UserRule { message, .. } => Some(message),
            _ => None,
        }
    }

    /// Whether it may heal by itself: keys may come, time passes (S219).
    pub fn is_not_ready(&self) -> bool {
        matches!(self.class(), Class::NotReady | Class::UnknownKey | Class::NotYetValid | Class::Distributed)
    }

    /// Whether the same token will be refused again for certain.
    pub fn is_cacheable(&self) -> bool {
        !self.is_not_ready()
    }
}

impl Class {
    /// The label's value.
    pub fn name(self) -> &'static str {
        match self {
            Class::NotReady => "not_ready",
            Class::Malformed => "malformed",
            Class::Algorithm => "alg",
            Class::UnknownKey => "kid_unknown",
            Class::Signature => "signature",
            Class::Expired => "expired",
            Class::NotYetValid => "not_yet_valid",
            Class::Audience => "audience",
            Class::ClaimType => "claim_type",
            Class::Mapping => "mapping",
            Class::RequiredClaim => "required_claim",
            Class::ClaimRule => "claim_rule",
            Class::UserRule => "user_rule",
            Class::Distributed => "distributed",
            Class::Cost => "cost",
            Class::IdentityEncoding => "identity_encoding",
            Class::Revoked => "revoked",
            Class::Internal => "internal",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // H16
    #[test]
    fn a_complaint_repeats_the_expression_and_not_the_claims() {
        for (message, expression, told) in [
            ("no such key: hd", "claims.hd", "no such key: hd"),
            ("no such key: secret", "claims.m[claims.k]", "no such key: …"),
            ("index out of bounds: 7", "claims.l[int(claims.n)]", "index out of bounds: …"),
            (
                "IP Address \"1.2\" parse error: ParseAddr(\"1.2\"): no",
                "ip(claims.a)",
                "IP Address \"…\" parse error: ParseAddr(\"…\"): no",
            ),
            ("IP Address \"1.2\" parse error", "ip('1.2')", "IP Address \"1.2\" parse error"),
            ("no such overload", "claims.n + 1", "no such overload"),
        ] {
            assert_eq!(without_values(message, expression), told);
        }
    }
}
