//! A program that asks a kubeconfig for its credential and prints it: what this crate's tests run where they need a
//! process of their own, with a terminal for instance.
//!
//! Arguments: the kubeconfig, and optionally what standard input is used for. All contexts of the kubeconfig are asked at
//! the same time, and their credentials printed in order.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use navicert_client::credential::{Asking, SharedFiles, block_on, choose};
use navicert_client::exec::interactive::Stdin;
use navicert_client::exec::{Settings, Surroundings};
use navicert_client::kubeconfig::{self, Disk, Effective, Overrides, Sources};

#[expect(clippy::disallowed_methods, reason = "plugins inherit the environment of whoever runs them")]
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
    let path = arguments.next().map(PathBuf::from).ok_or("a kubeconfig is needed")?;
    let mut settings = Settings::default();
    if let Some(user) = arguments.next() {
        settings.stdin = Stdin::Taken(user.to_string_lossy().into_owned());
    }
    let sources = Sources::locate(Some(&path), None, None);
    let (merged, _) = kubeconfig::select(&sources, &Overrides::default(), Path::new("/"), &Disk)
        .map_err(|error| error.to_string())?;
    let asked: Vec<_> = merged
        .config
        .contexts
        .iter()
        .map(|entry| {
            let overrides = Overrides { context: entry.name.clone(), ..Overrides::default() };
            let (merged, settings) = (merged.clone(), settings.clone());
            std::thread::spawn(move || {
                let effective = merged.select(&overrides, &Disk).map_err(|_| "the context is not usable")?;
                credential(&effective, &settings)
            })
        })
        .collect();
    asked.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?).collect()
}

fn credential(effective: &Effective, settings: &Settings) -> Result<String, String> {
    let files: SharedFiles = Arc::new(Disk);
    let source = choose(effective, &files, settings, &surroundings()).map_err(|error| error.to_string())?;
    let credential = block_on(source.current(Asking::Foreground)).map_err(|error| error.to_string())?;
    let header =
        credential.authorization.as_ref().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    Ok(header.unwrap_or_default())
}
