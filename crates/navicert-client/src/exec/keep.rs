//! Runs an exec plugin on behalf of another client, such as kubectl, and keeps its answer in memory between the processes of
//! that client: each of them would run the plugin again.
//!
//! ```text
//! KeptPlugin ──key──▶ keeper ──▶ kept answer ──▶ standard output
//!                       │ none
//!                       └─▶ policy ▶ run ▶ standard output ▶ keeper, until the answer expires
//! ```

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use navicert_plugin::keeper::{CommandKey, KeeperClient, KeeperReply, KeeperRequest, RunLease};
use navicert_plugin::{
    Command, Completed, Environment, Exit, PermitError, Permitted, ResolveError, RunError, Runner, Stdin,
};
use navicert_types::exec_credential::{self, ExecVersion, INFO_VARIABLE};
use navicert_types::time::Time;
use navicert_types::{Clock, Secret, Timestamp};
use thiserror::Error;

use super::author::PluginInput;
use super::response;
use super::settings::ExecSettings;
use super::shared_credential::fresh_until;
use crate::kubeconfig::FileSystem;
use crate::kuberc::{self, KubercError, KubercSource};

/// The oldest answer that is used by default.
pub const DEFAULT_MAX_AGE: Duration = Duration::from_secs(60 * 60);
/// How long an answer without `expirationTimestamp` is kept.
pub const MAX_AGE_WITHOUT_EXPIRY: Duration = Duration::from_secs(60);

/// Variables that differ between the processes of one user and say nothing about the user. The plugin does not get them, so
/// that its answer cannot depend on them.
const CHANGING_VARIABLES: [&str; 3] = ["_", "SHLVL", "OLDPWD"];
/// The shell's copy of the working directory.
const DIRECTORY_VARIABLE: &str = "PWD";

/// How long answers are used, and what the plugin's answer does not depend on.
#[derive(Clone, Debug)]
pub struct KeepSettings {
    /// The oldest answer that is used.
    pub max_age: Duration,
    /// Whether the answer is the same in every working directory.
    pub any_directory: bool,
    /// Variables that the plugin does not get.
    pub drop_env: Vec<OsString>,
}

impl Default for KeepSettings {
    fn default() -> Self {
        KeepSettings { max_age: DEFAULT_MAX_AGE, any_directory: false, drop_env: Vec::new() }
    }
}

/// The process that runs the plugin.
#[derive(Clone, Debug)]
pub struct KeepContext {
    /// Its environment, which the plugin inherits.
    pub environment: Environment,
    /// Its working directory.
    pub directory: PathBuf,
    /// The process that started it: the client.
    pub parent: Option<u32>,
    /// The kuberc whose policy decides which plugins may run.
    pub kuberc: KubercSource,
}

/// A plugin whose answer is kept.
#[derive(Debug)]
pub struct KeptPlugin {
    command: Command,
    request: KeeperRequest,
    kuberc: KubercSource,
}

/// Why there is no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeepError {
    /// The plugin does not exist or is not executable.
    #[error(transparent)]
    Unresolved(#[from] ResolveError),
    /// The kuberc cannot be read, so that no plugin may run.
    #[error(transparent)]
    Kuberc(#[from] KubercError),
    /// The policy denies the plugin.
    #[error(transparent)]
    Denied(#[from] PermitError),
    /// The plugin could not be started, or has no result.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The plugin failed in another process that ran it for this one too.
    #[error(
        "credential plugin `{command}` failed with exit code {code} in another process that ran at the same time"
    )]
    FailedElsewhere {
        /// The plugin.
        command: String,
        /// Its exit code.
        code: i32,
    },
    /// Standard output is closed.
    #[error("failed to write the plugin's answer to standard output")]
    Output(#[source] io::Error),
}

impl KeptPlugin {
    /// Identifies the plugin: its file, its arguments, its environment with `KUBERNETES_EXEC_INFO`, the working directory and
    /// the kuberc. Runs nothing.
    ///
    /// # Errors
    /// [`ResolveError`]: the plugin does not exist or is not executable.
    pub fn new(
        program: &OsStr,
        arguments: &[OsString],
        context: &KeepContext,
        settings: &KeepSettings,
    ) -> Result<Self, ResolveError> {
        let mut command = Command::new(program, context.environment.clone()).args(arguments.iter().cloned());
        for name in CHANGING_VARIABLES {
            command = command.drop_env(name);
        }
        if settings.any_directory {
            command = command.drop_env(DIRECTORY_VARIABLE);
        }
        for name in &settings.drop_env {
            command = command.drop_env(name);
        }
        let directory = (!settings.any_directory).then_some(context.directory.as_path());
        let kuberc: Option<&Path> = match &context.kuberc {
            KubercSource::Named(path) | KubercSource::Home(path) => Some(path),
            KubercSource::Nowhere => None,
        };
        let key = CommandKey::new(&command, directory, kuberc.as_slice())?;
        // Clients hold a credential in memory. One that starts the plugin again was refused with it, but by hand that says
        // nothing.
        let info = context.environment.variable(INFO_VARIABLE).filter(|info| !info.is_empty());
        let client = context.parent.filter(|_| info.is_some());
        Ok(KeptPlugin {
            request: KeeperRequest { key, max_age: settings.max_age, client },
            kuberc: context.kuberc.clone(),
            command,
        })
    }

    /// Writes the kept answer, or runs the plugin and writes what it prints. Returns how the plugin ended.
    ///
    /// # Errors
    /// [`KeepError`]. A keeper that does not work is not an error: the plugin runs as without it.
    pub fn answer(
        &self,
        keeper: &KeeperClient<'_>,
        files: &dyn FileSystem,
        runner: &dyn Runner,
        clock: &dyn Clock,
        stdout: &mut dyn Write,
    ) -> Result<Exit, KeepError> {
        let lease = match keeper.ask(&self.request) {
            Ok(KeeperReply::Kept(answer)) => {
                write(stdout, &answer)?;
                return Ok(Exit::Code(0));
            }
            Ok(KeeperReply::Failed(code)) => {
                let command = self.command.program().to_string_lossy().into_owned();
                return Err(KeepError::FailedElsewhere { command, code });
            }
            Ok(KeeperReply::Run(lease)) => Some(lease),
            Err(_) => None,
        };
        let completed = runner.run(self.permit(files)?)?;
        let written = write(stdout, &completed.stdout);
        let exit = completed.exit;
        if let Some(lease) = lease {
            // The keeper may have gone.
            let _ = self.give(lease, completed, clock.now());
        }
        written.map(|()| exit)
    }

    /// The plugin with its standard input and error, if the kuberc permits it.
    fn permit(&self, files: &dyn FileSystem) -> Result<Permitted<Command>, KeepError> {
        let policy = kuberc::load(&self.kuberc, files)?;
        Ok(policy.permit(self.command.clone().stdin(Stdin::Inherit))?)
    }

    /// Gives the answer to the keeper and to the processes that wait for it. What is not an answer is a failure to them.
    fn give(&self, lease: RunLease, completed: Completed, now: Timestamp) -> io::Result<()> {
        if !completed.exit.is_success() {
            return lease.fail(shell_code(completed.exit));
        }
        // The answer of a client that asks in another version is not for this one: the environment is part of the key.
        let input = PluginInput::read(self.command.variable(INFO_VARIABLE)).ok();
        let version = input.map(|input| input.version());
        match kept_until(completed.stdout.expose(), version, now) {
            Some(until) => lease.finish(completed.stdout, until),
            // Not an answer: each client reports that itself.
            None => Ok(()),
        }
    }
}

fn write(stdout: &mut dyn Write, answer: &Secret<Vec<u8>>) -> Result<(), KeepError> {
    stdout.write_all(answer.expose()).and_then(|()| stdout.flush()).map_err(KeepError::Output)
}

/// The exit code as a shell reports it.
pub fn shell_code(exit: Exit) -> i32 {
    match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => signal.saturating_add(128),
    }
}

/// Until when an answer may be used: as long as navicert's own clients use it, and no longer than its certificate is valid.
/// `None` if it is not a valid answer.
// C410, C411
fn kept_until(stdout: &[u8], version: Option<ExecVersion>, now: Timestamp) -> Option<Timestamp> {
    let version = match version {
        Some(version) => version,
        None => exec_credential::decode(stdout).ok()?.0,
    };
    let answer = response::read(stdout, version).ok()?;
    let certificate = answer.identity.map(|identity| identity.validity().not_after);
    let end = answer.expires.map(Time::timestamp).into_iter().chain(certificate).min();
    let known = end.map(|end| fresh_until(end, now, ExecSettings::default().leeway));
    match (answer.expires, known) {
        (Some(_), Some(known)) => Some(known),
        (_, known) => {
            let short = now.saturating_add(MAX_AGE_WITHOUT_EXPIRY).unwrap_or(Timestamp::MAX);
            Some(known.map_or(short, |known| known.min(short)))
        }
    }
}

#[cfg(test)]
mod tests;
