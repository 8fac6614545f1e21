//! Why a token is taken or refused, step by step: the same authenticator, with an observer that writes everything down.

pub(crate) mod go;
mod hints;
mod key_words;
mod log;
mod masked;

use std::sync::Mutex;

use navicert_cel::Traced;
use navicert_cel::kubernetes::render;
use navicert_types::FieldPath;

use crate::authenticator::{Authenticators, Question};
use crate::config::{CompiledAuthenticator, CompiledIssuer, Expression};
use crate::outcome::{Outcome, Refusal, without_values};
use crate::profile::{Profile, Rule};

pub use log::log_line;
pub use masked::Masked;

/// Looks on while a token is judged.
pub trait Observer: Sync {
    /// A step went well.
    fn passed(&self, step: Step);

    /// The token belongs to this authenticator.
    fn routed(&self, authenticator: &CompiledAuthenticator);

    /// An expression was evaluated; so came its parts out, in the order of evaluation.
    fn evaluated(&self, expression: &Expression, parts: &[Traced<'_>]);
}

/// The steps of a token's way, in the order in which they are taken (S123, S131).
///
/// With several audiences configured, [`Step::Audience`] comes after [`Step::Signature`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "see `Step::title`")]
pub enum Step {
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
    /// Only where there is a revocation list.
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

impl Step {
    /// The steps in order, for one audience or for several.
    pub fn order(several_audiences: bool) -> Vec<Step> {
        let mut order = vec![
            Step::Compact,
            Step::Payload,
            Step::Routing,
            Step::Readiness,
            Step::ClaimTypes,
            Step::Audience,
            Step::Expiry,
            Step::NotBefore,
            Step::Header,
            Step::Signature,
            Step::Revocation,
            Step::Distributed,
            Step::Username,
            Step::Groups,
            Step::Uid,
            Step::Extra,
            Step::RequiredClaims,
            Step::ClaimRules,
            Step::UserRules,
            Step::Identity,
        ];
        if several_audiences {
            order.retain(|step| *step != Step::Audience);
            let after = order.iter().position(|step| *step == Step::Signature).map_or(0, |place| place + 1);
            order.insert(after, Step::Audience);
        }
        order
    }

    /// What it asks.
    pub fn title(self) -> &'static str {
        match self {
            Step::Compact => "is a JSON web token in compact form",
            Step::Payload => "the payload can be read and names an issuer",
            Step::Routing => "an authenticator has this issuer",
            Step::Readiness => "the issuer's keys are known",
            Step::ClaimTypes => "registered claims have the right types",
            Step::Audience => "the token is for us",
            Step::Expiry => "the token has not expired",
            Step::NotBefore => "the token is valid already",
            Step::Header => "the header is sound and its algorithm is allowed",
            Step::Signature => "a key of the issuer signed it",
            Step::Revocation => "the token has not been revoked",
            Step::Distributed => "no claim has to be fetched elsewhere",
            Step::Username => "the username",
            Step::Groups => "the groups",
            Step::Uid => "the UID",
            Step::Extra => "the extra attributes",
            Step::RequiredClaims => "required claims have their values",
            Step::ClaimRules => "the rules about claims hold",
            Step::UserRules => "the rules about the user hold",
            Step::Identity => "the user is one that a cluster can live with",
        }
    }

    /// The part of an authenticator's configuration that it comes from.
    fn path(self, authenticator: &FieldPath) -> FieldPath {
        let issuer = || authenticator.field("issuer");
        let mapping = |name: &str| authenticator.field("claimMappings").field(name);
        match self {
            Step::Compact | Step::Payload => FieldPath::root(),
            Step::Routing => issuer().field("url"),
            Step::Audience => issuer().field("audiences"),
            Step::Distributed | Step::Groups => mapping("groups"),
            Step::Username => mapping("username"),
            Step::Uid => mapping("uid"),
            Step::Extra => mapping("extra"),
            Step::RequiredClaims | Step::ClaimRules => authenticator.field("claimValidationRules"),
            Step::UserRules => authenticator.field("userValidationRules"),
            Step::Readiness | Step::ClaimTypes | Step::Expiry | Step::NotBefore | Step::Header => {
                authenticator.clone()
            }
            Step::Signature | Step::Revocation | Step::Identity => authenticator.clone(),
        }
    }
}

/// How a step went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Well.
    Pass,
    /// It ended here, and why.
    Fail(String),
    /// It was not reached.
    Skip,
}

/// One step and how it went.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The step.
    pub step: Step,
    /// Where in the configuration it comes from; the root if nowhere.
    pub path: FieldPath,
    /// How it went.
    pub verdict: Verdict,
}

/// An expression that was evaluated.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// Where it is.
    pub path: FieldPath,
    /// As it was written.
    pub text: String,
    /// Its parts, in the order of evaluation; the last is the whole.
    pub parts: Vec<Part>,
}

/// A part of an expression and what it came to.
#[derive(Clone, Debug)]
pub struct Part {
    /// The part.
    pub text: String,
    /// The type of its value; empty if it has none.
    pub type_name: String,
    /// Its value as JSON, or why it has none. Values are the token's: see [`Part::told`].
    pub outcome: Result<String, String>,
}

impl Part {
    /// What it came to. Without values: the type, an error without what it quotes, and the result of a comparison.
    pub fn told(&self, show_values: bool) -> String {
        let is_comparison = self.type_name == "bool" && !is_plain_selection(&self.text);
        match &self.outcome {
            Ok(value) if show_values || is_comparison => format!("is {value}"),
            Ok(_) => format!("is of type {}", self.type_name),
            Err(why) if show_values => format!("failed: {why}"),
            Err(why) => format!("failed: {}", without_values(why, &self.text)),
        }
    }
}

/// A constant, or `claims` itself: there is nothing to be learned from it.
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

/// `claims.a.b`: what it comes to is a claim.
fn is_plain_selection(text: &str) -> bool {
    text.chars().all(|symbol| symbol.is_ascii_alphanumeric() || "._?`[]\"'".contains(symbol))
}

/// All there is to say about a token.
#[derive(Debug)]
pub struct Explanation {
    /// How it ended.
    pub outcome: Outcome,
    /// Every step.
    pub findings: Vec<Finding>,
    /// Every expression that was evaluated.
    pub expressions: Vec<Evaluated>,
    /// What to look at: near misses, claims that exist, how late it is.
    pub hints: Vec<Masked>,
    /// The one thing to do, if the token was not taken.
    pub remedy: Option<String>,
}

/// What kube-apiserver makes of the same token.
#[derive(Clone, Debug)]
pub enum KubeSays {
    /// It takes the token.
    Takes,
    /// It refuses the token, and this is in its log.
    Logs(Masked),
    /// It does not take the configuration.
    RefusesConfiguration(String),
}

/// Everything about a token, and what kube-apiserver makes of it.
#[derive(Debug)]
pub struct Diagnosis {
    /// Step by step.
    pub explanation: Explanation,
    /// What kube-apiserver says.
    pub kube: KubeSays,
    /// The hardened rules each of which decides alone: without it the token would be taken.
    pub decisive: Vec<Rule>,
}

/// Explains a token under a profile, and compares with kube-apiserver.
///
/// `authenticators` makes them for a profile; `key_set` is the raw answer of an issuer's key endpoint, if known.
///
/// # Errors
/// What `authenticators` says for the profile itself.
pub fn diagnose(
    authenticators: impl Fn(&Profile) -> Result<Authenticators, String>,
    profile: &Profile,
    question: &Question<'_>,
    key_set: impl Fn(&CompiledIssuer) -> Option<String>,
) -> Result<Diagnosis, String> {
    let explanation = explain(&authenticators(profile)?, question);
    let kube = match authenticators(&Profile::KUBE) {
        Ok(authenticators) => {
            log_line(&authenticators, question, key_set).map_or(KubeSays::Takes, KubeSays::Logs)
        }
        Err(why) => KubeSays::RefusesConfiguration(why),
    };
    let is_taken = matches!(explanation.outcome, Outcome::Authenticated(_));
    let decides = |rule: &Rule| {
        profile.has(*rule)
            && authenticators(&profile.with(*rule, false)).is_ok_and(|authenticators| {
                matches!(authenticators.authenticate(question), Outcome::Authenticated(_))
            })
    };
    let decisive = match kube {
        KubeSays::Takes if !is_taken => Rule::ALL.into_iter().filter(decides).collect(),
        _ => Vec::new(),
    };
    Ok(Diagnosis { explanation, kube, decisive })
}

/// Judges a token and writes down every step.
pub fn explain(authenticators: &Authenticators, question: &Question<'_>) -> Explanation {
    let recorder = Recorder::default();
    let outcome = authenticators.authenticate(&Question { observer: Some(&recorder), ..*question });
    let record = recorder.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let why = match &outcome {
        Outcome::Authenticated(_) => String::new(),
        Outcome::NoOpinion(why) => why.to_string(),
        Outcome::Rejected(rejection) => rejection.to_string(),
    };
    let mut failed = matches!(outcome, Outcome::Authenticated(_));
    let mut findings = Vec::new();
    let is_revoked = matches!(&outcome, Outcome::Rejected(why) if matches!(why.refusal, Refusal::Revoked));
    for step in Step::order(record.several_audiences) {
        if step == Step::Revocation && !is_revoked && !record.passed.contains(&step) {
            continue;
        }
        let verdict = if record.passed.contains(&step) {
            Verdict::Pass
        } else if failed {
            Verdict::Skip
        } else {
            failed = true;
            Verdict::Fail(why.clone())
        };
        let path = match &record.authenticator {
            Some(authenticator) => step.path(authenticator),
            // Nobody's token: all that can be named is the list of authenticators.
            None if step == Step::Routing => FieldPath::root().field("jwt"),
            None => FieldPath::root(),
        };
        findings.push(Finding { step, path, verdict });
    }
    let advice = hints::advice(&outcome, authenticators, question);
    let (hints, remedy) = (advice.hints, advice.remedy);
    Explanation { outcome, findings, expressions: record.expressions, hints, remedy }
}

#[derive(Default)]
struct Recorder(Mutex<Record>);

#[derive(Default)]
struct Record {
    passed: Vec<Step>,
    authenticator: Option<FieldPath>,
    several_audiences: bool,
    expressions: Vec<Evaluated>,
}

impl Recorder {
    fn note(&self, change: impl FnOnce(&mut Record)) {
        change(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
}

impl Observer for Recorder {
    fn passed(&self, step: Step) {
        self.note(|record| record.passed.push(step));
    }

    fn routed(&self, authenticator: &CompiledAuthenticator) {
        self.note(|record| {
            record.authenticator = Some(authenticator.path.clone());
            record.several_audiences = authenticator.issuer.audiences.len() > 1;
        });
    }

    fn evaluated(&self, expression: &Expression, parts: &[Traced<'_>]) {
        let part = |traced: &Traced<'_>| {
            let (start, end) = (traced.span.start as usize, traced.span.end as usize);
            let text = expression.text.get(start..end).unwrap_or_default().to_owned();
            let type_name = traced.outcome.as_ref().map_or("", |value| value.type_name()).to_owned();
            let outcome = traced.outcome.as_ref().map_err(Clone::clone).map(|value| {
                render::value(value).map_or_else(|| value.type_name().to_owned(), |json| json.to_string())
            });
            Part { text, type_name, outcome }
        };
        let evaluated = Evaluated {
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
