//! Test program that prints the credentials of a kubeconfig, for tests that need a separate process, for example with a
//! terminal.
//!
//! Arguments: the kubeconfig, and optionally what standard input is used for. The credentials of all contexts are
//! fetched concurrently and printed in order.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use navicert_client::credential::{RequestOrigin, SharedFiles, block_on, choose};
use navicert_client::exec::interactive::StdinUse;
use navicert_client::exec::{ExecSettings, Surroundings};
use navicert_client::kubeconfig::{self, Effective, KubeconfigSources, OsFileSystem, Overrides};
use navicert_types::error_chain;

#[expect(clippy::disallowed_methods, reason = "plugins inherit the environment of this process")]
fn surroundings() -> Surroundings {
    Surroundings::new(std::env::vars_os().collect())
}

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
    let sources = KubeconfigSources::locate(Some(&path), None, None);
    let (merged, _) = kubeconfig::select(&sources, &Overrides::default(), Path::new("/"), &OsFileSystem)
        .map_err(|error| error_chain(&error))?;
    let asked: Vec<_> = merged
        .config
        .contexts
        .iter()
        .map(|entry| {
            let overrides = Overrides { context: entry.name.clone(), ..Overrides::default() };
            let (merged, settings) = (merged.clone(), settings.clone());
            std::thread::spawn(move || {
                let effective =
                    merged.select(&overrides, &OsFileSystem).map_err(|_| "the context is not usable")?;
                credential(&effective, &settings)
            })
        })
        .collect();
    asked.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?).collect()
}

fn credential(effective: &Effective, settings: &ExecSettings) -> Result<String, String> {
    let files: SharedFiles = Arc::new(OsFileSystem);
    let source = choose(effective, &files, settings, &surroundings()).map_err(|error| error_chain(&error))?;
    let credential = block_on(source.get(RequestOrigin::Foreground)).map_err(|error| error_chain(&error))?;
    let header =
        credential.authorization.as_ref().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    Ok(header.unwrap_or_default())
}
