//! The explanation of a token as text: every step with its verdict, the expression that failed, kube-apiserver's decision and
//! what to do.

use std::fmt;

use navicert_types::redact::terminal;

use super::explain::shown_expressions;
use crate::explain::{Diagnosis, Explanation, StepFinding, UpstreamDecision};
use crate::model::StepOutcome;
use crate::model::outcome::AuthnOutcome;

/// Log lines are truncated to this length: one about a key set repeats the whole set.
const MAX_LOG_LINE_CHARS: usize = 600;

/// A diagnosis that prints as text, with or without claim values.
#[derive(Debug)]
pub struct DiagnosisText<'d> {
    /// The diagnosis.
    pub diagnosis: &'d Diagnosis,
    /// Whether claim values and steps that were not reached are shown.
    pub show_values: bool,
}

impl fmt::Display for DiagnosisText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DiagnosisText { diagnosis, show_values } = *self;
        steps(f, &diagnosis.explanation, show_values)?;
        let details = details(diagnosis, show_values);
        f.write_str(&details)?;
        if !show_values && self::details(diagnosis, true) != details {
            writeln!(f, "(claim values are redacted; use `--show-values` to show them)")?;
        }
        match &diagnosis.explanation.remedy {
            Some(remedy) => writeln!(f, "to do: {}", terminal(remedy)),
            None => Ok(()),
        }
    }
}

/// The steps, with those that were not reached in one line unless everything is shown.
fn steps(f: &mut fmt::Formatter<'_>, explanation: &Explanation, show_all: bool) -> fmt::Result {
    let mut hidden = 0_usize;
    for finding in &explanation.findings {
        if show_all || finding.verdict != StepOutcome::Skip {
            step(f, finding)?;
        } else {
            hidden += 1;
        }
    }
    match hidden {
        0 => Ok(()),
        1 => writeln!(f, "SKIP  1 later check"),
        count => writeln!(f, "SKIP  {count} later checks"),
    }
}

fn step(f: &mut fmt::Formatter<'_>, finding: &StepFinding) -> fmt::Result {
    let location = if finding.path.is_root() { String::new() } else { format!("  ({})", finding.path) };
    let title = finding.step.title();
    match &finding.verdict {
        StepOutcome::Pass => writeln!(f, "PASS  {title}{location}"),
        StepOutcome::Skip => writeln!(f, "SKIP  {title}{location}"),
        StepOutcome::Fail(why) => writeln!(f, "FAIL  {title}{location}\n      {}", terminal(why)),
    }
}

fn details(diagnosis: &Diagnosis, show_values: bool) -> String {
    let explanation = &diagnosis.explanation;
    let mut text = String::new();
    for expression in shown_expressions(explanation, show_values) {
        text += &format!("\n{}: {}\n", expression.path, terminal(&expression.text));
        for part in &expression.parts {
            text += &format!("  {} {}\n", terminal(&part.text), terminal(&part.describe(show_values)));
        }
    }
    text += &format!("\n{}\n", terminal(&conclusion(explanation)));
    for hint in &explanation.hints {
        text += &format!("  {}\n", terminal(&hint.text(show_values)));
    }
    for sentence in upstream_lines(diagnosis, show_values) {
        text += &format!("{}\n", terminal(&sentence));
    }
    text
}

fn conclusion(explanation: &Explanation) -> String {
    match &explanation.outcome {
        AuthnOutcome::Authenticated(user) => format!("authenticated as `{}`", user.username()),
        AuthnOutcome::NoOpinion(why) => format!("no opinion: {why}"),
        AuthnOutcome::Rejected(rejection) => format!("rejected ({}): {rejection}", rejection.refusal.class()),
    }
}

/// How kube-apiserver decides, and which versions of it decide otherwise.
fn upstream_lines(diagnosis: &Diagnosis, show_values: bool) -> Vec<String> {
    let mut lines = decision_lines(diagnosis, show_values);
    lines.extend(diagnosis.version_difference());
    lines
}

fn decision_lines(diagnosis: &Diagnosis, show_values: bool) -> Vec<String> {
    let is_taken = matches!(diagnosis.explanation.outcome, AuthnOutcome::Authenticated(_));
    let kube = format!("kube-apiserver {}", diagnosis.version);
    match &diagnosis.kube {
        UpstreamDecision::Accepts if is_taken => Vec::new(),
        UpstreamDecision::Accepts => {
            let mut lines = vec![format!("{kube} would accept this token")];
            let rules = diagnosis.decisive.iter();
            lines.extend(rules.map(|rule| format!("  rejected by rule {rule}: {}", rule.summary())));
            lines
        }
        UpstreamDecision::Rejects(None) => vec![format!("{kube} would reject this token")],
        UpstreamDecision::Rejects(Some(line)) => {
            let mut line = line.text(show_values);
            if let Some((end, _)) = line.char_indices().nth(MAX_LOG_LINE_CHARS) {
                line.truncate(end);
                line.push('…');
            }
            vec![format!("{kube} would log: {line}")]
        }
        UpstreamDecision::RejectsConfiguration(why) => {
            vec![format!("{kube} would reject this configuration: {why}")]
        }
    }
}
