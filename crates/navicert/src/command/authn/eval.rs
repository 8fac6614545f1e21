//! `navicert authn eval`: the user a token authenticates, with keys from a file or from the issuer.

use std::io::{self, Read};
use std::path::Path;

use navicert_authn::{AuthnOutcome, AuthnRequest, batch};
use navicert_types::{Clock as _, Secret, SystemClock, Timestamp};
use serde_json::Value;

use super::settings::{AuthnSettings, bytes, text};
use crate::args::authn::EvalArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Evaluates one token. Exit codes: 0 authenticated, 1 rejected, 3 invalid input file, 4 issuer unreachable.
pub(super) fn run(args: &EvalArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let settings = AuthnSettings::read(&args.settings, output)?;
    let config = bytes(args.config.as_deref().unwrap_or("".as_ref()))?;
    let keys = settings.key_source(&config, args.jwks.as_deref(), args.online, environment)?;
    let token = token(args.token_file.as_deref())?;
    let request = AuthnRequest::new(token.expose().trim(), now(args.now)?);
    let authenticators =
        settings.authenticators(&config, &settings.profile, &keys, &request).map_err(Failure::bad_input)?;
    let outcome = authenticators.authenticate(&request);
    let response = batch::outcome_json(&outcome);
    if output.is_json() {
        output.json(&response)?;
    } else {
        output.text(&described(&response))?;
    }
    let failure = keys.report_failure(&outcome, output);
    Ok(match outcome {
        AuthnOutcome::Authenticated(_) => Exit::Done,
        _ => failure.unwrap_or(Exit::No),
    })
}

/// The time of `--now`, or the current time.
pub(super) fn now(seconds: Option<i64>) -> Result<Timestamp, Failure> {
    let now = seconds.map_or_else(|| Ok(SystemClock.now()), Timestamp::from_second);
    now.map_err(|_| Failure::bad_input("`--now` is out of range: expected seconds since 1970"))
}

fn described(response: &Value) -> String {
    let word = |name: &str| response.get(name).and_then(Value::as_str).unwrap_or_default();
    let Some(user) = response.get("user") else {
        let why = if word("error").is_empty() { word("reason") } else { word("error") };
        return format!("{}: {why}\n", word("outcome"));
    };
    let mut text = format!("authenticated\n  username  {}\n", plain(user.get("username")));
    if user.get("uid").is_some_and(|uid| uid != "") {
        text += &format!("  uid       {}\n", plain(user.get("uid")));
    }
    for group in user.get("groups").and_then(Value::as_array).into_iter().flatten() {
        text += &format!("  group     {}\n", plain(Some(group)));
    }
    for (key, values) in user.get("extra").and_then(Value::as_object).into_iter().flatten() {
        text += &format!("  extra     {key}: {values}\n");
    }
    text
}

/// A string of the token, escaped for the terminal.
fn plain(value: Option<&Value>) -> String {
    navicert_types::redact::terminal(value.and_then(Value::as_str).unwrap_or_default()).to_string()
}

pub(super) fn token(path: Option<&Path>) -> Result<Secret<String>, Failure> {
    if let Some(path) = path {
        return text(path).map(Secret::new);
    }
    let mut token = String::new();
    io::stdin().read_to_string(&mut token).map_err(|error| {
        Failure::bad_input(format!("failed to read the token from standard input: {error}"))
    })?;
    Ok(Secret::new(token))
}
