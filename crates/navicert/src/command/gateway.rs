//! `navicert gateway`: a long-lived gateway that commands share; `run` uses the same code to start a private one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use navicert_client::exec::interactive::{ProcessTerminal, Terminal};
use navicert_client::transport::{Transport, TransportError};
use navicert_client::{Client, Config};
use navicert_io::process_memory::hide_memory;
use navicert_io::runtime_directory::RuntimeDirectory;
use navicert_plugin::{ProcessRunner, RepeatedStderrFilter, foreground};
use navicert_server::gateway::child_kubeconfig::{self, ContextNames};
use navicert_server::gateway::{self, Gateway, GatewayError, GatewaySettings, RunningGateway};
use navicert_server::report::GatewayReport;
use navicert_signer::remote::SessionRunner;
use navicert_types::{SystemClock, error_chain, external_signer};

use crate::args::run::{AccessArgs, GatewayArgs};
use crate::command::{connect, upstream_failure};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Starts a gateway, prints the path of its kubeconfig and serves until a signal.
pub(crate) fn run(
    args: &GatewayArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    // Install the handlers before the gateway is published: signals may arrive from then on.
    let ends = foreground::TerminationSignals::register()
        .map_err(|error| Failure::bad_input(format!("failed to install signal handlers: {error}")))?;
    let access = Access::select(&args.access, environment, output)?;
    let terminal = Arc::new(ProcessTerminal);
    let running = access.open(terminal, ErrorResponses::WithCause)?;
    let told = running.kubeconfig();
    told.announce(&access.key()).map_err(|error| {
        Failure::bad_input(format!("failed to publish the gateway for other commands: {error}"))
    })?;
    let path = told.path().display().to_string();
    if output.is_json() {
        let server = format!("https://{}", running.address());
        output.json(&GatewayReport { kubeconfig: path, server, read_only: access.read_only })?;
    } else {
        output.text(&format!("{path}\n"))?;
    }
    spawn_guard(&running, environment);
    ends.wait();
    Ok(Exit::Done)
}

/// `navicert gateway-guard`: waits until a gateway exits and removes its files.
pub(crate) fn guard(dir: &Path) -> Result<Exit, Failure> {
    child_kubeconfig::remove_when_abandoned(dir)
        .map_err(|error| Failure::bad_input(format!("`{}`: {error}", dir.display())))?;
    Ok(Exit::Done)
}

/// What commands read in error responses of a gateway.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorResponses {
    /// The cause: commands may run on another terminal than the gateway.
    WithCause,
    /// What failed, without the cause: navicert has printed it on the terminal of the command.
    WithoutCause,
}

/// The cluster and user a gateway gives access to, selected and validated.
pub(super) struct Access {
    config: Config,
    read_only: bool,
    directory: RuntimeDirectory,
    base: PathBuf,
}

impl Access {
    /// Selects the cluster and user, and protects this process's memory from other processes.
    pub(super) fn select(
        args: &AccessArgs,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Self, Failure> {
        if let Err(error) = hide_memory() {
            output.warning(&format!(
                "failed to protect this process's memory from other processes of this user: {error}"
            ));
        }
        let config = connect::resolve(&connect::options(&args.connection, None, environment), output)?;
        let directory = RuntimeDirectory::locate(&|name| environment.variable(name));
        let base = directory.create().map_err(|error| {
            Failure::bad_input(format!("failed to create a directory for the command's kubeconfig: {error}"))
        })?;
        Ok(Access { config, read_only: args.read_only, directory, base })
    }

    /// The kubeconfig of a running gateway for the same cluster and user, if any.
    pub(super) fn join(&self) -> Option<PathBuf> {
        self.directory.existing().find_map(|base| child_kubeconfig::find_announced(base, &self.key()))
    }

    /// Opens and starts a gateway, which prints why requests fail.
    pub(super) fn open(
        &self,
        terminal: Arc<dyn Terminal>,
        responses: ErrorResponses,
    ) -> Result<RunningGateway, Failure> {
        self.directory.existing().for_each(child_kubeconfig::remove_abandoned);
        let upstream = self.upstream(terminal)?;
        let settings = GatewaySettings {
            read_only: self.read_only,
            impersonation: self.config.user().impersonate.is_empty(),
            names: ContextNames {
                context: self.config.context().unwrap_or_default().to_owned(),
                cluster: self.config.cluster_name().to_owned(),
                namespace: self.config.namespace().to_owned(),
            },
            expose_causes: responses == ErrorResponses::WithCause,
            failures: Some(upstream_failure::printer()),
            ..GatewaySettings::default()
        };
        let failed = |error: GatewayError| {
            let exit = if matches!(error, GatewayError::Listen(_)) { Exit::No } else { Exit::BadInput };
            Failure::Message { exit, text: error_chain(&error) }
        };
        let gateway = Gateway::open(upstream, &settings, &self.base).map_err(failed)?;
        gateway.start().map_err(|source| failed(GatewayError::Listen(source)))
    }

    fn key(&self) -> String {
        gateway::sharing_key(&self.config, self.read_only)
    }

    /// The client with the credential. A credential that may prompt the user is fetched before the command gets the
    /// terminal.
    fn upstream(&self, terminal: Arc<dyn Terminal>) -> Result<Transport, Failure> {
        let user = self.config.user();
        // A plugin prompts on standard input, a signer on the controlling terminal, whatever standard input is.
        let asks = match &user.auth_provider {
            Some(provider) if provider.name == external_signer::PROVIDER => {
                terminal.has_controlling_terminal()
            }
            provider => (provider.is_some() || user.exec.is_some()) && terminal.stdin_is_terminal(),
        };
        let runner = RepeatedStderrFilter::new(Arc::new(ProcessRunner::new(Arc::new(SystemClock))));
        let upstream = Client::builder(self.config.clone())
            .terminal(terminal)
            .runner(Arc::new(SessionRunner::new(Arc::new(runner))))
            // Bodies are forwarded unchanged: compression is negotiated between command and server.
            .compression(false)
            .build()
            .map_err(|error| connect::build_failure(&error))?;
        if asks {
            let asked = navicert_client::credential::block_on(
                upstream.prepare(navicert_client::credential::RequestOrigin::Foreground),
            );
            asked.map_err(|error: TransportError| Failure::Message {
                exit: Exit::No,
                text: error_chain(&error),
            })?;
        }
        Ok(upstream.into())
    }
}

/// Starts the process that removes the gateway's files if this process is killed. If that fails, the next gateway removes
/// them.
pub(super) fn spawn_guard(running: &RunningGateway, environment: &Environment) {
    let Ok(own) = std::env::current_exe() else { return };
    let guard = navicert_plugin::Command::new(own, environment.inherited.clone())
        .args(["gateway-guard".into(), running.kubeconfig().dir().as_os_str().to_owned()]);
    if let Ok(guard) = navicert_plugin::Policy::AllowAll.permit(guard) {
        let _ = foreground::spawn_detached(guard);
    }
}
