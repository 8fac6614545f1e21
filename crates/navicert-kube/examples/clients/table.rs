//! The lines of the table.

use crate::Fault;
use crate::client::Client;
use crate::scenario::Scenario;

/// The line above all others.
pub(crate) fn head() -> String {
    format!("| client | {} |", Scenario::ALL.map(Scenario::title).join(" | "))
}

/// A client's line: every cell is played, and computed from what was seen.
pub(crate) async fn row(client: Client, name: &str) -> Result<String, Fault> {
    let cells =
        futures_util::future::try_join_all(Scenario::ALL.map(|scenario| scenario.play(client))).await?;
    Ok(format!("| {name} | {} |", cells.join(" | ")))
}
