//! `navicert signer check`: creates and verifies one test signature per scheme.

use navicert_signer::pkcs11::open;
use navicert_signer::program::SignerEnvironment;
use navicert_signer::report::CheckReport;
use navicert_types::{SystemClock, redact};

use super::{failure, selection};
use crate::args::signer::CheckArgs;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Creates and verifies the test signatures.
pub(super) fn run(
    args: &CheckArgs,
    around: &SignerEnvironment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let selection = selection(&args.uri, around.default_module().as_deref())?;
    let ask = around.pin_provider_factory()(&selection, true).map_err(|error| failure(&error))?;
    let (identity, key) = open(&selection, ask).map_err(|error| failure(&error))?;
    key.log_in().map_err(|error| failure(&error))?;
    let report = CheckReport::run(&identity, key.token(), &SystemClock);
    if output.is_json() {
        output.json(&report)?;
    } else {
        output.text(&redact::terminal(&report.to_string()))?;
    }
    Ok(if report.is_usable() { Exit::Done } else { Exit::No })
}
