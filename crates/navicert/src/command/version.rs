//! `navicert version`: the version and the commit it was built from.

use serde_json::json;

use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints what `navicert --version` prints, or the parts as JSON.
pub(crate) fn run(output: &mut Output) -> Result<Exit, Failure> {
    let (version, commit) = (env!("CARGO_PKG_VERSION"), env!("NAVICERT_COMMIT"));
    if output.is_json() {
        output.json(&json!({"version": version, "commit": commit}))?;
    } else {
        output.text(&format!("navicert {version} ({commit})\n"))?;
    }
    Ok(Exit::Done)
}
