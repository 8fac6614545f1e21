//! Explains why a token is accepted or rejected, step by step: runs the authenticator with an observer that records every step.

pub(crate) mod go;
mod hints;
mod key_errors;
mod log;
mod masked;

use std::sync::Mutex;

use navicert_cel::kubernetes::render;
use navicert_cel::{EvalErrorKind, Traced, Untrusted};
use navicert_types::FieldPath;

use crate::authenticator::{Authenticators, AuthnRequest};
use crate::config::{CompiledAuthenticator, CompiledExpression, CompiledIssuer};
use crate::outcome::{AuthnOutcome, Refusal};
use crate::profile::{AuthnProfile, Hardening};

pub use log::upstream_decision;
pub use masked::Masked;

/// Observes the authentication of a token.
pub trait StepObserver: Sync {
    /// A step passed.
    fn passed(&self, step: AuthnStep);

    /// The token belongs to this authenticator.
    fn routed(&self, authenticator: &CompiledAuthenticator);

    /// An expression was evaluated, with its subexpressions in the order of evaluation.
    fn evaluated(&self, expression: &CompiledExpression, parts: &[Traced<'_>]);
}

/// The authentication steps, in order.
///
/// With several audiences configured, [`AuthnStep::Audience`] comes after [`AuthnStep::Signature`].
// S123, S131
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "see `Step::title`")]
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
            AuthnStep::Readiness => "the issuer's keys are available",
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
    fn path(self, authenticator: &FieldPath) -> FieldPath {
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

/// One step and its outcome.
#[derive(Clone, Debug)]
pub struct StepFinding {
    /// The step.
    pub step: AuthnStep,
    /// The configuration field it is about; the root if none.
    pub path: FieldPath,
    /// Its outcome.
    pub verdict: StepOutcome,
}

/// An evaluated expression.
#[derive(Clone, Debug)]
pub struct ExpressionTrace {
    /// Its field path.
    pub path: FieldPath,
    /// The source text.
    pub text: String,
    /// Its subexpressions, in the order of evaluation; the last is the whole expression.
    pub parts: Vec<SubexpressionTrace>,
}

/// A subexpression and its result.
#[derive(Clone, Debug)]
pub struct SubexpressionTrace {
    /// The source text.
    pub text: String,
    /// The type of its value; empty if evaluation failed.
    pub type_name: String,
    /// Its value as JSON, or the error.
    pub outcome: Result<Untrusted, EvalErrorKind>,
}

impl SubexpressionTrace {
    /// Describes the result. Without values: the type, the redacted error, and the result of a comparison.
    pub fn describe(&self, show_values: bool) -> String {
        let is_comparison = self.type_name == "bool" && !is_plain_selection(&self.text);
        match &self.outcome {
            Ok(value) if show_values || is_comparison => format!("is {}", value.expose()),
            Ok(_) => format!("is of type {}", self.type_name),
            Err(kind) if show_values => format!("failed: {}", kind.exposed()),
            Err(kind) => format!("failed: {kind}"),
        }
    }
}

/// A constant, or `claims` itself: not worth showing.
fn is_plain(text: &str) -> bool {
    let is_text = |mark: char| {
        let inside = text.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
        inside.is_some_and(|inside| !inside.contains(mark))
    };
    matches!(text, "claims" | "user" | "true" | "false" | "null" | "[]" | "{}")
        || is_text('"')
        || is_text('\'')
        || text.parse::<f64>().is_ok()
}

/// `claims.a.b`: its value is a claim.
fn is_plain_selection(text: &str) -> bool {
    text.chars().all(|symbol| symbol.is_ascii_alphanumeric() || "._?`[]\"'".contains(symbol))
}

/// The explanation of a token's outcome.
#[derive(Debug)]
pub struct Explanation {
    /// The outcome.
    pub outcome: AuthnOutcome,
    /// Every step.
    pub findings: Vec<StepFinding>,
    /// Every evaluated expression.
    pub expressions: Vec<ExpressionTrace>,
    /// Details: near misses, existing claims, times.
    pub hints: Vec<Masked>,
    /// What to do, if the token was not accepted.
    pub remedy: Option<String>,
}

/// How kube-apiserver decides on the same token.
#[derive(Clone, Debug)]
pub enum UpstreamDecision {
    /// It accepts the token.
    Accepts,
    /// It rejects the token, with this log message; `None`: its exact words are not known.
    Rejects(Option<Masked>),
    /// It rejects the configuration.
    RejectsConfiguration(String),
}

/// The explanation of a token, and how kube-apiserver decides.
#[derive(Debug)]
pub struct Diagnosis {
    /// The explanation.
    pub explanation: Explanation,
    /// How kube-apiserver decides.
    pub kube: UpstreamDecision,
    /// The hardening rules that are decisive alone: without one of them the token would be accepted.
    pub decisive: Vec<Hardening>,
}

/// Explains a token under a profile, and compares with kube-apiserver.
///
/// `authenticators` creates them for a profile; `key_set` returns the response of an issuer's key endpoint, if known.
///
/// # Errors
/// The error of `authenticators` for the profile itself.
pub fn diagnose(
    authenticators: impl Fn(&AuthnProfile) -> Result<Authenticators, String>,
    profile: &AuthnProfile,
    request: &AuthnRequest<'_>,
    key_set: impl Fn(&CompiledIssuer) -> Option<String>,
) -> Result<Diagnosis, String> {
    let explanation = explain(&authenticators(profile)?, request);
    let kube = match authenticators(&AuthnProfile::KUBE) {
        Ok(authenticators) => upstream_decision(&authenticators, request, key_set),
        Err(why) => UpstreamDecision::RejectsConfiguration(why),
    };
    let is_taken = matches!(explanation.outcome, AuthnOutcome::Authenticated(_));
    let decides = |rule: &Hardening| {
        profile.has(*rule)
            && authenticators(&profile.with(*rule, false)).is_ok_and(|authenticators| {
                matches!(authenticators.authenticate(request), AuthnOutcome::Authenticated(_))
            })
    };
    let decisive = match kube {
        UpstreamDecision::Accepts if !is_taken => Hardening::ALL.into_iter().filter(decides).collect(),
        _ => Vec::new(),
    };
    Ok(Diagnosis { explanation, kube, decisive })
}

/// Authenticates a token and records every step.
pub fn explain(authenticators: &Authenticators, request: &AuthnRequest<'_>) -> Explanation {
    let recorder = StepRecorder::default();
    let outcome = authenticators.authenticate(&AuthnRequest { observer: Some(&recorder), ..*request });
    let record = recorder.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let why = match &outcome {
        AuthnOutcome::Authenticated(_) => String::new(),
        AuthnOutcome::NoOpinion(why) => why.to_string(),
        AuthnOutcome::Rejected(rejection) => rejection.to_string(),
    };
    let mut failed = matches!(outcome, AuthnOutcome::Authenticated(_));
    let mut findings = Vec::new();
    let is_revoked =
        matches!(&outcome, AuthnOutcome::Rejected(why) if matches!(why.refusal, Refusal::Revoked));
    for step in AuthnStep::order(record.several_audiences) {
        if step == AuthnStep::Revocation && !is_revoked && !record.passed.contains(&step) {
            continue;
        }
        let verdict = if record.passed.contains(&step) {
            StepOutcome::Pass
        } else if failed {
            StepOutcome::Skip
        } else {
            failed = true;
            StepOutcome::Fail(why.clone())
        };
        let path = match &record.authenticator {
            Some(authenticator) => step.path(authenticator),
            // No authenticator: the path can only name the list of authenticators.
            None if step == AuthnStep::Routing => FieldPath::root().field("jwt"),
            None => FieldPath::root(),
        };
        findings.push(StepFinding { step, path, verdict });
    }
    let guidance = hints::guidance(&outcome, authenticators, request);
    let (hints, remedy) = (guidance.hints, guidance.remedy);
    Explanation { outcome, findings, expressions: record.expressions, hints, remedy }
}

#[derive(Default)]
struct StepRecorder(Mutex<RecordedSteps>);

#[derive(Default)]
struct RecordedSteps {
    passed: Vec<AuthnStep>,
    authenticator: Option<FieldPath>,
    several_audiences: bool,
    expressions: Vec<ExpressionTrace>,
}

impl StepRecorder {
    fn note(&self, change: impl FnOnce(&mut RecordedSteps)) {
        change(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
}

impl StepObserver for StepRecorder {
    fn passed(&self, step: AuthnStep) {
        self.note(|record| record.passed.push(step));
    }

    fn routed(&self, authenticator: &CompiledAuthenticator) {
        self.note(|record| {
            record.authenticator = Some(authenticator.path.clone());
            record.several_audiences = authenticator.issuer.audiences.len() > 1;
        });
    }

    fn evaluated(&self, expression: &CompiledExpression, parts: &[Traced<'_>]) {
        let part = |traced: &Traced<'_>| {
            let (start, end) = (traced.span.start as usize, traced.span.end as usize);
            let text = expression.text.get(start..end).unwrap_or_default().to_owned();
            let type_name = traced.outcome.as_ref().map_or("", |value| value.type_name()).to_owned();
            let outcome = traced.outcome.as_ref().map_err(Clone::clone).map(|value| {
                let json = render::value(value);
                Untrusted::new(json.map_or_else(|| value.type_name().to_owned(), |json| json.to_string()))
            });
            SubexpressionTrace { text, type_name, outcome }
        };
        let evaluated = ExpressionTrace {
            path: expression.path.clone(),
            text: expression.text.clone(),
            parts: parts
                .iter()
                .map(part)
                .filter(|part| !is_plain(&part.text) || part.text == expression.text)
                .collect(),
        };
        self.note(|record| record.expressions.push(evaluated));
    }
}

#[cfg(test)]
mod tests;
