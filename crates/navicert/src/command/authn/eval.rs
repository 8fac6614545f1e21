//! `navicert authn eval`: the user a token authenticates, with keys from a file or from the issuer.

use std::io::{self, Read};
use std::path::Path;

use navicert_authn::report::OutcomeReport;
use navicert_authn::{AuthnOutcome, AuthnRequest};
use navicert_types::{Clock as _, Secret, SystemClock, Timestamp};

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
    output.report(&OutcomeReport::from(&outcome))?;
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

/// The token in a file, or on standard input.
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
