//! `navicert serve --check`: everything is read, nothing is served.

use std::sync::Arc;

use navicert_authn::config::Reloader;
use navicert_authn::metrics::Metrics;
use navicert_types::SystemClock;
use serde_json::json;

use super::shared::Files;
use crate::args::serve::FilesArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// The files alone.
pub(super) fn run(args: &FilesArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let metrics = Arc::new(Metrics::new("", Arc::new(SystemClock)));
    let reloader = Files::read(args, output)?.open(metrics, environment)?;
    passed(&reloader, output)
}

/// Nothing is wrong.
pub(super) fn passed(reloader: &Reloader, output: &mut Output) -> Result<Exit, Failure> {
    let issuers: Vec<String> = reloader.live().health().into_iter().map(|(url, _)| url).collect();
    if output.is_json() {
        output.json(&json!({"valid": true, "issuers": issuers}))?;
        return Ok(Exit::Done);
    }
    let count = issuers.len();
    let told = if count == 1 { "1 issuer".to_owned() } else { format!("{count} issuers") };
    output.text(&format!("ok: {told}\n"))?;
    Ok(Exit::Done)
}
