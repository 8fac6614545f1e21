//! What clients do when a credential expires, is revoked or rotates: the same kubeconfig, the same plugin and the same server
//! for each, and a table of what the server saw.
//!
//! `make clients` runs it. A client that is not installed is skipped with a word; `--check FILE` compares the rows with those
//! in a document.

mod client;
mod scenario;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use client::Client;
use scenario::Scenario;

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
    let titles: Vec<&str> = Scenario::ALL.iter().map(|scenario| scenario.title()).collect();
    println!("| client | {} |\n|{}", titles.join(" | "), " --- |".repeat(titles.len() + 1));
    let mut agrees = true;
    for client in Client::ALL {
        let Some(name) = client.installed() else {
            eprintln!("{}: not installed, skipped", client.package());
            continue;
        };
        let mut cells = Vec::new();
        for scenario in Scenario::ALL {
            cells.push(scenario.play(client).await?);
        }
        let row = format!("| {name} | {} |", cells.join(" | "));
        println!("{row}");
        if document.as_ref().is_some_and(|text| !text.lines().any(|line| line == row)) {
            eprintln!("the document has another row for {name}");
            agrees = false;
        }
    }
    Ok(agrees)
}
