//! `navicert serve --check`: reads all files without serving.

use std::sync::Arc;

use navicert_authn::config::AuthnReloader;
use navicert_authn::metrics::AuthnMetrics;
use navicert_types::SystemClock;
use serde_json::json;

use super::shared::ConfigFiles;
use crate::args::serve::FilesArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Checks the files.
pub(super) fn run(args: &FilesArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let metrics = Arc::new(AuthnMetrics::new("", Arc::new(SystemClock)));
    let reloader = ConfigFiles::read(args, output)?.open(metrics, environment)?;
    report_valid(&reloader, output)
}

/// Prints that the configuration is valid.
pub(super) fn report_valid(reloader: &AuthnReloader, output: &mut Output) -> Result<Exit, Failure> {
    let issuers: Vec<String> = reloader.authenticator().health().into_iter().map(|(url, _)| url).collect();
    if output.is_json() {
        output.json(&json!({"valid": true, "issuers": issuers}))?;
        return Ok(Exit::Done);
    }
    let count = issuers.len();
    let told = if count == 1 { "1 issuer".to_owned() } else { format!("{count} issuers") };
    output.text(&format!("ok: {told}\n"))?;
    Ok(Exit::Done)
}
