//! `navicert serve`: opens the shared parts, builds the selected server from them and runs it.
//!
//! ```text
//! shared::open ──▶ <server>::build ──▶ (--check ends here) ──▶ shared::serve
//! files, TLS,       its handler and                             listeners, reloads, signals,
//! settings          the files it reloads                        until SIGTERM or SIGINT
//! ```

mod check;
mod logging;
mod print_kubeconfig;
mod print_rbac;
mod proxy;
mod shared;
mod webhook;

use crate::args::serve::{ServeArgs, ServerVerb};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Runs one server, or only checks the files.
pub(crate) fn run(args: &ServeArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    match &args.server {
        None if args.check => check::run(&args.files, environment, output),
        None => Err(usage_error(
            "missing server: run `navicert serve webhook` or `navicert serve proxy`, or add `--check` to check the files only",
        )),
        Some(ServerVerb::Webhook(args)) => webhook::run(args, environment, output),
        Some(ServerVerb::Proxy(args)) => proxy::run(args, environment, output),
    }
}

/// An input file is invalid.
fn bad_input(error: &dyn std::error::Error) -> Failure {
    Failure::bad_input(navicert_types::error_chain(error))
}

fn usage_error(text: &str) -> Failure {
    Failure::Message { exit: Exit::Usage, text: text.to_owned() }
}
