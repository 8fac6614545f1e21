//! `navicert authn`: checks authentication configurations and evaluates tokens as kube-apiserver does, or more strictly.

mod check;
mod eval;
mod explain;
mod fetch_once;
mod migrate;
mod online;
pub(crate) use online::fetch;
mod settings;
mod test;
mod verdict;

use std::io::{self, BufRead};

use navicert_authn::batch;
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
            let settings = AuthnSettings::read_with_default(&args.settings, args::Profile::Kube, output)?;
            process_lines(|request| batch::check(request, settings.for_batch()), output)
        }
        AuthnVerb::Check(args) => check::run(args, environment, output),
        AuthnVerb::Eval(args) if args.jsonl => {
            let settings = AuthnSettings::read_with_default(&args.settings, args::Profile::Kube, output)?;
            process_lines(|request| batch::eval(request, settings.for_batch()), output)
        }
        AuthnVerb::Eval(args) => eval::run(args, environment, output),
        AuthnVerb::Explain(args) => explain::run(args, environment, output),
        AuthnVerb::Test(args) => test::run(args, output),
        AuthnVerb::Migrate(args) => migrate::run(args, output),
    }
}

/// Processes a batch: one input line, one result line.
fn process_lines(process: impl Fn(&Value) -> Value, output: &mut Output) -> Result<Exit, Failure> {
    for line in io::stdin().lock().split(b'\n') {
        let line =
            line.map_err(|error| Failure::bad_input(format!("failed to read standard input: {error}")))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let response = match serde_json::from_slice::<Value>(&line) {
            Ok(request) => {
                let mut response = process(&request);
                if let Some(members) = response.as_object_mut() {
                    members.insert("id".to_owned(), request.get("id").cloned().unwrap_or_default());
                }
                response
            }
            Err(error) => json!({"id": null, "fault": format!("invalid JSON at column {}", error.column())}),
        };
        output.line(&response)?;
    }
    Ok(Exit::Done)
}
