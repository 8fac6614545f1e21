//! `navicert run -- CMD`: the command gets the terminal, the signals and a kubeconfig; its end is ours.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use navicert_client::exec::interactive::{ProcessTerminal, Terminal};
use navicert_plugin::{Command, PermitError, Policy, ResolveError, RunError, foreground};

use crate::args::run::{RunArgs, WhichGateway};
use crate::command::gateway::{Access, leave_guard};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output, with_sources};

/// What tells a credential plugin or signer how to get at a credential; not the command's business.
const OURS: [&str; 3] =
    ["KUBERNETES_EXEC_INFO", "EXTERNAL_SIGNER_PLUGIN_CONFIG", "EXTERNAL_SIGNER_REQUEST_FD"];

/// Runs the command, and ends as it does.
pub(crate) fn run(args: &RunArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let access = Access::select(&args.access, environment, output)?;
    let terminal = Arc::new(UntilStarted::default());
    let joined = if args.gateway == WhichGateway::Auto { access.join() } else { None };
    let (running, kubeconfig) = match joined {
        Some(kubeconfig) => (None, kubeconfig),
        None => {
            let running = access.open(environment, Arc::clone(&terminal) as Arc<dyn Terminal>)?;
            let kubeconfig = running.kubeconfig().path();
            (Some(running), kubeconfig)
        }
    };
    let command = command(args, kubeconfig.as_os_str(), environment);
    let permitted = Policy::AllowAll.permit(command).map_err(|error| not_permitted(&error))?;
    if let Some(running) = &running {
        // Before the command has said anything: a Ctrl-Z that meets the guard between its birth and its own process group
        // would stop it for good, and whoever starts it waits until it runs.
        leave_guard(running, environment);
    }
    let ended = foreground::run(permitted, || terminal.started.store(true, Ordering::SeqCst));
    // Before anything else: the port is closed and the files are gone when our end can be seen.
    drop(running);
    match ended.map_err(|error| not_started(&error))? {
        navicert_plugin::Exit::Code(code) => Ok(Exit::Child(u8::try_from(code).unwrap_or(u8::MAX))),
        navicert_plugin::Exit::Signal(signal) => {
            let _ = foreground::end_by(signal);
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
    for name in OURS.iter().map(OsString::from).chain(args.drop_env.iter().cloned()) {
        command = command.drop_env(name);
    }
    for (name, value) in without_proxy(environment) {
        command = command.env(name, value);
    }
    command
}

/// Some clients would ask a proxy for the way to loopback.
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

fn not_permitted(error: &PermitError) -> Failure {
    let exit = match error {
        PermitError::Unresolved(ResolveError::NotExecutable { .. }) => Exit::NOT_EXECUTABLE,
        PermitError::Unresolved(_) => Exit::NOT_FOUND,
        PermitError::Refused(_) => Exit::Denied,
        _ => Exit::Usage,
    };
    Failure::Sentence { exit, text: with_sources(error) }
}

fn not_started(error: &RunError) -> Failure {
    let exit = match error {
        RunError::NotFound { .. } | RunError::InterpreterNotFound { .. } => Exit::NOT_FOUND,
        _ => Exit::NOT_EXECUTABLE,
    };
    Failure::Sentence { exit, text: with_sources(error) }
}

/// The terminal is a credential plugin's until the command starts, and the command's from then on.
#[derive(Debug, Default)]
struct UntilStarted {
    started: AtomicBool,
}

impl Terminal for UntilStarted {
    fn stdin_is_terminal(&self) -> bool {
        !self.started.load(Ordering::SeqCst) && ProcessTerminal.stdin_is_terminal()
    }

    fn is_controlling(&self) -> bool {
        ProcessTerminal.is_controlling()
    }
}
