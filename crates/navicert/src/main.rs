#![doc = include_str!("../README.md")]
//!
//! # The binary
//!
//! Reads arguments and environment, calls the libraries, prints, exits.
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
#[cfg(test)]
mod json_schemas;
mod output;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::panic;
use std::process::ExitCode;

use crate::args::{Cli, Verb};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Format, Output, config_report, error_report};

fn main() -> ExitCode {
    redact_panic_messages();
    // Defining every verb and flag takes longer than the rest of this process.
    if args::requests_version(std::env::args_os()) {
        // A closed standard output leaves no reader to tell.
        let _ = writeln!(io::stdout(), "navicert {}", args::VERSION);
        return Exit::Done.into();
    }
    // Kubernetes clients start these verbs for every command.
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if command::login::is_requested(&arguments) {
        return panic::catch_unwind(|| command::login::run(&arguments)).unwrap_or(Exit::Bug).into();
    }
    if let Some(request) = command::exec_plugin::keep::EarlyRequest::read(&arguments) {
        return panic::catch_unwind(|| request.run()).unwrap_or(Exit::Bug).into();
    }
    let cli = match Cli::read(command::help::is_topic) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let format = cli.output;
    let exit = panic::catch_unwind(|| run(cli)).unwrap_or_else(|_| {
        if format == Format::Json {
            print_error_object(Exit::Bug, "internal error in navicert");
        }
        Exit::Bug
    });
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
        // The command line reached clap in an unusual order, or is incomplete.
        Verb::Login(_) | Verb::Logout(_) | Verb::Status(_) => Err(Failure::Message {
            exit: Exit::Usage,
            text: "write `login`, `logout` or `status` first, and its flags after it".to_owned(),
        }),
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
        Verb::RequestInfo(_) => command::request_info::run(&mut output),
        Verb::Completions { shell } => command::completions::run(shell, &mut output),
        Verb::Man { dir } => command::man::run(dir.as_deref(), &mut output),
        Verb::Version => command::version::run(&mut output),
        Verb::CompleteNames(args) => command::completions::names(&args, &environment, &mut output),
        // `Cli::read` has turned every other one into the help of its verb.
        Verb::Help { verb } => command::help::run(&verb, &mut output),
    };
    match result {
        Ok(exit) => {
            output.finish(exit);
            exit
        }
        Err(failure) => finish_failure(failure, &mut output),
    }
}

/// Prints a failure and ends the output.
fn finish_failure(failure: Failure, output: &mut Output) -> Exit {
    let exit = match failure {
        // The reader closed the pipe, as in `navicert … | head`.
        Failure::OutputClosed => Exit::Done,
        Failure::AlreadyReported(exit) => exit,
        Failure::Config(errors) => config_report::print_errors(&errors, output),
        Failure::Message { exit, text } => {
            output.error(&text);
            exit
        }
    };
    output.finish(exit);
    exit
}

/// Help and version go to stdout with exit code 0; anything else is a usage error.
fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if error.use_stderr() && args::requests_json(std::env::args_os()) {
        print_error_object(Exit::Usage, &args::usage_message(error));
    }
    if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() }
}

fn print_error_object(exit: Exit, message: &str) {
    let _ = Output::new(Format::Json).json(&error_report(exit, &[message.to_owned()]));
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
