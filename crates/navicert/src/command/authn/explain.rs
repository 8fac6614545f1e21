//! `navicert authn explain`: every step of the evaluation of a token, the step that failed, kube-apiserver's log line and
//! how to fix it.

use navicert_authn::explain::{
    Diagnosis, Explanation, ExpressionTrace, StepFinding, StepOutcome, UpstreamDecision, diagnose,
};
use navicert_authn::{AuthnOutcome, AuthnRequest, batch};
use navicert_types::redact::terminal;
use serde_json::{Value, json};

use super::eval;
use super::settings::{AuthnSettings, bytes};
use super::verdict;
use crate::args::authn::ExplainArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Log lines are truncated to this length: one about a key set repeats the whole set.
const MAX_LOG_LINE_CHARS: usize = 600;

/// Explains one token. Exit codes: 0 authenticated, 1 rejected, 4 issuer unreachable.
pub(super) fn run(
    args: &ExplainArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let settings = AuthnSettings::read(&args.settings, output)?;
    let config = bytes(&args.config)?;
    let keys = settings.key_source(&config, args.jwks.as_deref(), args.online, environment)?;
    let token = eval::token(args.token_file.as_deref())?;
    let request = AuthnRequest::new(token.expose().trim(), eval::now(args.now)?);
    let diagnosis = diagnose(
        |profile| settings.authenticators(&config, profile, &keys, &request),
        &settings.profile,
        &request,
        |issuer| settings.key_set(issuer, &keys),
    )
    .map_err(Failure::bad_input)?;
    if output.is_json() {
        output.json(&as_json(&diagnosis, args.show_values))?;
    } else {
        output.text(&as_text(&diagnosis, args.show_values))?;
    }
    let outcome = &diagnosis.explanation.outcome;
    let failure = keys.report_failure(outcome, output);
    Ok(match outcome {
        AuthnOutcome::Authenticated(_) => Exit::Done,
        _ => failure.unwrap_or(Exit::No),
    })
}

fn as_text(diagnosis: &Diagnosis, show_values: bool) -> String {
    let mut text = steps(&diagnosis.explanation, show_values);
    text += &details(diagnosis, show_values);
    if !show_values && details(diagnosis, true) != details(diagnosis, false) {
        text += "(claim values are redacted; use `--show-values` to show them)\n";
    }
    if let Some(remedy) = &diagnosis.explanation.remedy {
        text += &format!("to do: {}\n", terminal(remedy));
    }
    text
}

/// The steps, with those that were not reached in one line unless everything is shown.
fn steps(explanation: &Explanation, show_all: bool) -> String {
    let is_shown = |finding: &&StepFinding| show_all || finding.verdict != StepOutcome::Skip;
    let mut text: String = explanation.findings.iter().filter(is_shown).map(line).collect();
    match explanation.findings.len() - explanation.findings.iter().filter(is_shown).count() {
        0 => {}
        1 => text += &format!("{}  1 later check\n", verdict::skip()),
        count => text += &format!("{}  {count} later checks\n", verdict::skip()),
    }
    text
}

fn details(diagnosis: &Diagnosis, show_values: bool) -> String {
    let explanation = &diagnosis.explanation;
    let mut text = String::new();
    for expression in shown(explanation, show_values) {
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

fn line(finding: &StepFinding) -> String {
    let location = if finding.path.is_root() { String::new() } else { format!("  ({})", finding.path) };
    match &finding.verdict {
        StepOutcome::Pass => format!("{}  {}{location}\n", verdict::pass(), finding.step.title()),
        StepOutcome::Skip => format!("{}  {}{location}\n", verdict::skip(), finding.step.title()),
        StepOutcome::Fail(why) => {
            format!("{}  {}{location}\n      {}\n", verdict::fail(), finding.step.title(), terminal(why))
        }
    }
}

/// Expressions to show: all with their values, or only the one that rejected the token.
fn shown(explanation: &Explanation, show_values: bool) -> impl Iterator<Item = &ExpressionTrace> {
    let ended_at = match &explanation.outcome {
        AuthnOutcome::Rejected(rejection) => rejection.refusal.path().cloned(),
        _ => None,
    };
    explanation.expressions.iter().filter(move |expression| {
        show_values || ended_at.as_ref().is_some_and(|path| *path == expression.path)
    })
}

fn conclusion(explanation: &Explanation) -> String {
    match &explanation.outcome {
        AuthnOutcome::Authenticated(user) => format!("authenticated as `{}`", user.username()),
        AuthnOutcome::NoOpinion(why) => format!("no opinion: {why}"),
        AuthnOutcome::Rejected(rejection) => format!("rejected ({}): {rejection}", rejection.refusal.class()),
    }
}

/// How kube-apiserver decides.
fn upstream_lines(diagnosis: &Diagnosis, show_values: bool) -> Vec<String> {
    let is_taken = matches!(diagnosis.explanation.outcome, AuthnOutcome::Authenticated(_));
    match &diagnosis.kube {
        UpstreamDecision::Accepts if is_taken => Vec::new(),
        UpstreamDecision::Accepts => {
            let mut lines = vec!["kube-apiserver would accept this token".to_owned()];
            let rules = diagnosis.decisive.iter();
            lines.extend(rules.map(|rule| format!("  rejected by rule {rule}: {}", rule.summary())));
            lines
        }
        UpstreamDecision::Rejects(None) => vec!["kube-apiserver would reject this token".to_owned()],
        UpstreamDecision::Rejects(Some(line)) => {
            let mut line = line.text(show_values);
            if let Some((end, _)) = line.char_indices().nth(MAX_LOG_LINE_CHARS) {
                line.truncate(end);
                line.push('…');
            }
            vec![format!("kube-apiserver would log: {line}")]
        }
        UpstreamDecision::RejectsConfiguration(why) => {
            vec![format!("kube-apiserver would reject this configuration: {why}")]
        }
    }
}

fn as_json(diagnosis: &Diagnosis, show_values: bool) -> Value {
    let explanation = &diagnosis.explanation;
    let steps = explanation.findings.iter().map(|finding| {
        let (verdict, why) = match &finding.verdict {
            StepOutcome::Pass => ("pass", None),
            StepOutcome::Fail(why) => ("fail", Some(why)),
            StepOutcome::Skip => ("skip", None),
        };
        json!({"step": finding.step.title(), "path": finding.path.to_string(), "verdict": verdict, "why": why})
    });
    let expressions = shown(explanation, show_values).map(|expression| {
        let parts = expression
            .parts
            .iter()
            .map(|part| json!({"text": part.text, "came": part.describe(show_values)}));
        json!({
            "path": expression.path.to_string(),
            "text": expression.text,
            "parts": parts.collect::<Vec<_>>(),
        })
    });
    let hints = explanation.hints.iter().map(|hint| hint.text(show_values));
    let logged = match &diagnosis.kube {
        UpstreamDecision::Rejects(Some(line)) => Some(line.text(show_values)),
        _ => None,
    };
    let rules = diagnosis.decisive.iter().map(ToString::to_string);
    let mut value = batch::outcome_json(&explanation.outcome);
    if let Some(members) = value.as_object_mut() {
        members.insert("steps".to_owned(), steps.collect());
        members.insert("expressions".to_owned(), expressions.collect());
        members.insert("hints".to_owned(), hints.collect());
        members.insert("kubeWouldLog".to_owned(), json!(logged));
        members.insert("kubeTakesIt".to_owned(), json!(matches!(diagnosis.kube, UpstreamDecision::Accepts)));
        members.insert("decisiveRules".to_owned(), rules.collect());
        members.insert("toDo".to_owned(), json!(explanation.remedy));
    }
    value
}
