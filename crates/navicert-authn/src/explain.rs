//! Explains why a token is accepted or rejected, step by step: runs the authenticator with an observer that records every step.

mod claim_type_errors;
mod hints;
mod key_errors;
mod log;
mod masked;
mod token_text;

use std::sync::Mutex;

use navicert_cel::kubernetes::render;
use navicert_cel::{EvalErrorKind, Traced, Untrusted};
use navicert_types::FieldPath;

use crate::authenticator::Authenticators;
use crate::config::CompiledIssuer;
use crate::model::AuthnRequest;
use crate::model::outcome::{AuthnOutcome, Refusal};
use crate::profile::{AuthnProfile, Hardening, KubeVersion};

pub use crate::model::{AuthnStep, StepObserver, StepOutcome};
pub use log::upstream_decision;
pub use masked::Masked;

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
    /// The Kubernetes version of the profile.
    pub version: KubeVersion,
    /// How kube-apiserver of this version decides.
    pub kube: UpstreamDecision,
    /// The supported versions that decide otherwise on this token: accept what this version rejects, or reverse.
    pub others: Vec<KubeVersion>,
    /// The hardening rules that are decisive alone: without one of them the token would be accepted.
    pub decisive: Vec<Hardening>,
}

impl Diagnosis {
    /// Which versions of kube-apiserver accept the token, if they do not all decide the same.
    pub fn version_difference(&self) -> Option<String> {
        let names: Vec<&str> = self.others.iter().map(|version| version.name()).collect();
        let (others, ours) = (names.split_last(), self.version);
        let (last, first) = others?;
        let list =
            if first.is_empty() { (*last).to_owned() } else { format!("{} and {last}", first.join(", ")) };
        let plural = !first.is_empty();
        Some(match (&self.kube, plural) {
            (UpstreamDecision::Accepts, true) => {
                format!("Kubernetes {ours} accepts this token, {list} reject it")
            }
            (UpstreamDecision::Accepts, false) => {
                format!("Kubernetes {ours} accepts this token, {list} rejects it")
            }
            (_, true) => format!("Kubernetes {list} accept this token, {ours} rejects it"),
            (_, false) => format!("Kubernetes {list} accepts this token, {ours} rejects it"),
        })
    }
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
    let kube = match authenticators(&AuthnProfile::kube(profile.version)) {
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
    let is_accepted = matches!(kube, UpstreamDecision::Accepts);
    let accepts = |version: &KubeVersion| {
        authenticators(&AuthnProfile::kube(*version)).is_ok_and(|authenticators| {
            matches!(authenticators.authenticate(request), AuthnOutcome::Authenticated(_))
        })
    };
    let others = KubeVersion::ALL.into_iter().filter(|version| *version != profile.version);
    let others = others.filter(|version| accepts(version) != is_accepted).collect();
    Ok(Diagnosis { explanation, version: profile.version, kube, others, decisive })
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

    fn routed(&self, authenticator: &FieldPath, several_audiences: bool) {
        self.note(|record| {
            record.authenticator = Some(authenticator.clone());
            record.several_audiences = several_audiences;
        });
    }

    fn evaluated(&self, path: &FieldPath, expression: &str, parts: &[Traced<'_>]) {
        let part = |traced: &Traced<'_>| {
            let (start, end) = (traced.span.start as usize, traced.span.end as usize);
            let text = expression.get(start..end).unwrap_or_default().to_owned();
            let type_name = traced.outcome.as_ref().map_or("", |value| value.type_name()).to_owned();
            let outcome = traced.outcome.as_ref().map_err(Clone::clone).map(|value| {
                let json = render::value(value);
                Untrusted::new(json.map_or_else(|| value.type_name().to_owned(), |json| json.to_string()))
            });
            SubexpressionTrace { text, type_name, outcome }
        };
        let evaluated = ExpressionTrace {
            path: path.clone(),
            text: expression.to_owned(),
            parts: shortened(parts)
                .map(part)
                .filter(|part| !is_plain(&part.text) || part.text == expression)
                .collect(),
        };
        self.note(|record| record.expressions.push(evaluated));
    }
}

/// Maximum number of evaluated subexpressions that an explanation holds of one expression.
const MAX_TRACED_PARTS: usize = 200;

/// The first parts, and the last one, which is the whole expression. A loop that reaches the cost limit evaluates hundreds of
/// thousands, each with its value.
fn shortened<'p, 'v>(parts: &'p [Traced<'v>]) -> impl Iterator<Item = &'p Traced<'v>> {
    let last = parts.len().saturating_sub(1);
    parts.iter().take(last.min(MAX_TRACED_PARTS)).chain(parts.last())
}

#[cfg(test)]
mod tests;
