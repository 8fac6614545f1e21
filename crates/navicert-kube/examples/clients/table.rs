//! The rows of the table.

use crate::Fault;
use crate::client::Client;
use crate::scenario::Scenario;

/// The header row.
pub(crate) fn head() -> String {
    format!("| client | {} |", Scenario::ALL.map(Scenario::title).join(" | "))
}

/// A client's row: runs every scenario.
pub(crate) async fn row(client: Client, name: &str) -> Result<String, Fault> {
    let cells =
        futures_util::future::try_join_all(Scenario::ALL.map(|scenario| scenario.run(client))).await?;
    Ok(format!("| {name} | {} |", cells.join(" | ")))
}
