//! `navicert version`: the version, the commit it was built from, the target and the features.

use serde_json::json;

use crate::args::VERSION;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints what `navicert --version` prints, or the parts as JSON.
pub(crate) fn run(output: &mut Output) -> Result<Exit, Failure> {
    if output.is_json() {
        output.json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "commit": env!("NAVICERT_COMMIT"),
            "target": env!("NAVICERT_TARGET"),
            "features": features(),
        }))?;
    } else {
        output.text(&format!("navicert {VERSION}\n"))?;
    }
    Ok(Exit::Done)
}

/// The features of this crate that were on, in alphabetical order.
fn features() -> Vec<&'static str> {
    env!("NAVICERT_FEATURES").split(',').filter(|name| *name != "none").collect()
}
