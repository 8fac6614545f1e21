//! From the command line and the environment to what calls an API server: shared by the verbs that do.

use std::path::Path;
use std::sync::Arc;

use navicert_client::exec::{PluginPolicy, Surroundings};
use navicert_client::in_cluster::PodEnvironment;
use navicert_client::kubeconfig::{Disk, Sources};
use navicert_client::{doctor, exec, kuberc, transport};

use crate::args::ConnectionArgs;
use crate::args::client::PluginArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::Failure;

/// Everything a walk or a request needs, as the command line and the environment say.
pub(crate) fn patient(
    connection: &ConnectionArgs,
    plugins: &PluginArgs,
    environment: &Environment,
) -> doctor::Patient {
    let lookup = |name: &str| environment.variable(name).and_then(|value| value.into_string().ok());
    let sources = Sources::locate(
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
        files: Arc::new(Disk),
        exec: exec::Settings::default(),
        around,
        transport: transport::Environment::read(lookup),
    }
}

/// The kuberc's policy; one that cannot be read permits nothing (C740).
pub(crate) fn policy(flag: Option<&Path>, environment: &Environment) -> PluginPolicy {
    let (variable, feature) = (environment.variable("KUBERC"), environment.variable("KUBECTL_KUBERC"));
    let wishes = kuberc::Wishes {
        flag,
        variable: variable.as_deref(),
        feature: feature.as_deref(),
        home: environment.home.as_deref(),
    };
    kuberc::Source::locate(wishes).and_then(|source| kuberc::load(&source, &Disk)).into()
}

/// Runs a future to its end: one thread is enough for one request.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        Failure::Sentence { exit: Exit::Bug, text: format!("cannot wait for the network: {error}") }
    })?;
    Ok(runtime.block_on(future))
}
