//! The steps of authenticating a token, and the observer that explanations use.

use navicert_cel::Traced;
use navicert_types::FieldPath;

/// Observes the authentication of a token.
pub trait StepObserver: Sync {
    /// A step passed.
    fn passed(&self, step: AuthnStep);

    /// The token belongs to the authenticator at this path, which accepts one audience or several.
    fn routed(&self, authenticator: &FieldPath, several_audiences: bool);

    /// The expression at this path was evaluated, with its subexpressions in the order of evaluation.
    fn evaluated(&self, path: &FieldPath, expression: &str, parts: &[Traced<'_>]);
}

/// The authentication steps, in order.
///
/// With several audiences configured, [`AuthnStep::Audience`] comes after [`AuthnStep::Signature`].
// S123, S131
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "see `AuthnStep::title`")]
#[non_exhaustive]
pub enum AuthnStep {
    Compact,
    Payload,
    Routing,
    Readiness,
    ClaimTypes,
    Audience,
    Expiry,
    NotBefore,
    Header,
    Signature,
    /// Only with a revocation list.
    Revocation,
    Distributed,
    Username,
    Groups,
    Uid,
    Extra,
    RequiredClaims,
    ClaimRules,
    UserRules,
    Identity,
}

impl AuthnStep {
    /// The steps in order, for one audience or for several.
    pub fn order(several_audiences: bool) -> Vec<AuthnStep> {
        let mut order = vec![
            AuthnStep::Compact,
            AuthnStep::Payload,
            AuthnStep::Routing,
            AuthnStep::Readiness,
            AuthnStep::ClaimTypes,
            AuthnStep::Audience,
            AuthnStep::Expiry,
            AuthnStep::NotBefore,
            AuthnStep::Header,
            AuthnStep::Signature,
            AuthnStep::Revocation,
            AuthnStep::Distributed,
            AuthnStep::Username,
            AuthnStep::Groups,
            AuthnStep::Uid,
            AuthnStep::Extra,
            AuthnStep::RequiredClaims,
            AuthnStep::ClaimRules,
            AuthnStep::UserRules,
            AuthnStep::Identity,
        ];
        if several_audiences {
            order.retain(|step| *step != AuthnStep::Audience);
            let after =
                order.iter().position(|step| *step == AuthnStep::Signature).map_or(0, |index| index + 1);
            order.insert(after, AuthnStep::Audience);
        }
        order
    }

    /// What the step checks.
    pub fn title(self) -> &'static str {
        match self {
            AuthnStep::Compact => "the token is a JWT in compact form",
            AuthnStep::Payload => "the payload is valid and names an issuer",
            AuthnStep::Routing => "an authenticator is configured for the issuer",
            AuthnStep::Readiness => "the issuer's authenticator is ready",
            AuthnStep::ClaimTypes => "registered claims have the right types",
            AuthnStep::Audience => "the audience is accepted",
            AuthnStep::Expiry => "the token has not expired",
            AuthnStep::NotBefore => "the token is already valid",
            AuthnStep::Header => "the header is valid and its algorithm is allowed",
            AuthnStep::Signature => "the signature is valid",
            AuthnStep::Revocation => "the token has not been revoked",
            AuthnStep::Distributed => "no distributed claim is missing",
            AuthnStep::Username => "the username is mapped",
            AuthnStep::Groups => "the groups are mapped",
            AuthnStep::Uid => "the UID is mapped",
            AuthnStep::Extra => "the extra attributes are mapped",
            AuthnStep::RequiredClaims => "required claims have their values",
            AuthnStep::ClaimRules => "claim validation rules hold",
            AuthnStep::UserRules => "user validation rules hold",
            AuthnStep::Identity => "user name and groups are valid",
        }
    }

    /// The configuration field that the step is about.
    pub(crate) fn path(self, authenticator: &FieldPath) -> FieldPath {
        let issuer = || authenticator.field("issuer");
        let mapping = |name: &str| authenticator.field("claimMappings").field(name);
        match self {
            AuthnStep::Compact | AuthnStep::Payload => FieldPath::root(),
            AuthnStep::Routing => issuer().field("url"),
            AuthnStep::Audience => issuer().field("audiences"),
            AuthnStep::Distributed | AuthnStep::Groups => mapping("groups"),
            AuthnStep::Username => mapping("username"),
            AuthnStep::Uid => mapping("uid"),
            AuthnStep::Extra => mapping("extra"),
            AuthnStep::RequiredClaims | AuthnStep::ClaimRules => authenticator.field("claimValidationRules"),
            AuthnStep::UserRules => authenticator.field("userValidationRules"),
            AuthnStep::Readiness
            | AuthnStep::ClaimTypes
            | AuthnStep::Expiry
            | AuthnStep::NotBefore
            | AuthnStep::Header => authenticator.clone(),
            AuthnStep::Signature | AuthnStep::Revocation | AuthnStep::Identity => authenticator.clone(),
        }
    }
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// The step passed.
    Pass,
    /// The step failed, and why.
    Fail(String),
    /// The step was not reached.
    Skip,
}
