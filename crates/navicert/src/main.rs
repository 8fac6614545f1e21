//! The `navicert` binary: reads arguments and environment, calls the libraries, prints, exits.
//!
//! ```text
//! args ──▶ command/<verb> ──▶ library crates
//!  env ──▶      │
//!               ▼
//!          output (stdout: results; stderr: messages) ──▶ exit
//! ```

mod args;
mod command;
mod env;
mod exit;
mod output;

use std::panic;
use std::process::ExitCode;

use crate::args::{Cli, Verb};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

fn main() -> ExitCode {
    redact_panic_messages();
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let exit = panic::catch_unwind(|| run(cli)).unwrap_or(Exit::Bug);
    exit.into()
}

/// Runs the verb and turns a failure into one message and an exit code.
fn run(cli: Cli) -> Exit {
    let mut output = Output::new(cli.output);
    let environment = Environment::read();
    let result = match cli.verb {
        Verb::Run(args) => command::run::run(&args, &environment, &mut output),
        Verb::Gateway(args) => command::gateway::run(&args, &environment, &mut output),
        Verb::GatewayGuard { dir } => command::gateway::guard(&dir),
        Verb::Kubeconfig(verb) => command::kubeconfig::run(verb, &environment, &mut output),
        Verb::Whoami(args) => command::whoami::run(&args, &environment, &mut output),
        Verb::Doctor(args) => command::doctor::run(&args, &environment, &mut output),
        Verb::ExecPlugin(verb) => command::exec_plugin::run(&verb, &environment, &mut output),
        Verb::Authn(verb) => command::authn::run(&verb, &environment, &mut output),
        Verb::Cel(verb) => command::cel::run(&verb, &mut output),
        Verb::Image(verb) => command::image::run(*verb, &environment, &mut output),
        Verb::Signer(verb) => command::signer::run(&verb, &environment, &mut output),
        Verb::Serve(args) => command::serve::run(&args, &environment, &mut output),
        Verb::TlsVerify(_) => command::tls_verify::run(&mut output),
        Verb::Completions { shell } => command::completions::run(shell, &mut output),
        Verb::Man { dir } => command::man::run(dir.as_deref(), &mut output),
    };
    match result {
        Ok(exit) => exit,
        // The reader closed the pipe, as in `navicert … | head`.
        Err(Failure::OutputClosed) => Exit::Done,
        Err(Failure::AlreadyReported(exit)) => exit,
        Err(Failure::Message { exit, text }) => {
            output.error(&text);
            exit
        }
    }
}

/// Help and version go to stdout with exit code 0; anything else is a usage error.
fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() }
}

/// Prints only the location of a panic: its message may quote a secret.
fn redact_panic_messages() {
    panic::set_hook(Box::new(|info| {
        let location = info.location().map(ToString::to_string).unwrap_or_default();
        anstream::eprintln!(
            "error: internal error in navicert at {location}; please report it with the command line you used"
        );
    }));
}
