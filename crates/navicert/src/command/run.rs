//! `navicert run -- CMD`: the command gets the terminal, the signals and a kubeconfig; navicert exits with its status.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use navicert_client::exec::interactive::{ProcessTerminal, Terminal};
use navicert_plugin::{Command, PermitError, Policy, ResolveError, RunError, foreground};
use navicert_types::error_chain;

use crate::args::run::{GatewayChoice, RunArgs};
use crate::command::gateway::{Access, ErrorResponses, spawn_guard};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Variables for credential plugins and signers, which are removed from the command's environment.
const PLUGIN_VARIABLES: [&str; 3] =
    ["KUBERNETES_EXEC_INFO", "EXTERNAL_SIGNER_PLUGIN_CONFIG", "EXTERNAL_SIGNER_REQUEST_FD"];

/// Runs the command and exits with its status.
pub(crate) fn run(args: &RunArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let access = Access::select(&args.access, environment, output)?;
    let terminal = Arc::new(TerminalUntilStart::default());
    let joined = if args.gateway == GatewayChoice::Auto { access.join() } else { None };
    let (running, kubeconfig) = match joined {
        Some(kubeconfig) => (None, kubeconfig),
        None => {
            let terminal = Arc::clone(&terminal) as Arc<dyn Terminal>;
            let running = access.open(terminal, ErrorResponses::WithoutCause)?;
            let kubeconfig = running.kubeconfig().path();
            (Some(running), kubeconfig)
        }
    };
    let command = command(args, kubeconfig.as_os_str(), environment);
    let permitted = Policy::AllowAll.permit(command).map_err(|error| permit_failure(&error))?;
    if let Some(running) = &running {
        // Before the command starts: a Ctrl-Z between the guard's fork and its `setpgid` would stop the guard forever, and
        // its parent waits until it runs.
        spawn_guard(running, environment);
    }
    let ended = foreground::run(permitted, || terminal.started.store(true, Ordering::SeqCst));
    // Close the port and remove the files before this process's exit can be observed.
    drop(running);
    match ended.map_err(|error| start_failure(&error))? {
        navicert_plugin::Exit::Code(code) => Ok(Exit::Child(u8::try_from(code).unwrap_or(u8::MAX))),
        navicert_plugin::Exit::Signal(signal) => {
            let _ = foreground::exit_by_signal(signal);
            Ok(Exit::Child(u8::try_from(signal.saturating_add(128)).unwrap_or(u8::MAX)))
        }
    }
}

fn command(args: &RunArgs, kubeconfig: &OsStr, environment: &Environment) -> Command {
    let (program, arguments) = args
        .command
        .split_first()
        .map_or((OsStr::new(""), &[][..]), |(first, rest)| (first.as_os_str(), rest));
    let mut command = Command::new(program, environment.inherited.clone())
        .args(arguments.iter().cloned())
        .env("KUBECONFIG", kubeconfig);
    for name in PLUGIN_VARIABLES.iter().map(OsString::from).chain(args.drop_env.iter().cloned()) {
        command = command.drop_env(name);
    }
    for (name, value) in without_proxy(environment) {
        command = command.env(name, value);
    }
    command
}

/// Adds loopback to `NO_PROXY`: some clients would connect to it through a proxy.
fn without_proxy(environment: &Environment) -> Vec<(&'static str, OsString)> {
    const PROXIES: [&str; 6] =
        ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    if !PROXIES.iter().any(|name| environment.variable(name).is_some_and(|value| !value.is_empty())) {
        return Vec::new();
    }
    let extended = |name: &'static str| {
        let mut value = environment.variable(name).unwrap_or_default();
        if !value.is_empty() {
            value.push(",");
        }
        value.push("127.0.0.1");
        (name, value)
    };
    ["NO_PROXY", "no_proxy"].into_iter().map(extended).collect()
}

fn permit_failure(error: &PermitError) -> Failure {
    let exit = match error {
        PermitError::Unresolved(ResolveError::NotExecutable { .. }) => Exit::NOT_EXECUTABLE,
        PermitError::Unresolved(_) => Exit::NOT_FOUND,
        PermitError::Denied(_) => Exit::Denied,
        _ => Exit::Usage,
    };
    Failure::Message { exit, text: error_chain(error) }
}

fn start_failure(error: &RunError) -> Failure {
    let exit = match error {
        RunError::NotFound { .. } | RunError::InterpreterNotFound { .. } => Exit::NOT_FOUND,
        _ => Exit::NOT_EXECUTABLE,
    };
    Failure::Message { exit, text: error_chain(error) }
}

/// Lets credential plugins use the terminal only until the command starts.
#[derive(Debug, Default)]
struct TerminalUntilStart {
    started: AtomicBool,
}

impl Terminal for TerminalUntilStart {
    fn stdin_is_terminal(&self) -> bool {
        !self.started.load(Ordering::SeqCst) && ProcessTerminal.stdin_is_terminal()
    }

    fn has_controlling_terminal(&self) -> bool {
        ProcessTerminal.has_controlling_terminal()
    }
}
