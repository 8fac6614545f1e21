//! docs/clients.md says what these clients did a moment ago: its head, and the rows of the two that are always there. `make
//! clients` compares the others as well.
#![cfg(target_os = "linux")]

#[path = "../examples/clients/client.rs"]
#[expect(dead_code, reason = "the other clients are the example's")]
mod client;
#[path = "../examples/clients/scenario.rs"]
mod scenario;
#[path = "../examples/clients/table.rs"]
mod table;

use client::Client;

type Fault = Box<dyn std::error::Error + Send + Sync>;

#[tokio::test(flavor = "multi_thread")]
async fn the_table_in_the_documents_is_what_the_server_saw() {
    let document = include_str!("../../../docs/clients.md");
    let is_shown = |line: &str| document.lines().any(|shown| shown == line);
    assert!(is_shown(&table::head()), "{}", table::head());
    let play =
        |client: Client| async move { table::row(client, &client.installed().unwrap()).await.unwrap() };
    let (theirs, ours) = tokio::join!(play(Client::KubeRs), play(Client::Navicert));
    assert!(is_shown(&theirs), "the document has another row: {theirs}");
    assert!(is_shown(&ours), "the document has another row: {ours}");
}
