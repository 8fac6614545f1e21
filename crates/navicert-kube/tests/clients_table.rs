//! Checks the header of the table in docs/clients.md and the rows of the two clients that are always available. `make clients`
//! checks the others as well.
#![cfg(target_os = "linux")]

#[path = "../examples/clients/client.rs"]
#[expect(dead_code, reason = "the example uses the other clients")]
mod client;
#[path = "../examples/clients/scenario.rs"]
mod scenario;
#[path = "../examples/clients/table.rs"]
mod table;

use client::Client;

type Fault = Box<dyn std::error::Error + Send + Sync>;

#[tokio::test(flavor = "multi_thread")]
async fn table_in_the_docs_matches_what_the_server_received() {
    let document = include_str!("../../../docs/clients.md");
    let is_in_document = |line: &str| document.lines().any(|row| row == line);
    assert!(is_in_document(&table::head()), "{}", table::head());
    let run = |client: Client| async move { table::row(client, &client.installed().unwrap()).await.unwrap() };
    let (kube_rs, navicert) = tokio::join!(run(Client::KubeRs), run(Client::Navicert));
    assert!(is_in_document(&kube_rs), "row does not match the document: {kube_rs}");
    assert!(is_in_document(&navicert), "row does not match the document: {navicert}");
}
