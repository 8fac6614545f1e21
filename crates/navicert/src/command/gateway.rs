//! `navicert gateway`: a long-lived gateway that commands share; `run` uses the same code to start a private one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use navicert_client::exec::interactive::{ProcessTerminal, Terminal};
use navicert_client::exec::{self, Surroundings};
use navicert_client::kubeconfig::Effective;
use navicert_client::transport::{self, Transport, TransportError};
use navicert_plugin::foreground;
use navicert_server::gateway::child_kubeconfig::{self, ContextNames};
use navicert_server::gateway::{self, Gateway, GatewayError, GatewaySettings, RunningGateway};
use navicert_types::error_chain;
use serde_json::json;

use crate::args::run::{AccessArgs, GatewayArgs};
use crate::command::connect::policy;
use crate::command::kubeconfig::selected;
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
    let running = access.open(environment, terminal)?;
    let told = running.kubeconfig();
    told.announce(&access.key()).map_err(|error| {
        Failure::bad_input(format!("failed to publish the gateway for other commands: {error}"))
    })?;
    let path = told.path().display().to_string();
    if output.is_json() {
        let server = format!("https://{}", running.address());
        output.json(&json!({"kubeconfig": path, "server": server, "readOnly": access.read_only}))?;
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

/// The cluster and user a gateway gives access to, selected and validated.
pub(super) struct Access {
    effective: Effective,
    read_only: bool,
    base: PathBuf,
}

impl Access {
    /// Selects the cluster and user, and protects this process's memory from other processes.
    pub(super) fn select(
        args: &AccessArgs,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Self, Failure> {
        if let Err(error) = gateway::hide_memory() {
            output.warning(&format!(
                "failed to protect this process's memory from other processes of this user: {error}"
            ));
        }
        let mut effective = selected(&args.connection, environment, output)?;
        // Bodies are forwarded unchanged: compression is negotiated between command and server.
        effective.cluster.disable_compression = true;
        let runtime = environment.variable("XDG_RUNTIME_DIR").map(PathBuf::from);
        let temporary = environment.variable("TMPDIR").filter(|path| !path.is_empty());
        let temporary = temporary.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        let base =
            child_kubeconfig::private_base_directory(runtime.as_deref(), &temporary).map_err(|error| {
                Failure::bad_input(format!(
                    "failed to create a directory for the command's kubeconfig: {error}"
                ))
            })?;
        Ok(Access { effective, read_only: args.read_only, base })
    }

    /// The kubeconfig of a running gateway for the same cluster and user, if any.
    pub(super) fn join(&self) -> Option<PathBuf> {
        child_kubeconfig::find_announced(&self.base, &self.key())
    }

    /// Opens and starts a gateway.
    pub(super) fn open(
        &self,
        environment: &Environment,
        terminal: Arc<dyn Terminal>,
    ) -> Result<RunningGateway, Failure> {
        child_kubeconfig::remove_abandoned(&self.base);
        let upstream = self.upstream(environment, terminal)?;
        let settings = GatewaySettings {
            read_only: self.read_only,
            impersonation: self.effective.user.impersonate.is_empty(),
            names: ContextNames {
                context: self.effective.context.clone().unwrap_or_default(),
                cluster: self.effective.cluster_name.clone(),
                namespace: self.effective.namespace.clone(),
            },
            ..GatewaySettings::default()
        };
        let failed = |error: GatewayError| Failure::bad_input(error_chain(&error));
        let gateway = Gateway::open(upstream, &settings, &self.base).map_err(failed)?;
        gateway.start().map_err(|source| failed(GatewayError::Listen(source)))
    }

    fn key(&self) -> String {
        gateway::sharing_key(&self.effective, self.read_only)
    }

    /// The client with the credential. A credential that may prompt the user is fetched before the command gets the
    /// terminal.
    fn upstream(&self, environment: &Environment, terminal: Arc<dyn Terminal>) -> Result<Transport, Failure> {
        let asks = terminal.stdin_is_terminal()
            && (self.effective.user.exec.is_some() || self.effective.user.auth_provider.is_some());
        let around = Surroundings {
            terminal,
            policy: policy(None, environment),
            ..Surroundings::new(environment.inherited.clone())
        };
        let variables =
            transport::TransportEnvironment::read(|name| environment.variable(name)?.into_string().ok());
        let upstream =
            transport::connect(&self.effective, &exec::ExecSettings::default(), &around, &variables)
                .map_err(|error| Failure::bad_input(error_chain(&error)))?;
        if asks {
            let asked = navicert_client::credential::block_on(
                upstream.prepare(navicert_client::credential::RequestOrigin::Foreground),
            );
            asked.map_err(|error: TransportError| Failure::Message {
                exit: Exit::No,
                text: error_chain(&error),
            })?;
        }
        Ok(upstream)
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
