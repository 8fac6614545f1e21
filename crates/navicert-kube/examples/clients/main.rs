//! What clients do when a credential expires, is revoked or rotates: the same kubeconfig, the same plugin and the same server
//! for each, and a table of what the server saw.
//!
//! `make clients` runs it. A client that is not installed is skipped with a word; `--check FILE` fails if one of the lines is
//! not in that document. The rows of the Rust clients are also held by `tests/clients_table.rs`.

mod client;
mod scenario;
mod table;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use client::Client;
use scenario::Scenario;
use table::{head, row};

/// Whatever stops the program.
pub(crate) type Fault = Box<dyn Error + Send + Sync>;

#[expect(clippy::print_stderr, reason = "a program for people")]
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

/// Prints the table; whether it agrees with the document, if one is given.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]
async fn run() -> Result<bool, Fault> {
    let mut arguments = std::env::args_os().skip(1);
    let document = match arguments.next() {
        Some(flag) if flag == "--check" => {
            Some(PathBuf::from(arguments.next().ok_or("--check needs a file")?))
        }
        Some(_) => return Err("the only argument is --check FILE".into()),
        None => None,
    };
    let document = document.map(std::fs::read_to_string).transpose()?;
    let is_shown = |line: &str| document.as_ref().is_none_or(|text| text.lines().any(|shown| shown == line));
    let head = head();
    println!("{head}\n|{}", " --- |".repeat(Scenario::ALL.len() + 1));
    let mut agrees = is_shown(&head);
    for client in Client::ALL {
        let Some(name) = client.installed() else {
            eprintln!("{}: not installed, skipped", client.package());
            continue;
        };
        let row = row(client, &name).await?;
        println!("{row}");
        if !is_shown(&row) {
            eprintln!("the document has another row for {name}");
            agrees = false;
        }
    }
    Ok(agrees)
}
