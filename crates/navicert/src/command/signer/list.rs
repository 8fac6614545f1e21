//! `navicert signer list`: tokens and keys, with the kubeconfig lines to use them.

use std::path::PathBuf;

use navicert_signer::pkcs11::{Pkcs11Module, known_modules};
use navicert_signer::program::SignerEnvironment;
use navicert_signer::report::ListReport;
use navicert_types::{error_chain, redact};

use crate::args::signer::ListArgs;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints all tokens and keys.
pub(super) fn run(args: &ListArgs, around: &SignerEnvironment, output: &mut Output) -> Result<Exit, Failure> {
    let report = search(&args.module, around, output)?;
    if output.is_json() {
        output.json(&report)?;
    } else {
        output.text(&redact::terminal(&report.to_string()))?;
    }
    Ok(if report.has_keys() { Exit::Done } else { Exit::No })
}

/// All tokens and keys of these modules, or of those that the environment or the default paths name.
pub(super) fn search(
    given: &[PathBuf],
    around: &SignerEnvironment,
    output: &mut Output,
) -> Result<ListReport, Failure> {
    let (paths, named) = modules(given, around);
    let mut listed = Vec::new();
    for path in paths {
        match Pkcs11Module::load(&path).and_then(|module| Ok((module.tokens()?, module))) {
            Ok((tokens, module)) => listed.push((module, tokens)),
            // A broken module on the default search path is only a warning: the user did not name it.
            Err(error) if named => return Err(super::failure(&error)),
            Err(error) => output.warning(&redact::terminal(&error_chain(&error))),
        }
    }
    let mut report = ListReport::default();
    for (module, tokens) in &listed {
        report.add(module, tokens).map_err(|error| super::failure(&error))?;
    }
    Ok(report)
}

/// The modules to search: from the command line, the environment or the default paths; and whether the user named them.
fn modules(given: &[PathBuf], around: &SignerEnvironment) -> (Vec<PathBuf>, bool) {
    match around.default_module() {
        _ if !given.is_empty() => (given.to_vec(), true),
        Some(module) => (vec![module], true),
        None => (known_modules(), false),
    }
}
