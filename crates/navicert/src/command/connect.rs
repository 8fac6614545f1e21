//! Builds API server clients from the command line and the environment, for all verbs that need one.

use std::path::Path;
use std::sync::Arc;

use navicert_client::exec::{PluginPolicy, Surroundings};
use navicert_client::in_cluster::PodEnvironment;
use navicert_client::kubeconfig::{KubeconfigSources, OsFileSystem};
use navicert_client::{doctor, exec, kuberc, transport};

use crate::args::ConnectionArgs;
use crate::args::client::PluginArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::Failure;

/// Collects what a diagnosis or a request needs from the command line and the environment.
pub(crate) fn patient(
    connection: &ConnectionArgs,
    plugins: &PluginArgs,
    environment: &Environment,
) -> doctor::Patient {
    let lookup = |name: &str| environment.variable(name).and_then(|value| value.into_string().ok());
    let sources = KubeconfigSources::locate(
        connection.kubeconfig.as_deref(),
        environment.kubeconfig.as_deref(),
        environment.home.as_deref(),
    );
    let around = Surroundings {
        policy: policy(plugins.kuberc.as_deref(), environment),
        ..Surroundings::new(environment.inherited.clone())
    };
    doctor::Patient {
        sources,
        overrides: connection.overrides(&environment.current_dir),
        current_dir: environment.current_dir.clone(),
        pod: PodEnvironment {
            host: lookup("KUBERNETES_SERVICE_HOST").unwrap_or_default(),
            port: lookup("KUBERNETES_SERVICE_PORT").unwrap_or_default(),
            namespace: lookup("POD_NAMESPACE").unwrap_or_default(),
        },
        files: Arc::new(OsFileSystem),
        exec: exec::ExecSettings::default(),
        around,
        transport: transport::TransportEnvironment::read(lookup),
    }
}

/// The kuberc's plugin policy; an unreadable kuberc denies every plugin.
// C740
pub(crate) fn policy(flag: Option<&Path>, environment: &Environment) -> PluginPolicy {
    let (variable, feature) = (environment.variable("KUBERC"), environment.variable("KUBECTL_KUBERC"));
    let wishes = kuberc::KubercLocation {
        flag,
        variable: variable.as_deref(),
        feature: feature.as_deref(),
        home: environment.home.as_deref(),
    };
    kuberc::KubercSource::locate(wishes).and_then(|source| kuberc::load(&source, &OsFileSystem)).into()
}

/// Runs a future to completion on a single-threaded runtime.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        Failure::Message { exit: Exit::Bug, text: format!("failed to start the async runtime: {error}") }
    })?;
    Ok(runtime.block_on(future))
}
