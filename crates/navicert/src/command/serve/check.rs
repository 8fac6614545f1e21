//! `navicert serve --check`: reads all files without serving.

use std::sync::Arc;

use navicert_authn::metrics::AuthnMetrics;
use navicert_server::report::ServeCheckReport;
use navicert_types::SystemClock;

use super::shared::Configuration;
use crate::args::serve::FilesArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Checks the files.
pub(super) fn run(args: &FilesArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let metrics = Arc::new(AuthnMetrics::new("", Arc::new(SystemClock)));
    let reloader = Configuration::read(args, output)?.open(metrics, environment)?;
    output.report(&ServeCheckReport::new(&reloader, None))?;
    Ok(Exit::Done)
}
