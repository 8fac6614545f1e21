//! `navicert gateway`: a gateway that stays, for commands that share it; and what `run` needs to open its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use navicert_client::exec::interactive::{ProcessTerminal, Terminal};
use navicert_client::exec::{self, Surroundings};
use navicert_client::kubeconfig::Effective;
use navicert_client::transport::{self, Transport, TransportError};
use navicert_plugin::foreground;
use navicert_server::gateway::child_kubeconfig::{self, Names};
use navicert_server::gateway::{self, Gateway, GatewayError, Running, Settings};
use serde_json::json;

use crate::args::run::{AccessArgs, GatewayArgs};
use crate::command::connect::policy;
use crate::command::kubeconfig::selected;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output, with_sources};

/// Opens a gateway that others may join, says where it is, and serves until told to end.
pub(crate) fn run(
    args: &GatewayArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    // Before anybody is told where it is: whoever knows may end it.
    let ends = foreground::Ends::catch()
        .map_err(|error| Failure::bad_input(format!("cannot wait for a signal: {error}")))?;
    let access = Access::select(&args.access, environment, output)?;
    let terminal = Arc::new(ProcessTerminal);
    let running = access.open(environment, terminal)?;
    let told = running.kubeconfig();
    told.announce(&access.key())
        .map_err(|error| Failure::bad_input(format!("cannot announce the gateway: {error}")))?;
    let path = told.path().display().to_string();
    if output.is_json() {
        let server = format!("https://{}", running.address());
        output.json(&json!({"kubeconfig": path, "server": server, "readOnly": access.read_only}))?;
    } else {
        output.text(&format!("{path}\n"))?;
    }
    leave_guard(&running, environment);
    ends.wait();
    Ok(Exit::Done)
}

/// `navicert gateway-guard`: waits for the end of a gateway and cleans up after it.
pub(crate) fn guard(folder: &Path) -> Result<Exit, Failure> {
    child_kubeconfig::remove_when_abandoned(folder)
        .map_err(|error| Failure::bad_input(format!("`{}`: {error}", folder.display())))?;
    Ok(Exit::Done)
}

/// What a gateway gives access to, selected and judged.
pub(super) struct Access {
    effective: Effective,
    read_only: bool,
    base: PathBuf,
}

impl Access {
    /// From here on, nobody else reads what this process knows.
    pub(super) fn select(
        args: &AccessArgs,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Self, Failure> {
        if let Err(error) = gateway::hide_memory() {
            output.warning(&format!("other programs of yours may read this one's memory: {error}"));
        }
        let mut effective = selected(&args.connection, environment, output)?;
        // Bodies are passed on as they come: compressing is between the command and the server.
        effective.cluster.disable_compression = true;
        let runtime = environment.variable("XDG_RUNTIME_DIR").map(PathBuf::from);
        let temporary = environment.variable("TMPDIR").filter(|path| !path.is_empty());
        let temporary = temporary.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        let base = child_kubeconfig::base(runtime.as_deref(), &temporary)
            .map_err(|error| Failure::bad_input(format!("no place for the command's kubeconfig: {error}")))?;
        Ok(Access { effective, read_only: args.read_only, base })
    }

    /// The kubeconfig of a running gateway for the same, if there is one.
    pub(super) fn join(&self) -> Option<PathBuf> {
        child_kubeconfig::find(&self.base, &self.key())
    }

    /// Opens and starts a gateway.
    pub(super) fn open(
        &self,
        environment: &Environment,
        terminal: Arc<dyn Terminal>,
    ) -> Result<Running, Failure> {
        child_kubeconfig::sweep(&self.base);
        let upstream = self.upstream(environment, terminal)?;
        let settings = Settings {
            read_only: self.read_only,
            impersonation: self.effective.user.impersonate.is_empty(),
            names: Names {
                context: self.effective.context.clone().unwrap_or_default(),
                cluster: self.effective.cluster_name.clone(),
                namespace: self.effective.namespace.clone(),
            },
            ..Settings::default()
        };
        let failed = |error: GatewayError| Failure::bad_input(with_sources(&error));
        let gateway = Gateway::open(upstream, &settings, &self.base).map_err(failed)?;
        gateway.start().map_err(|source| failed(GatewayError::Listen(source)))
    }

    fn key(&self) -> String {
        gateway::key(&self.effective, self.read_only)
    }

    /// The transport with the credential. One that may have to ask the user is got before the command has the terminal.
    fn upstream(&self, environment: &Environment, terminal: Arc<dyn Terminal>) -> Result<Transport, Failure> {
        let asks = terminal.stdin_is_terminal()
            && (self.effective.user.exec.is_some() || self.effective.user.auth_provider.is_some());
        let around = Surroundings {
            terminal,
            policy: policy(None, environment),
            ..Surroundings::new(environment.inherited.clone())
        };
        let variables = transport::Environment::read(|name| environment.variable(name)?.into_string().ok());
        let upstream = transport::connect(&self.effective, &exec::Settings::default(), &around, &variables)
            .map_err(|error| Failure::bad_input(with_sources(&error)))?;
        if asks {
            let asked = navicert_client::credential::block_on(
                upstream.prepare(navicert_client::credential::Asking::Foreground),
            );
            asked.map_err(|error: TransportError| Failure::Sentence {
                exit: Exit::No,
                text: with_sources(&error),
            })?;
        }
        Ok(upstream)
    }
}

/// Starts what cleans up after us should we be killed. Without it the next gateway does.
pub(super) fn leave_guard(running: &Running, environment: &Environment) {
    let Ok(own) = std::env::current_exe() else { return };
    let guard = navicert_plugin::Command::new(own, environment.inherited.clone())
        .args(["gateway-guard".into(), running.kubeconfig().folder().as_os_str().to_owned()]);
    if let Ok(guard) = navicert_plugin::Policy::AllowAll.permit(guard) {
        let _ = foreground::leave_behind(guard);
    }
}
