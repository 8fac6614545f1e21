//! The explanation of a token, as a report.

use navicert_types::FieldPath;
use serde::Serialize;

use super::OutcomeReport;
use crate::explain::{Diagnosis, Explanation, ExpressionTrace, StepFinding, UpstreamDecision};
use crate::model::StepOutcome;
use crate::model::outcome::AuthnOutcome;

/// The result of `authn explain`: the outcome, and how it came about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExplainReport {
    /// The outcome.
    #[serde(flatten)]
    pub outcome: OutcomeReport,
    /// Every step, in order.
    pub steps: Vec<StepReport>,
    /// The expression that rejected the token; with `--show-values` every evaluated expression.
    pub expressions: Vec<ExpressionReport>,
    /// Details: near misses, existing claims, times.
    pub hints: Vec<String>,
    /// The Kubernetes version that is compared with.
    pub kube_version: String,
    /// The other supported Kubernetes versions that decide otherwise than `kubeVersion`.
    pub other_kube_versions: Vec<String>,
    /// What kube-apiserver would log, if it rejects the token and its words are known.
    pub kube_would_log: Option<String>,
    /// Whether kube-apiserver would accept the token.
    #[serde(rename = "kubeTakesIt")]
    pub kube_accepts: bool,
    /// The hardening rules without which the token would be accepted, if kube-apiserver would accept it.
    pub decisive_rules: Vec<String>,
    /// What to do, if the token was not accepted.
    pub to_do: Option<String>,
}

/// One step and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepReport {
    /// What the step checks.
    pub step: String,
    /// The field path that the step is about; empty if it is about no field.
    pub path: FieldPath,
    /// Its verdict.
    pub verdict: StepVerdict,
    /// Why it failed.
    pub why: Option<String>,
}

/// The verdict of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StepVerdict {
    /// The step passed.
    Pass,
    /// The step failed.
    Fail,
    /// The step was not reached.
    Skip,
}

/// An evaluated expression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExpressionReport {
    /// Its field path.
    pub path: FieldPath,
    /// The source text.
    pub text: String,
    /// Its subexpressions, in the order of evaluation; the last is the whole expression.
    pub parts: Vec<SubexpressionReport>,
}

/// A subexpression and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubexpressionReport {
    /// The source text.
    pub text: String,
    /// Its result in words: the type, and with `--show-values` the value.
    #[serde(rename = "came")]
    pub result: String,
}

impl StepVerdict {
    /// The verdict, and why it failed.
    pub(super) fn from_outcome(outcome: &StepOutcome) -> (Self, Option<String>) {
        match outcome {
            StepOutcome::Pass => (StepVerdict::Pass, None),
            StepOutcome::Fail(why) => (StepVerdict::Fail, Some(why.clone())),
            StepOutcome::Skip => (StepVerdict::Skip, None),
        }
    }
}

impl From<&StepFinding> for StepReport {
    fn from(finding: &StepFinding) -> Self {
        let (verdict, why) = StepVerdict::from_outcome(&finding.verdict);
        StepReport { step: finding.step.title().to_owned(), path: finding.path.clone(), verdict, why }
    }
}

impl ExplainReport {
    /// The report of a diagnosis, with or without claim values.
    pub fn new(diagnosis: &Diagnosis, show_values: bool) -> Self {
        let explanation = &diagnosis.explanation;
        let expression = |expression: &ExpressionTrace| ExpressionReport {
            path: expression.path.clone(),
            text: expression.text.clone(),
            parts: expression
                .parts
                .iter()
                .map(|part| SubexpressionReport {
                    text: part.text.clone(),
                    result: part.describe(show_values),
                })
                .collect(),
        };
        ExplainReport {
            outcome: OutcomeReport::from(&explanation.outcome),
            steps: explanation.findings.iter().map(StepReport::from).collect(),
            expressions: shown_expressions(explanation, show_values).map(expression).collect(),
            hints: explanation.hints.iter().map(|hint| hint.text(show_values)).collect(),
            kube_version: diagnosis.version.to_string(),
            other_kube_versions: diagnosis.others.iter().map(ToString::to_string).collect(),
            kube_would_log: match &diagnosis.kube {
                UpstreamDecision::Rejects(Some(line)) => Some(line.text(show_values)),
                _ => None,
            },
            kube_accepts: matches!(diagnosis.kube, UpstreamDecision::Accepts),
            decisive_rules: diagnosis.decisive.iter().map(ToString::to_string).collect(),
            to_do: explanation.remedy.clone(),
        }
    }
}

/// Expressions to show: all with their values, or only the one that rejected the token.
pub(super) fn shown_expressions(
    explanation: &Explanation,
    show_values: bool,
) -> impl Iterator<Item = &ExpressionTrace> {
    let ended_at = match &explanation.outcome {
        AuthnOutcome::Rejected(rejection) => rejection.refusal.path().cloned(),
        _ => None,
    };
    explanation.expressions.iter().filter(move |expression| {
        show_values || ended_at.as_ref().is_some_and(|path| *path == expression.path)
    })
}
