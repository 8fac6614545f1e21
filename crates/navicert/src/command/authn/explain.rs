//! `navicert authn explain`: every step of a token's way, and where it ended.

use navicert_authn::explain::{Explanation, Finding, Verdict, explain};
use navicert_authn::{Outcome, Question, batch};
use navicert_types::redact::terminal;
use navicert_types::{Clock as _, SystemClock, Timestamp};
use serde_json::{Value, json};

use super::{eval, profile};
use crate::args::authn::ExplainArgs;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Explains one token. 0: it stands for somebody; 1: it does not.
pub(super) fn run(args: &ExplainArgs, output: &mut Output) -> Result<Exit, Failure> {
    let profile = profile(args.profile);
    let token = eval::token(args.token_file.as_deref())?;
    let now = args.now.map_or_else(|| Ok(SystemClock.now()), Timestamp::from_second);
    let now = now.map_err(|_| Failure::bad_input("`--now` is no time in seconds since 1970"))?;
    let question = eval::question(&args.config, &args.jwks)?;
    let authenticators = batch::authenticators(&question, &profile).map_err(Failure::bad_input)?;
    let explanation = explain(&authenticators, &Question::new(token.expose().trim(), now));
    if output.is_json() {
        output.json(&as_json(&explanation, args.show_values))?;
    } else {
        output.text(&as_text(&explanation, args.show_values))?;
    }
    Ok(if matches!(explanation.outcome, Outcome::Authenticated(_)) { Exit::Done } else { Exit::No })
}

fn as_text(explanation: &Explanation, show_values: bool) -> String {
    let mut text: String = explanation.findings.iter().map(line).collect();
    if show_values {
        for expression in &explanation.expressions {
            text += &format!("\n{}: {}\n", expression.path, expression.text);
            for (part, value) in &expression.parts {
                let value = match value {
                    Ok(value) => format!("= {value}"),
                    Err(why) => format!("failed: {why}"),
                };
                text += &format!("  {} {}\n", terminal(part), terminal(&value));
            }
        }
    }
    text + &format!("\n{}\n", ending(&explanation.outcome))
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

fn ending(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Authenticated(user) => format!("authenticated as `{}`", terminal(user.username())),
        Outcome::NoOpinion(_) => "no opinion: nobody here claims this token".to_owned(),
        Outcome::Rejected(rejection) => format!("rejected: {}", rejection.refusal.class()),
    }
}

fn as_json(explanation: &Explanation, show_values: bool) -> Value {
    let steps = explanation.findings.iter().map(|finding| {
        let (verdict, why) = match &finding.verdict {
            Verdict::Pass => ("pass", None),
            Verdict::Fail(why) => ("fail", Some(why)),
            Verdict::Skip => ("skip", None),
        };
        json!({"step": finding.step.title(), "path": finding.path.to_string(), "verdict": verdict, "why": why})
    });
    let mut value = batch::answer(&explanation.outcome);
    if let Some(members) = value.as_object_mut() {
        members.insert("steps".to_owned(), steps.collect());
        if show_values {
            let expressions = explanation.expressions.iter().map(|expression| {
                let parts = expression.parts.iter().map(|(text, value)| match value {
                    Ok(value) => json!({"text": text, "value": value}),
                    Err(why) => json!({"text": text, "error": why}),
                });
                json!({
                    "path": expression.path.to_string(),
                    "text": expression.text,
                    "parts": parts.collect::<Vec<_>>(),
                })
            });
            members.insert("expressions".to_owned(), expressions.collect());
        }
    }
    value
}
