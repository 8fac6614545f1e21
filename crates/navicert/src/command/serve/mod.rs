//! `navicert serve`: the servers. What they share is opened here, then one of them is built from it and served.
//!
//! ```text
//! Shared::open ──▶ <server>::build ──▶ (--check ends here) ──▶ Shared::serve
//! files, TLS,       its handler and                             listeners, files, signals,
//! settings          the files it follows                        until it is told to end
//! ```

mod check;
mod logging;
mod print_kubeconfig;
mod proxy;
mod shared;
mod webhook;

use crate::args::serve::{ServeArgs, ServerVerb};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// One server, or a look at the files alone.
pub(crate) fn run(args: &ServeArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    match &args.server {
        None => check::run(&args.files, environment, output),
        Some(ServerVerb::Webhook(args)) => webhook::run(args, environment, output),
        Some(ServerVerb::Proxy(args)) => proxy::run(args, environment, output),
    }
}

/// A file given to us is not what it should be.
fn bad(error: &dyn std::error::Error) -> Failure {
    Failure::bad_input(crate::output::with_sources(error))
}

fn usage(text: &str) -> Failure {
    Failure::Sentence { exit: Exit::Usage, text: text.to_owned() }
}
