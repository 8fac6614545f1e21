//! `navicert authn explain`: every step of a token's way, where it ended, what kube-apiserver would have logged, and
//! the one thing to do about it.

use navicert_authn::explain::{Diagnosis, Evaluated, Explanation, Finding, KubeSays, Verdict, diagnose};
use navicert_authn::{Outcome, Question, batch};
use navicert_types::redact::terminal;
use serde_json::{Value, json};

use super::eval;
use super::settings::{Settings, bytes};
use crate::args::authn::ExplainArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// How much of a log line is shown: one about a key set repeats all of it.
const LONGEST_LINE: usize = 600;

/// Explains one token. 0: it stands for somebody; 1: it does not.
pub(super) fn run(
    args: &ExplainArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let settings = Settings::read(&args.settings, output)?;
    let config = bytes(&args.config)?;
    let keys = settings.key_source(&config, args.jwks.as_deref(), args.online, environment)?;
    let token = eval::token(args.token_file.as_deref())?;
    let diagnosis = diagnose(
        |profile| settings.authenticators(&config, profile, &keys),
        &settings.profile,
        &Question::new(token.expose().trim(), eval::now(args.now)?),
        |issuer| settings.key_set(issuer, &keys),
    )
    .map_err(Failure::bad_input)?;
    if output.is_json() {
        output.json(&as_json(&diagnosis, args.show_values))?;
    } else {
        output.text(&as_text(&diagnosis, args.show_values))?;
    }
    let outcome = &diagnosis.explanation.outcome;
    Ok(if matches!(outcome, Outcome::Authenticated(_)) { Exit::Done } else { Exit::No })
}

fn as_text(diagnosis: &Diagnosis, show_values: bool) -> String {
    let mut text = findings(diagnosis, show_values);
    if !show_values && findings(diagnosis, true) != text {
        text += "(the values of claims are left out; `--show-values` shows them)\n";
    }
    if let Some(remedy) = &diagnosis.explanation.remedy {
        text += &format!("to do: {}\n", terminal(remedy));
    }
    text
}

fn findings(diagnosis: &Diagnosis, show_values: bool) -> String {
    let explanation = &diagnosis.explanation;
    let mut text: String = explanation.findings.iter().map(line).collect();
    for expression in shown(explanation, show_values) {
        text += &format!("\n{}: {}\n", expression.path, terminal(&expression.text));
        for part in &expression.parts {
            text += &format!("  {} {}\n", terminal(&part.text), terminal(&part.told(show_values)));
        }
    }
    text += &format!("\n{}\n", terminal(&ending(explanation)));
    for hint in &explanation.hints {
        text += &format!("  {}\n", terminal(&hint.text(show_values)));
    }
    for sentence in kube(diagnosis, show_values) {
        text += &format!("{}\n", terminal(&sentence));
    }
    text
}

fn line(finding: &Finding) -> String {
    let place = if finding.path.is_root() { String::new() } else { format!("  ({})", finding.path) };
    match &finding.verdict {
        Verdict::Pass => format!("PASS  {}{place}\n", finding.step.title()),
        Verdict::Skip => format!("SKIP  {}{place}\n", finding.step.title()),
        Verdict::Fail(why) => {
            format!("FAIL  {}{place}\n      {}\n", finding.step.title(), terminal(why))
        }
    }
}

/// Expressions to show: all of them with their values, or the one at which it ended.
fn shown(explanation: &Explanation, show_values: bool) -> impl Iterator<Item = &Evaluated> {
    let ended_at = match &explanation.outcome {
        Outcome::Rejected(rejection) => rejection.refusal.path().cloned(),
        _ => None,
    };
    explanation.expressions.iter().filter(move |expression| {
        show_values || ended_at.as_ref().is_some_and(|path| *path == expression.path)
    })
}

fn ending(explanation: &Explanation) -> String {
    match &explanation.outcome {
        Outcome::Authenticated(user) => format!("authenticated as `{}`", user.username()),
        Outcome::NoOpinion(why) => format!("no opinion: {why}"),
        Outcome::Rejected(rejection) => format!("rejected ({}): {rejection}", rejection.refusal.class()),
    }
}

/// What kube-apiserver makes of it.
fn kube(diagnosis: &Diagnosis, show_values: bool) -> Vec<String> {
    let is_taken = matches!(diagnosis.explanation.outcome, Outcome::Authenticated(_));
    match &diagnosis.kube {
        KubeSays::Takes if is_taken => Vec::new(),
        KubeSays::Takes => {
            let mut lines = vec!["kube-apiserver itself would take this token".to_owned()];
            let rules = diagnosis.decisive.iter();
            lines.extend(
                rules.map(|rule| format!("  it is rule {rule} that refuses it: {}", rule.sentence())),
            );
            lines
        }
        KubeSays::Logs(line) => {
            let mut line = line.text(show_values);
            if let Some((end, _)) = line.char_indices().nth(LONGEST_LINE) {
                line.truncate(end);
                line.push('…');
            }
            vec![format!("kube-apiserver would have logged: {line}")]
        }
        KubeSays::RefusesConfiguration(why) => {
            vec![format!("kube-apiserver would not start with this: {why}")]
        }
    }
}

fn as_json(diagnosis: &Diagnosis, show_values: bool) -> Value {
    let explanation = &diagnosis.explanation;
    let steps = explanation.findings.iter().map(|finding| {
        let (verdict, why) = match &finding.verdict {
            Verdict::Pass => ("pass", None),
            Verdict::Fail(why) => ("fail", Some(why)),
            Verdict::Skip => ("skip", None),
        };
        json!({"step": finding.step.title(), "path": finding.path.to_string(), "verdict": verdict, "why": why})
    });
    let expressions = shown(explanation, show_values).map(|expression| {
        let parts =
            expression.parts.iter().map(|part| json!({"text": part.text, "came": part.told(show_values)}));
        json!({
            "path": expression.path.to_string(),
            "text": expression.text,
            "parts": parts.collect::<Vec<_>>(),
        })
    });
    let hints = explanation.hints.iter().map(|hint| hint.text(show_values));
    let logged = match &diagnosis.kube {
        KubeSays::Logs(line) => Some(line.text(show_values)),
        _ => None,
    };
    let rules = diagnosis.decisive.iter().map(ToString::to_string);
    let mut value = batch::answer(&explanation.outcome);
    if let Some(members) = value.as_object_mut() {
        members.insert("steps".to_owned(), steps.collect());
        members.insert("expressions".to_owned(), expressions.collect());
        members.insert("hints".to_owned(), hints.collect());
        members.insert("kubeWouldLog".to_owned(), json!(logged));
        members.insert("kubeTakesIt".to_owned(), json!(matches!(diagnosis.kube, KubeSays::Takes)));
        members.insert("decisiveRules".to_owned(), rules.collect());
        members.insert("toDo".to_owned(), json!(explanation.remedy));
    }
    value
}
