//! `navicert authn explain`: every step of the evaluation of a token, the step that failed, kube-apiserver's log line and
//! how to fix it.

use navicert_authn::explain::diagnose;
use navicert_authn::report::{DiagnosisText, ExplainReport};
use navicert_authn::{AuthnOutcome, AuthnRequest};

use super::eval;
use super::settings::{AuthnSettings, bytes};
use crate::args::authn::ExplainArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output, style};

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
        output.json(&ExplainReport::new(&diagnosis, args.show_values))?;
    } else {
        let text = DiagnosisText { diagnosis: &diagnosis, show_values: args.show_values };
        output.text(&style::verdicts(&text.to_string()))?;
    }
    let outcome = &diagnosis.explanation.outcome;
    let failure = keys.report_failure(outcome, output);
    Ok(match outcome {
        AuthnOutcome::Authenticated(_) => Exit::Done,
        _ => failure.unwrap_or(Exit::No),
    })
}
