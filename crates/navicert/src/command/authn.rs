//! `navicert authn`: checks authentication configurations and evaluates tokens as kube-apiserver does, or more strictly.

mod check;
mod eval;
mod explain;
mod migrate;
mod online;
pub(crate) use online::fetch;
mod settings;
mod test;

use std::io::{self, BufRead};

use serde_json::{Value, json};
use settings::AuthnSettings;

use crate::args;
use crate::args::authn::AuthnVerb;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Dispatches to the verb.
pub(crate) fn run(verb: &AuthnVerb, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    match verb {
        AuthnVerb::Check(args) if args.jsonl => {
            let profile =
                AuthnSettings::read_with_default(&args.settings, args::Profile::Kube, output)?.profile;
            process_lines(|question| navicert_authn::batch::check(question, &profile), output)
        }
        AuthnVerb::Check(args) => check::run(args, environment, output),
        AuthnVerb::Eval(args) if args.jsonl => {
            let profile =
                AuthnSettings::read_with_default(&args.settings, args::Profile::Kube, output)?.profile;
            process_lines(|question| navicert_authn::batch::eval(question, &profile), output)
        }
        AuthnVerb::Eval(args) => eval::run(args, environment, output),
        AuthnVerb::Explain(args) => explain::run(args, environment, output),
        AuthnVerb::Test(args) => test::run(args, output),
        AuthnVerb::Migrate(args) => migrate::run(args, output),
    }
}

/// Processes a batch: one input line, one result line.
fn process_lines(answer: impl Fn(&Value) -> Value, output: &mut Output) -> Result<Exit, Failure> {
    for line in io::stdin().lock().split(b'\n') {
        let line =
            line.map_err(|error| Failure::bad_input(format!("failed to read standard input: {error}")))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = match serde_json::from_slice::<Value>(&line) {
            Ok(question) => {
                let mut answer = answer(&question);
                if let Some(members) = answer.as_object_mut() {
                    members.insert("id".to_owned(), question.get("id").cloned().unwrap_or_default());
                }
                answer
            }
            Err(error) => json!({"id": null, "fault": format!("invalid JSON at column {}", error.column())}),
        };
        output.line(&answer)?;
    }
    Ok(Exit::Done)
}
