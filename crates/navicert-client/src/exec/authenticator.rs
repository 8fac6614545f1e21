//! Obtains credentials from an exec plugin with at most one run at a time.
// §3.2, §4

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_plugin::{
    Command, Completed, FlightError, PermitError, Permitted, ResolveError, RunError, detach, resolve,
};

use super::error::ExecError;
use super::plugin::Plugin;
use super::response::{self, PluginOutput};
use super::settings::{ExecSettings, PluginPolicy};
use super::shared_credential::{Attempt, RefreshCause, RejectionAction, SharedCredential};
use super::{install_help, interactive};
use crate::context::ClientContext;
use crate::credential::{
    BoxFuture, Credential, CredentialError, CredentialSource, Generation, Rejection, RequestOrigin,
};
use crate::metrics::{CallStatus, RefreshReason};

/// Obtains credentials from an exec plugin and caches them until they expire.
///
/// Authenticators for the same plugin share one credential; each has its own policy, use of standard input and install
/// hint. Creating one does not run the plugin. Cheap to clone.
///
/// ```
/// use navicert_client::credential::{CredentialSource, RequestOrigin};
/// use navicert_client::exec::{Authenticator, ExecSettings};
/// use navicert_client::{ClientContext, Config};
/// # use navicert_plugin::Environment;
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("config");
/// # std::fs::write(&path, "
/// # clusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443'}}]
/// # users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: /bin/sh,
/// #   args: [-c, 'echo apiVersion: client.authentication.k8s.io/v1; echo status: {token: t0ken}']}}}]
/// # contexts: [{name: dev, context: {cluster: c, user: u}}]
/// # current-context: dev").unwrap();
///
/// let config = Config::from_kubeconfig(&path).unwrap();
/// let plugin = config.exec_plugin().unwrap().clone();
/// let environment = Environment::empty();
/// let authenticator = Authenticator::new(plugin, ExecSettings::default(), ClientContext::new(environment));
/// let credential = authenticator.get_blocking(RequestOrigin::Foreground).unwrap();
/// assert!(authenticator.cached().is_some());
/// assert_eq!(credential.authorization.as_ref().unwrap(), "Bearer t0ken");
/// ```
// C404, C309
#[derive(Clone)]
pub struct Authenticator(Arc<Inner>);

struct Inner {
    shared: Arc<SharedCredential>,
    plugin: Plugin,
    settings: ExecSettings,
    client_context: ClientContext,
    /// This authenticator's policy permits the plugin. Required even to use a credential that another one obtained.
    // C404
    permitted: AtomicBool,
}

impl Authenticator {
    /// An authenticator for this plugin.
    pub fn new(plugin: Plugin, settings: ExecSettings, client_context: ClientContext) -> Self {
        let entry = client_context.registry.shared_credential(&plugin, &settings, &client_context);
        let permitted = AtomicBool::new(client_context.policy.allows_all());
        Authenticator(Arc::new(Inner { shared: entry, plugin, settings, client_context, permitted }))
    }

    /// The plugin.
    pub fn plugin(&self) -> &Plugin {
        &self.0.plugin
    }

    /// Runs the plugin now, ignoring any back-off.
    ///
    /// # Errors
    /// Why the plugin returned no credential.
    // C441
    pub async fn refresh(&self) -> Result<Arc<Credential>, ExecError> {
        self.0.obtain(RefreshCause::Manual).await
    }

    /// Checks whether the policy permits the plugin. Does not run it; may read files.
    ///
    /// # Errors
    /// Why it is not permitted, or cause there is nothing to run.
    pub(crate) fn check_policy(&self) -> Result<(), ExecError> {
        self.0.permit(false, &RefreshCause::Manual).map(drop).map_err(|failure| failure.error)
    }

    /// [`CredentialSource::get`] for callers that can block.
    ///
    /// # Errors
    /// Why no credential is available.
    pub fn get_blocking(&self, asking: RequestOrigin) -> Result<Arc<Credential>, ExecError> {
        let authenticator = self.clone();
        match self.cached() {
            Some(credential) => Ok(credential),
            None => crate::credential::block_on(async move {
                authenticator.0.obtain(RefreshCause::Stale(asking)).await
            }),
        }
    }
}

impl CredentialSource for Authenticator {
    fn cached(&self) -> Option<Arc<Credential>> {
        if self.0.permitted.load(Ordering::Acquire) { self.0.shared.fresh() } else { None }
    }

    fn get(&self, asking: RequestOrigin) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(async move {
            match self.cached() {
                Some(credential) => Ok(credential),
                None => Ok(self.0.obtain(RefreshCause::Stale(asking)).await?),
            }
        })
    }

    fn refresh_rejected(
        &self,
        generation: Generation,
        reason: Rejection,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        Box::pin(async move {
            match self.0.shared.on_rejection(generation) {
                RejectionAction::UseRotated(credential) => Ok(Some(credential)),
                RejectionAction::Wait => Ok(None),
                RejectionAction::Run => {
                    let (by, response) = match reason {
                        Rejection::Unauthorized(response) => (RefreshReason::Unauthorized, response),
                        Rejection::TlsAlert => (RefreshReason::TlsAlert, None),
                    };
                    let credential =
                        self.0.obtain(RefreshCause::Rejected { generation, by, response }).await?;
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

/// A permitted command, and whether it gets the terminal.
struct Prepared {
    command: Permitted<Command>,
    interactive: bool,
}

/// The result of preparing a run.
type Preparation = Result<Prepared, Failure>;

/// A failed run.
struct Failure {
    error: ExecError,
    attempt: Attempt,
}

impl Failure {
    /// A failure before any program was started.
    fn before(error: impl Into<ExecError>) -> Self {
        Failure { error: error.into(), attempt: Attempt::NotStarted }
    }
}

impl Inner {
    /// Obtains a credential other than the stale or rejected one, from the run in flight or a new one.
    // C420
    async fn obtain(self: &Arc<Self>, cause: RefreshCause) -> Result<Arc<Credential>, ExecError> {
        let prepared = self.check_permission(&cause).await?;
        let is_idle = self.shared.flights.in_flight() == 0;
        if let Some(settled) = is_idle.then(|| self.shared.resolve_without_run(&cause)).flatten() {
            return settled;
        }
        let inner = Arc::clone(self);
        match self.shared.flights.join((), move || inner.refresh_blocking(&cause, prepared)).await {
            Ok(credential) => Ok(credential),
            Err(FlightError::Failed(error)) => Err(error),
            Err(FlightError::Join(lost)) => Err(ExecError::Lost(lost)),
        }
    }

    /// Checks the policy before a shared credential is used. A denial affects only this authenticator. Policies may read
    /// files, so the check runs on another thread.
    // C404
    async fn check_permission(
        self: &Arc<Self>,
        cause: &RefreshCause,
    ) -> Result<Option<Preparation>, ExecError> {
        if self.permitted.load(Ordering::Acquire) {
            return Ok(None);
        }
        if let Some(Err(waiting)) = self.shared.resolve_without_run(cause) {
            return Err(waiting);
        }
        let (inner, cause) = (Arc::clone(self), cause.clone());
        let checked = detach("plugin-policy", move || {
            let prepared = inner.prepare_or_permit(&cause);
            // The result is cloned for every waiter, but a permit cannot be.
            prepared.map(|prepared| Arc::new(Mutex::new(prepared)))
        });
        let prepared = checked.await.map_err(ExecError::Lost)??;
        self.permitted.store(true, Ordering::Release);
        Ok(prepared.lock().unwrap_or_else(PoisonError::into_inner).take())
    }

    /// Prepares a run. If a fresh credential is cached, only the policy has to permit the plugin.
    fn prepare_or_permit(&self, cause: &RefreshCause) -> Result<Option<Preparation>, ExecError> {
        match self.prepare(cause) {
            Ok(prepared) => Ok(Some(Ok(prepared))),
            Err(Failure { error: ExecError::Interactive(_), .. }) if self.shared.fresh().is_some() => {
                self.permit(false, cause).map_err(|failure| failure.error)?;
                Ok(None)
            }
            // Permitted, but the program does not exist: counts as a failed run.
            Err(failure @ Failure { attempt: Attempt::Started { .. }, .. }) => Ok(Some(Err(failure))),
            Err(Failure { error, .. }) => Err(error),
        }
    }

    /// Runs the plugin and updates the shared credential. Runs on its own thread.
    fn refresh_blocking(
        &self,
        cause: &RefreshCause,
        prepared: Option<Preparation>,
    ) -> Result<Arc<Credential>, ExecError> {
        // Another run may have finished before this thread started.
        if let Some(settled) = self.shared.resolve_without_run(cause) {
            return settled;
        }
        match self.run(cause, prepared) {
            Ok(output) => Ok(self.shared.install(output, cause)),
            Err(failure) => self.shared.handle_failure(failure.error, failure.attempt, cause),
        }
    }

    /// §3.2, steps one to five.
    fn run(&self, cause: &RefreshCause, prepared: Option<Preparation>) -> Result<PluginOutput, Failure> {
        let Prepared { command, interactive } = prepared.unwrap_or_else(|| self.prepare(cause))?;
        self.client_context.recorder.refresh(self.shared.reason(cause));
        let started = self.client_context.clock.monotonic();
        let result = self.client_context.runner.run(command);
        let took = self.client_context.clock.monotonic().saturating_sub(started);
        let failed = |error| Failure { error, attempt: Attempt::Started { had_terminal: interactive } };
        let completed = result.map_err(|error| failed(self.run_error(&error, took)))?;
        self.read_output(&completed).map_err(failed)
    }

    /// Decides interactive mode, builds the command and checks the policy.
    fn prepare(&self, cause: &RefreshCause) -> Result<Prepared, Failure> {
        let mode = &self.plugin.interactive_mode;
        let interactive = interactive::decide(mode, &*self.client_context.terminal, &self.settings.stdin)
            .map_err(Failure::before)?;
        let command = self.permit(interactive, cause)?;
        Ok(Prepared { command, interactive })
    }

    /// Builds the command and checks the policy.
    fn permit(&self, interactive: bool, cause: &RefreshCause) -> Result<Permitted<Command>, Failure> {
        let response = match cause {
            RefreshCause::Rejected { response, .. } => response.as_deref(),
            RefreshCause::Stale(_) | RefreshCause::Manual => None,
        };
        let exec_info = self.plugin.exec_info_after(interactive, response).map_err(Failure::before)?;
        let command = self.plugin.to_command(interactive, &exec_info, &self.settings, &self.client_context);
        let policy = match &self.client_context.policy {
            PluginPolicy::Policy(policy) => policy,
            PluginPolicy::Broken(error) => {
                self.client_context.recorder.policy(false);
                let (command, policy) = (self.plugin.display_command(), Arc::clone(error));
                return Err(Failure::before(ExecError::PolicyUnreadable { command, policy }));
            }
        };
        let permitted = policy.permit(command);
        if !matches!(permitted, Err(PermitError::Malformed(_))) {
            self.client_context.recorder.policy(!matches!(permitted, Err(PermitError::Denied(_))));
        }
        permitted.map_err(|error| {
            let is_rejection = matches!(error, PermitError::Denied(_));
            let attempt =
                if is_rejection { Attempt::NotStarted } else { Attempt::Started { had_terminal: false } };
            Failure { error: self.permit_error(error), attempt }
        })
    }

    fn permit_error(&self, error: PermitError) -> ExecError {
        let command = self.plugin.display_command();
        match error {
            PermitError::Denied(denial) => ExecError::Denied(denial),
            PermitError::Malformed(malformed) => {
                self.count(CallStatus::ClientInternalError, 1, Duration::ZERO);
                ExecError::Malformed(malformed)
            }
            PermitError::Unresolved(unresolved) => {
                self.count(CallStatus::PluginNotFoundError, 1, Duration::ZERO);
                match unresolved {
                    // C321: the command is a path to a file that is not executable.
                    ResolveError::NotExecutable { source, .. }
                        if resolve::has_separator(self.plugin.command.as_ref()) =>
                    {
                        ExecError::NotStarted { command, reason: os_error(&source) }
                    }
                    _ => self.not_found_error(),
                }
            }
            other => ExecError::Internal { reason: other.to_string() },
        }
    }

    /// The not-found error, with installation help unless it was printed too often.
    // C322
    fn not_found_error(&self) -> ExecError {
        let command = self.plugin.display_command();
        let help = self
            .shared
            .take_install_help()
            .then(|| install_help::message(&command, &self.plugin.install_hint));
        ExecError::NotFound { command, help }
    }

    /// Converts a run that did not complete into an error.
    // C320–C324, C306
    fn run_error(&self, error: &RunError, took: Duration) -> ExecError {
        let command = self.plugin.display_command();
        let (status, error) = match error {
            RunError::NotFound { .. } => (CallStatus::PluginNotFoundError, self.not_found_error()),
            RunError::InterpreterNotFound { .. } => {
                let reason =
                    "no such file or directory (the program exists, its interpreter does not)".to_owned();
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
                (CallStatus::ClientInternalError, ExecError::OutputTooLarge { command, cap: *cap })
            }
            other => (CallStatus::ClientInternalError, ExecError::Internal { reason: other.to_string() }),
        };
        self.count(status, 1, took);
        error
    }

    /// Checks the exit code of a completed run, then decodes its output.
    // C323, C502
    fn read_output(&self, completed: &Completed) -> Result<PluginOutput, ExecError> {
        let code = completed.exit.code();
        let stdout = completed.stdout.expose();
        if !completed.exit.is_success() {
            self.count(CallStatus::PluginExecutionError, code, completed.took);
            let message = self.settings.status_message.then(|| response::status_message(stdout)).flatten();
            return Err(ExecError::Failed { command: self.plugin.display_command(), code, message });
        }
        self.count(CallStatus::NoError, 0, completed.took);
        let output = response::read(stdout, self.plugin.version)?;
        if let Some(warning) = output.certificate_warning(self.client_context.clock.now()) {
            tracing::warn!(
                event = "exec_certificate_not_valid",
                command = self.plugin.command(),
                "{warning}"
            );
        }
        Ok(output)
    }

    fn count(&self, status: CallStatus, code: i32, took: Duration) {
        self.client_context.recorder.call(status, code, took);
    }
}

/// The I/O error text without Rust's `(os error 2)`, as Go prints it.
fn os_error(error: &io::Error) -> String {
    let text = error.to_string().to_lowercase();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
