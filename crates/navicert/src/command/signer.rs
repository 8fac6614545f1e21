//! `navicert signer`: PKCS#11 keys.

mod check;
mod list;
mod request;
mod serve;
mod setup;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use navicert_plugin::ProcessRunner;
use navicert_signer::SignError;
use navicert_signer::error::Reason;
use navicert_signer::pkcs11::KeySelection;
use navicert_signer::program::SignerEnvironment;
use navicert_types::{SystemClock, error_chain, redact};

use crate::args::signer::SignerVerb;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Dispatches to the verb.
pub(crate) fn run(
    verb: &SignerVerb,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let around = SignerEnvironment {
        environment: environment.inherited.clone(),
        runner: Arc::new(ProcessRunner::new(Arc::new(SystemClock))),
    };
    match verb {
        SignerVerb::List(args) => list::run(args, &around, output),
        SignerVerb::Check(args) => check::run(args, &around, output),
        SignerVerb::Request(args) => request::run(args, &around, environment, output),
        SignerVerb::Setup(args) => setup::run(args, &around, environment, output),
        SignerVerb::Serve(args) => serve::run(args, &around, output),
    }
}

/// The key a URI on the command line selects.
fn selection(uri: &str, default_module: Option<&Path>) -> Result<KeySelection, Failure> {
    let configuration = BTreeMap::from([("uri".to_owned(), uri.to_owned())]);
    KeySelection::read(&configuration, default_module)
        .map_err(|error| Failure::Message { exit: Exit::Usage, text: error_chain(&error) })
}

/// The error message with its exit code.
fn failure(error: &SignError) -> Failure {
    let exit = match error.reason() {
        Reason::NoDevice => Exit::Unreachable,
        _ if matches!(error, SignError::Module { .. }) => Exit::BadInput,
        _ => Exit::No,
    };
    let help = match error {
        SignError::Ambiguous { .. } => "; `navicert signer list` shows them",
        _ => "",
    };
    Failure::Message { exit, text: format!("{}{help}", redact::terminal(&error_chain(error))) }
}
