//! `navicert version`: the version, the commit it was built from, the target and the features.

use serde::Serialize;

use crate::args::VERSION;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// The build of this program.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct VersionReport {
    /// The version.
    version: &'static str,
    /// The commit it was built from, or `unknown commit`.
    commit: &'static str,
    /// The target triple.
    target: &'static str,
    /// The features of the crate that were on.
    features: Vec<&'static str>,
}

/// Prints what `navicert --version` prints, or the parts as JSON.
pub(crate) fn run(output: &mut Output) -> Result<Exit, Failure> {
    if output.is_json() {
        output.json(&VersionReport {
            version: env!("CARGO_PKG_VERSION"),
            commit: env!("NAVICERT_COMMIT"),
            target: env!("NAVICERT_TARGET"),
            features: features(),
        })?;
    } else {
        output.text(&format!("navicert {VERSION}\n"))?;
    }
    Ok(Exit::Done)
}

/// The features of this crate that were on, in alphabetical order.
fn features() -> Vec<&'static str> {
    env!("NAVICERT_FEATURES").split(',').filter(|name| *name != "none").collect()
}
