//! `navicert exec-plugin keep`: keeps a plugin's answer in memory. Answered before the verbs are defined and without a
//! runtime: kubectl starts this program for every command.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use navicert_client::exec::author;
use navicert_client::exec::keep::{
    DEFAULT_MAX_AGE, KeepContext, KeepError, KeepSettings, KeptPlugin, shell_code,
};
use navicert_client::kubeconfig::OsFileSystem;
use navicert_client::kuberc::{KubercLocation, KubercSource};
use navicert_client::report::ClearedAnswersReport;
use navicert_io::inherited_descriptors::close_inherited;
use navicert_io::process_memory;
use navicert_io::runtime_directory::RuntimeDirectory;
use navicert_plugin::keeper::{KeeperClient, KeeperServer};
use navicert_plugin::{
    Command, Environment as PluginEnvironment, PermitError, Policy, ProcessRunner, ResolveError, RunError,
    foreground,
};
use navicert_types::exec_credential::INFO_VARIABLE;
use navicert_types::{SystemClock, error_chain, redact};

use crate::args::duration;
use crate::args::exec_plugin::KeepArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// The verb of the process that keeps the answers. Not for users: its standard input is a listening socket.
const KEEPER_VERB: &str = "keeper";

/// A command line that is answered before the verbs are defined.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EarlyRequest {
    /// `exec-plugin keep … -- COMMAND`.
    Keep(KeepArgs),
    /// `exec-plugin keeper SOCKET`.
    Keeper(OsString),
}

impl EarlyRequest {
    /// Reads the usual forms; `None` for all others, such as requests for help and errors.
    pub(crate) fn read(arguments: &[OsString]) -> Option<Self> {
        let [_, group, verb, words @ ..] = arguments else { return None };
        if group != "exec-plugin" {
            return None;
        }
        match (verb.to_str()?, words) {
            ("keep", words) => read_keep(words).map(EarlyRequest::Keep),
            (KEEPER_VERB, [socket]) => Some(EarlyRequest::Keeper(socket.clone())),
            _ => None,
        }
    }

    /// Runs the plugin, or keeps answers.
    pub(crate) fn run(&self) -> Exit {
        match self {
            EarlyRequest::Keep(args) => answer(args, &Environment::read()),
            EarlyRequest::Keeper(socket) => serve(Path::new(socket)),
        }
    }
}

/// The flags before `--`, and the command.
fn read_keep(words: &[OsString]) -> Option<KeepArgs> {
    let mut args = KeepArgs::default();
    let mut words = words.iter();
    loop {
        let word = words.next()?.to_str()?;
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        match (name, value) {
            ("--", None) => break,
            ("--any-directory", None) => args.any_directory = true,
            ("--max-age", Some(value)) => args.max_age = Some(duration(value).ok()?),
            ("--max-age", None) => args.max_age = Some(duration(words.next()?.to_str()?).ok()?),
            ("--drop-env", Some(value)) => args.drop_env.push(value.into()),
            ("--drop-env", None) => args.drop_env.push(words.next()?.clone()),
            _ => return None,
        }
    }
    args.command = words.cloned().collect();
    (!args.command.is_empty()).then_some(args)
}

/// Runs the verb where the command line has an unusual form.
pub(super) fn run(args: &KeepArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    if !args.clear {
        return Ok(answer(args, environment));
    }
    let keeper = KeeperClient::new(runtime_directory(environment), &start_keeper);
    let removed = keeper.clear().map_err(|error| Failure::Message {
        exit: Exit::No,
        text: format!("failed to clear the kept answers: {error}"),
    })?;
    output.report(&ClearedAnswersReport { removed: removed.unwrap_or_default() })?;
    Ok(Exit::Done)
}

/// Prints the kept answer, or what the plugin prints.
fn answer(args: &KeepArgs, environment: &Environment) -> Exit {
    #[cfg(target_os = "linux")]
    let _ = process_memory::hide_memory();
    match try_answer(args, environment) {
        Ok(exit) => exit,
        Err(error) => fail(&error, environment),
    }
}

fn try_answer(args: &KeepArgs, environment: &Environment) -> Result<Exit, KeepError> {
    let (program, arguments) =
        args.command.split_first().map_or((OsStr::new(""), &[][..]), |(first, rest)| (first, rest));
    let (variable, feature) = (environment.variable("KUBERC"), environment.variable("KUBECTL_KUBERC"));
    let location = KubercLocation {
        flag: None,
        variable: variable.as_deref(),
        feature: feature.as_deref(),
        home: environment.home.as_deref(),
    };
    let context = KeepContext {
        environment: environment.inherited.clone(),
        directory: environment.current_dir.clone(),
        parent: rustix::process::getppid().map(|pid| pid.as_raw_pid().cast_unsigned()),
        kuberc: KubercSource::locate(location)?,
    };
    let settings = KeepSettings {
        max_age: args.max_age.unwrap_or(DEFAULT_MAX_AGE),
        any_directory: args.any_directory,
        drop_env: args.drop_env.clone(),
    };
    let plugin = KeptPlugin::new(program, arguments, &context, &settings)?;
    let keeper = KeeperClient::new(runtime_directory(environment), &start_keeper);
    let runner = ProcessRunner::new(Arc::new(SystemClock));
    let end = plugin.answer(&keeper, &OsFileSystem, &runner, &SystemClock, &mut io::stdout().lock())?;
    Ok(Exit::Child(u8::try_from(shell_code(end)).unwrap_or(u8::MAX)))
}

fn runtime_directory(environment: &Environment) -> RuntimeDirectory {
    RuntimeDirectory::locate(&|name| environment.variable(name))
}

/// Prints the error, for a client also as a `Status`.
fn fail(error: &KeepError, environment: &Environment) -> Exit {
    let exit = match error {
        // The client has gone.
        KeepError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return Exit::Done,
        KeepError::Output(_) | KeepError::Kuberc(_) => Exit::BadInput,
        KeepError::Unresolved(ResolveError::NotExecutable { .. }) => Exit::NOT_EXECUTABLE,
        KeepError::Unresolved(_) => Exit::NOT_FOUND,
        KeepError::Denied(PermitError::Denied(_)) => Exit::Denied,
        KeepError::Denied(_) => Exit::Usage,
        KeepError::Run(RunError::NotFound { .. } | RunError::InterpreterNotFound { .. }) => Exit::NOT_FOUND,
        KeepError::Run(RunError::Start { .. }) => Exit::NOT_EXECUTABLE,
        KeepError::FailedElsewhere { code, .. } => Exit::Child(u8::try_from(*code).unwrap_or(u8::MAX)),
        _ => Exit::No,
    };
    let message = redact::line(&error_chain(error)).into_owned();
    // A closed stream leaves no reader to tell.
    if environment.variable(INFO_VARIABLE).is_some_and(|value| !value.is_empty()) {
        let _ = author::fail(&message, &mut io::stdout().lock(), &mut io::stderr().lock());
    } else {
        let _ = writeln!(io::stderr(), "error: {message}");
    }
    exit
}

/// Starts the process that keeps answers, with an empty environment: it outlives this one.
fn start_keeper(socket: OwnedFd, path: &Path) -> io::Result<()> {
    let own = std::env::current_exe()?;
    let keeper = Command::new(own, PluginEnvironment::empty()).args([
        "exec-plugin".as_ref(),
        KEEPER_VERB.as_ref(),
        path.as_os_str(),
    ]);
    let permitted = Policy::AllowAll.permit(keeper).map_err(io::Error::other)?;
    foreground::spawn_server(permitted, socket).map_err(io::Error::other)
}

/// Keeps answers until there are none. Nothing can be printed: its streams are closed.
fn serve(path: &Path) -> Exit {
    // Locks and pipes of the client's script end with the client.
    let _ = close_inherited();
    // Signals of the terminal are not for this process, and no directory is kept from being removed.
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    let _ = process_memory::forbid_core_dumps();
    #[cfg(target_os = "linux")]
    let _ = process_memory::lock_memory();
    let served = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .and_then(|socket| {
            KeeperServer::take_over(socket, path, Arc::new(SystemClock)).map_err(io::Error::other)
        })
        .and_then(KeeperServer::serve);
    if served.is_ok() { Exit::Done } else { Exit::No }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(line: &str) -> Option<EarlyRequest> {
        EarlyRequest::read(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn reads_the_usual_forms_without_defining_the_verbs() {
        let command = |words: &str| words.split(' ').map(OsString::from).collect::<Vec<_>>();
        let plain = KeepArgs { command: command("aws eks --help"), ..KeepArgs::default() };
        assert_eq!(read("navicert exec-plugin keep -- aws eks --help"), Some(EarlyRequest::Keep(plain)));
        let all = KeepArgs {
            max_age: Some(Duration::from_secs(300)),
            any_directory: true,
            drop_env: vec!["A".into(), "B".into()],
            clear: false,
            command: command("p -- x"),
        };
        for line in [
            "navicert exec-plugin keep --max-age 5m --any-directory --drop-env A --drop-env=B -- p -- x",
            "navicert exec-plugin keep --drop-env=A --max-age=5m --drop-env B --any-directory -- p -- x",
        ] {
            assert_eq!(read(line), Some(EarlyRequest::Keep(all.clone())), "{line}");
        }
        assert_eq!(read("navicert exec-plugin keeper /s"), Some(EarlyRequest::Keeper("/s".into())));
    }

    #[test]
    fn leaves_everything_else_to_the_parser_with_its_messages() {
        for line in [
            "navicert exec-plugin keep",
            "navicert exec-plugin keep --",
            "navicert exec-plugin keep --clear",
            "navicert exec-plugin keep --help",
            "navicert exec-plugin keep --max-age 5 -- p",
            "navicert exec-plugin keep --max-age",
            "navicert exec-plugin keep -o json -- p",
            "navicert exec-plugin keep --any-directory=yes -- p",
            "navicert exec-plugin keep aws",
            "navicert exec-plugin keeper",
            "navicert exec-plugin check -- p",
            "navicert -o json exec-plugin keep -- p",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
