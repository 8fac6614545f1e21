//! Compares what clients do when a credential expires, is revoked or rotates. Each client gets the same kubeconfig, plugin and
//! server; the table shows what the server received.
//!
//! `make clients` runs it. Clients that are not installed are skipped with a message. `--check FILE` fails if a row is missing
//! from that document. `tests/clients_table.rs` also checks the rows of the Rust clients.

mod client;
mod scenario;
mod table;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use client::Client;
use scenario::Scenario;
use table::{head, row};

/// Any error that ends the program.
pub(crate) type Fault = Box<dyn Error + Send + Sync>;

#[expect(clippy::print_stderr, reason = "prints its result")]
fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.map_err(Fault::from).and_then(|runtime| runtime.block_on(run())) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("clients: {error}");
            ExitCode::from(2)
        }
    }
}

/// Prints the table; returns whether it matches the document, if one is given.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "prints its result")]
async fn run() -> Result<bool, Fault> {
    let mut arguments = std::env::args_os().skip(1);
    let document = match arguments.next() {
        Some(flag) if flag == "--check" => {
            Some(PathBuf::from(arguments.next().ok_or("missing file after --check")?))
        }
        Some(_) => return Err("unknown argument; usage: clients [--check FILE]".into()),
        None => None,
    };
    let document = document.map(std::fs::read_to_string).transpose()?;
    let is_in_document =
        |line: &str| document.as_ref().is_none_or(|text| text.lines().any(|row| row == line));
    let head = head();
    println!("{head}\n|{}", " --- |".repeat(Scenario::ALL.len() + 1));
    let mut agrees = is_in_document(&head);
    for client in Client::ALL {
        let Some(name) = client.installed() else {
            eprintln!("{}: not installed, skipped", client.package());
            continue;
        };
        let row = row(client, &name).await?;
        println!("{row}");
        if !is_in_document(&row) {
            eprintln!("row for {name} does not match the document");
            agrees = false;
        }
    }
    Ok(agrees)
}
