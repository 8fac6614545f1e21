//! The spine: from "a credential is needed" to a credential, through one plugin run at most (client-credentials.md
//! §3.2, §4).

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_plugin::{
    Command, Completed, FlightError, PermitError, Permitted, ResolveError, RunError, detach, resolve,
};

use super::entry::{Attempt, Entry, Verdict, Why};
use super::error::ExecError;
use super::plugin::Plugin;
use super::response::{self, Output};
use super::settings::{PluginPolicy, Settings, Surroundings};
use super::{install_help, interactive};
use crate::credential::{
    Asking, BoxFuture, Credential, CredentialError, CredentialSource, Generation, Refused,
};
use crate::metrics::{CallStatus, RefreshReason};

/// Gets credentials from a plugin, and keeps them as long as they are good.
///
/// Authenticators for the same plugin share one credential (C404); each has its own policy, its own word about
/// standard input and its own install hint. Making one runs nothing (C309). Cheap to clone.
///
/// ```
/// use navicert_client::credential::{Asking, CredentialSource};
/// use navicert_client::exec::{Authenticator, Plugin, Settings, Surroundings};
/// use navicert_client::kubeconfig::{self, Disk, Overrides, Sources};
/// # use navicert_plugin::Environment;
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("config");
/// # std::fs::write(&path, "
/// # clusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443'}}]
/// # users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: /bin/sh,
/// #   args: [-c, 'echo apiVersion: client.authentication.k8s.io/v1; echo status: {token: t0ken}']}}}]
/// # contexts: [{name: dev, context: {cluster: c, user: u}}]
/// # current-context: dev").unwrap();
///
/// let sources = Sources::locate(Some(&path), None, None);
/// let (_, effective) = kubeconfig::select(&sources, &Overrides::default(), folder.path(), &Disk).unwrap();
/// let plugin = Plugin::of(&effective, &Disk).unwrap().unwrap();
/// let environment = Environment::empty();
/// let authenticator = Authenticator::new(plugin, Settings::default(), Surroundings::new(environment));
/// let credential = authenticator.current_blocking(Asking::Foreground).unwrap();
/// assert!(authenticator.ready().is_some());
/// assert_eq!(credential.authorization.as_ref().unwrap(), "Bearer t0ken");
/// ```
#[derive(Clone)]
pub struct Authenticator(Arc<Inner>);

struct Inner {
    entry: Arc<Entry>,
    plugin: Plugin,
    settings: Settings,
    around: Surroundings,
    /// This authenticator's policy has said yes; without that not even a credential that others got may be used (C404).
    permitted: AtomicBool,
}

impl Authenticator {
    /// An authenticator for this plugin.
    pub fn new(plugin: Plugin, settings: Settings, around: Surroundings) -> Self {
        let entry = around.registry.entry(&plugin, &settings, &around);
        let permitted = AtomicBool::new(around.policy.is_open());
        Authenticator(Arc::new(Inner { entry, plugin, settings, around, permitted }))
    }

    /// The plugin.
    pub fn plugin(&self) -> &Plugin {
        &self.0.plugin
    }

    /// Runs the plugin now, because somebody asked for it: no wait applies (C441).
    ///
    /// # Errors
    /// Why it gave no credential.
    pub async fn refresh(&self) -> Result<Arc<Credential>, ExecError> {
        self.0.obtain(Why::Manual).await
    }

    /// Whether the policy would let the plugin run now. Nothing is run; files may be looked at.
    ///
    /// # Errors
    /// Why it may not, or why there is nothing to run.
    pub fn check_policy(&self) -> Result<(), ExecError> {
        self.0.permit(false, &Why::Manual).map(drop).map_err(|failure| failure.error)
    }

    /// [`CredentialSource::current`] for those who can block.
    ///
    /// # Errors
    /// Why there is none.
    pub fn current_blocking(&self, asking: Asking) -> Result<Arc<Credential>, ExecError> {
        let authenticator = self.clone();
        match self.ready() {
            Some(credential) => Ok(credential),
            None => {
                crate::credential::block_on(async move { authenticator.0.obtain(Why::Stale(asking)).await })
            }
        }
    }
}

impl CredentialSource for Authenticator {
    fn ready(&self) -> Option<Arc<Credential>> {
        if self.0.permitted.load(Ordering::Acquire) { self.0.entry.ready() } else { None }
    }

    fn current(&self, asking: Asking) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(async move {
            match self.ready() {
                Some(credential) => Ok(credential),
                None => Ok(self.0.obtain(Why::Stale(asking)).await?),
            }
        })
    }

    fn refused(
        &self,
        generation: Generation,
        reason: Refused,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        Box::pin(async move {
            match self.0.entry.on_refusal(generation) {
                Verdict::Rotated(credential) => Ok(Some(credential)),
                Verdict::Wait => Ok(None),
                Verdict::Run => {
                    let (by, answer) = match reason {
                        Refused::Unauthorized(answer) => (RefreshReason::Unauthorized, answer),
                        Refused::TlsAlert => (RefreshReason::TlsAlert, None),
                    };
                    let credential = self.0.obtain(Why::Refused { generation, by, answer }).await?;
                    Ok((credential.generation != generation).then_some(credential))
                }
            }
        })
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator").field("plugin", &self.0.plugin).finish_non_exhaustive()
    }
}

/// A command that may run, and whether it gets the terminal.
struct Prepared {
    command: Permitted<Command>,
    interactive: bool,
}

/// How far the first half of a run came.
type Preparation = Result<Prepared, Failure>;

/// A run that gave no credential.
struct Failure {
    error: ExecError,
    attempt: Attempt,
}

impl Failure {
    /// Nothing was tried.
    fn before(error: impl Into<ExecError>) -> Self {
        Failure { error: error.into(), attempt: Attempt::None }
    }
}

impl Inner {
    /// A credential other than the stale or refused one, through the run that is under way or a new one (C420).
    async fn obtain(self: &Arc<Self>, why: Why) -> Result<Arc<Credential>, ExecError> {
        let prepared = self.permission(&why).await?;
        let is_idle = self.entry.flights.under_way() == 0;
        if let Some(settled) = is_idle.then(|| self.entry.settled(&why)).flatten() {
            return settled;
        }
        let inner = Arc::clone(self);
        match self.entry.flights.join((), move || inner.renew(&why, prepared)).await {
            Ok(credential) => Ok(credential),
            Err(FlightError::Failed(error)) => Err(error),
            Err(FlightError::Lost(lost)) => Err(ExecError::Lost(lost)),
        }
    }

    /// Asks the policy before anything that others got is used (C404); a no is told to nobody else. Where the policy
    /// looks at files, this is not done on the caller's thread.
    async fn permission(self: &Arc<Self>, why: &Why) -> Result<Option<Preparation>, ExecError> {
        if self.permitted.load(Ordering::Acquire) {
            return Ok(None);
        }
        if let Some(Err(waiting)) = self.entry.settled(why) {
            return Err(waiting);
        }
        let (inner, why) = (Arc::clone(self), why.clone());
        let asked = detach("plugin-policy", move || {
            let prepared = inner.prepare_or_permit(&why);
            // A waiter's answer is copied to everybody who waits; a permission cannot be.
            prepared.map(|prepared| Arc::new(Mutex::new(prepared)))
        });
        let prepared = asked.await.map_err(ExecError::Lost)??;
        self.permitted.store(true, Ordering::Release);
        Ok(prepared.lock().unwrap_or_else(PoisonError::into_inner).take())
    }

    /// Steps one to three. Where there is a credential to be used already, only the policy has to agree.
    fn prepare_or_permit(&self, why: &Why) -> Result<Option<Preparation>, ExecError> {
        match self.prepare(why) {
            Ok(prepared) => Ok(Some(Ok(prepared))),
            Err(Failure { error: ExecError::Interactive(_), .. }) if self.entry.ready().is_some() => {
                self.permit(false, why).map_err(|failure| failure.error)?;
                Ok(None)
            }
            // The policy has no objection, but there is no such program: a failed run like any other.
            Err(failure @ Failure { attempt: Attempt::Made { .. }, .. }) => Ok(Some(Err(failure))),
            Err(Failure { error, .. }) => Err(error),
        }
    }

    /// The run itself and what becomes of it; on a thread of its own.
    fn renew(&self, why: &Why, prepared: Option<Preparation>) -> Result<Arc<Credential>, ExecError> {
        // Somebody may have been here between the question and this thread.
        if let Some(settled) = self.entry.settled(why) {
            return settled;
        }
        match self.run(why, prepared) {
            Ok(output) => Ok(self.entry.install(output, why)),
            Err(failure) => self.entry.failed(failure.error, failure.attempt, why),
        }
    }

    /// §3.2, steps one to five.
    fn run(&self, why: &Why, prepared: Option<Preparation>) -> Result<Output, Failure> {
        let Prepared { command, interactive } = prepared.unwrap_or_else(|| self.prepare(why))?;
        self.around.recorder.refresh(self.entry.reason(why));
        let started = self.around.clock.monotonic();
        let result = self.around.runner.run(command);
        let took = self.around.clock.monotonic().saturating_sub(started);
        let failed = |error| Failure { error, attempt: Attempt::Made { had_terminal: interactive } };
        let completed = result.map_err(|error| failed(self.not_completed(&error, took)))?;
        self.judge(&completed).map_err(failed)
    }

    /// Steps one to three: may it talk, what is it told, may it run.
    fn prepare(&self, why: &Why) -> Result<Prepared, Failure> {
        let mode = &self.plugin.interactive_mode;
        let interactive = interactive::decide(mode, &*self.around.terminal, &self.settings.stdin)
            .map_err(Failure::before)?;
        let command = self.permit(interactive, why)?;
        Ok(Prepared { command, interactive })
    }

    /// Steps two and three: what is it told, may it run.
    fn permit(&self, interactive: bool, why: &Why) -> Result<Permitted<Command>, Failure> {
        let answer = match why {
            Why::Refused { answer, .. } => answer.as_deref(),
            Why::Stale(_) | Why::Manual => None,
        };
        let question = self.plugin.question_after(interactive, answer).map_err(Failure::before)?;
        let command = self.plugin.to_command(interactive, &question, &self.settings, &self.around);
        let policy = match &self.around.policy {
            PluginPolicy::Policy(policy) => policy,
            PluginPolicy::Broken(error) => {
                self.around.recorder.policy(false);
                let (command, policy) = (self.plugin.shown_command(), Arc::clone(error));
                return Err(Failure::before(ExecError::PolicyUnreadable { command, policy }));
            }
        };
        let permitted = policy.permit(command);
        if !matches!(permitted, Err(PermitError::Malformed(_))) {
            self.around.recorder.policy(!matches!(permitted, Err(PermitError::Refused(_))));
        }
        permitted.map_err(|error| {
            let is_refusal = matches!(error, PermitError::Refused(_));
            let attempt = if is_refusal { Attempt::None } else { Attempt::Made { had_terminal: false } };
            Failure { error: self.not_permitted(error), attempt }
        })
    }

    fn not_permitted(&self, error: PermitError) -> ExecError {
        let command = self.plugin.shown_command();
        match error {
            PermitError::Refused(refusal) => ExecError::Denied(refusal),
            PermitError::Malformed(malformed) => {
                self.count(CallStatus::ClientInternalError, 1, Duration::ZERO);
                ExecError::Malformed(malformed)
            }
            PermitError::Unresolved(unresolved) => {
                self.count(CallStatus::PluginNotFoundError, 1, Duration::ZERO);
                match unresolved {
                    // C321: a command that names a place, where something is that cannot be run.
                    ResolveError::NotExecutable { source, .. }
                        if resolve::has_separator(self.plugin.command.as_ref()) =>
                    {
                        ExecError::NotStarted { command, reason: os_error(&source) }
                    }
                    _ => self.not_found(),
                }
            }
            other => ExecError::Internal { reason: other.to_string() },
        }
    }

    /// C320, with help if there has not been too much of it (C322).
    fn not_found(&self) -> ExecError {
        let command = self.plugin.shown_command();
        let help = self.entry.may_help().then(|| install_help::text(&command, &self.plugin.install_hint));
        ExecError::NotFound { command, help }
    }

    /// A run without a result (C320–C324, C306).
    fn not_completed(&self, error: &RunError, took: Duration) -> ExecError {
        let command = self.plugin.shown_command();
        let (status, error) = match error {
            RunError::NotFound { .. } => (CallStatus::PluginNotFoundError, self.not_found()),
            RunError::InterpreterNotFound { .. } => {
                let reason =
                    "no such file or directory (the program is there, its interpreter is not)".to_owned();
                (CallStatus::PluginNotFoundError, ExecError::NotStarted { command, reason })
            }
            RunError::Start { source, .. } => {
                let reason = os_error(source);
                (CallStatus::PluginNotFoundError, ExecError::NotStarted { command, reason })
            }
            RunError::TimedOut { after, .. } => {
                (CallStatus::ClientInternalError, ExecError::TimedOut { command, after: *after })
            }
            RunError::StdoutTooLarge { cap, .. } => {
                (CallStatus::ClientInternalError, ExecError::TooTalkative { command, cap: *cap })
            }
            other => (CallStatus::ClientInternalError, ExecError::Internal { reason: other.to_string() }),
        };
        self.count(status, 1, took);
        error
    }

    /// Steps four and five of a run that came to an end: its code first, then its output (C323, C502).
    fn judge(&self, completed: &Completed) -> Result<Output, ExecError> {
        let code = completed.exit.code();
        let stdout = completed.stdout.expose();
        if !completed.exit.is_success() {
            self.count(CallStatus::PluginExecutionError, code, completed.took);
            let message = self.settings.status_message.then(|| response::status_message(stdout)).flatten();
            return Err(ExecError::Failed { command: self.plugin.shown_command(), code, message });
        }
        self.count(CallStatus::NoError, 0, completed.took);
        let output = response::read(stdout, self.plugin.version)?;
        if let Some(warning) = output.certificate_warning(self.around.clock.now()) {
            tracing::warn!(command = self.plugin.command(), "{warning}");
        }
        Ok(output)
    }

    fn count(&self, status: CallStatus, code: i32, took: Duration) {
        self.around.recorder.call(status, code, took);
    }
}

/// The operating system's word without Rust's `(os error 2)`, as Go has it.
fn os_error(error: &io::Error) -> String {
    let text = error.to_string().to_lowercase();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
