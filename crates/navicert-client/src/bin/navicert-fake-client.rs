//! Test program that prints the credentials of a kubeconfig, for tests that need a separate process, for example with a
//! terminal.
//!
//! Arguments: the kubeconfig, and optionally what standard input is used for. The credentials of all contexts are
//! fetched concurrently and printed in order.

use std::path::PathBuf;
use std::process::ExitCode;

use navicert_client::credential::{RequestOrigin, block_on};
use navicert_client::exec::ExecSettings;
use navicert_client::exec::interactive::StdinUse;
use navicert_client::{Client, Config};
use navicert_types::error_chain;

#[expect(clippy::print_stdout, reason = "its result is read by a test")]
fn main() -> ExitCode {
    match credentials() {
        Ok(headers) => {
            println!("{}", headers.join("\n"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn credentials() -> Result<Vec<String>, String> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().map(PathBuf::from).ok_or("missing argument: kubeconfig")?;
    let mut settings = ExecSettings::default();
    if let Some(user) = arguments.next() {
        settings.stdin = StdinUse::Taken(user.to_string_lossy().into_owned());
    }
    let options = Config::options().kubeconfig(path);
    let merged = options.load().map_err(|errors| error_chain(&errors))?;
    let asked: Vec<_> = merged
        .config
        .contexts
        .iter()
        .map(|entry| {
            let config = options.clone().context(&entry.name).resolve_in(&merged);
            let settings = settings.clone();
            std::thread::spawn(move || credential(config.map_err(|errors| error_chain(&errors))?, settings))
        })
        .collect();
    asked.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?).collect()
}

fn credential(config: Config, settings: ExecSettings) -> Result<String, String> {
    let source = Client::builder(config).exec_settings(settings).credential_source();
    let credential = block_on(source.get(RequestOrigin::Foreground)).map_err(|error| error_chain(&error))?;
    let header =
        credential.authorization.as_ref().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    Ok(header.unwrap_or_default())
}
