//! A plugin as configured in the kubeconfig, with the cluster information passed to it. Immutable: two contexts that share
//! a user never see each other's cluster.
// C166

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use navicert_types::exec_credential::{ExecCluster, ExecVersion};
use navicert_types::kubeconfig::{Cluster as KubeconfigCluster, InteractiveMode};
use navicert_types::tree::Node;
use navicert_types::{Secret, redact};

use super::error::ExecError;
use crate::kubeconfig::{Effective, FileSystem};

/// A plugin and its input.
#[derive(Clone, PartialEq)]
pub struct Plugin {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, Secret<String>)>,
    pub(super) version: ExecVersion,
    /// Escaped for a terminal.
    // C166
    pub(super) install_hint: String,
    pub(super) interactive_mode: InteractiveMode,
    /// The server URL.
    pub(super) server: String,
    /// The cluster entry's extension for exec plugins.
    pub(super) config: Node,
    /// Present only if `provideClusterInfo` is set.
    pub(super) cluster: Option<ExecCluster>,
}

impl Plugin {
    /// The plugin of the selected user; `None` if the user has none, or if the server is not https, where no credentials
    /// are sent.
    ///
    /// # Errors
    /// The version is not supported, or the CA file cannot be read.
    // C160, C201, C212
    pub(crate) fn from_effective(
        effective: &Effective,
        files: &dyn FileSystem,
    ) -> Result<Option<Self>, ExecError> {
        let Some(exec) = effective.user.exec.as_ref().filter(|_| effective.is_https()) else {
            return Ok(None);
        };
        let version = ExecVersion::from_api_version(&exec.api_version)
            .ok_or_else(|| ExecError::InvalidVersion(exec.api_version.clone()))?;
        let config = exec_extension(&effective.cluster);
        let has_cluster_info = exec.provide_cluster_info && version.has_cluster();
        let cluster = has_cluster_info.then(|| cluster_info(effective, &config, files)).transpose()?;
        Ok(Some(Plugin {
            command: exec.command.clone(),
            args: exec.args.clone(),
            env: exec.env.iter().map(|entry| (entry.name.clone(), entry.value.clone())).collect(),
            version,
            install_hint: redact::terminal(&exec.install_hint).into_owned(),
            interactive_mode: exec.interactive_mode.clone(),
            server: effective.server(),
            config,
            cluster,
        }))
    }

    /// The command as configured.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// The kubeconfig's install hint, escaped for a terminal; empty if absent.
    pub fn install_hint(&self) -> &str {
        &self.install_hint
    }

    /// The configured version of `ExecCredential`.
    pub fn version(&self) -> ExecVersion {
        self.version
    }

    /// The configured interactive mode.
    pub fn interactive_mode(&self) -> &InteractiveMode {
        &self.interactive_mode
    }

    /// The cluster information passed to the plugin, if any.
    pub fn cluster(&self) -> Option<&ExecCluster> {
        self.cluster.as_ref()
    }
}

/// Omits arguments, values of variables and the cluster's configuration, which may contain secrets.
// C195, C232
impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("command", &self.command)
            .field("args", &format_args!("{} not shown", self.args.len()))
            .field("env", &self.env.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("version", &self.version)
            .field("interactive_mode", &self.interactive_mode)
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}

/// The extension of exactly this name; the short name of an early draft is not used.
// C230, C231
fn exec_extension(cluster: &KubeconfigCluster) -> Node {
    let named = |extension: &&navicert_types::kubeconfig::NamedExtension| {
        extension.name == KubeconfigCluster::EXEC_EXTENSION
    };
    cluster.extensions.iter().find(named).map(|found| found.extension.clone()).unwrap_or_default()
}

/// The effective cluster after overrides, with the CA file read in.
// C212
fn cluster_info(
    effective: &Effective,
    config: &Node,
    files: &dyn FileSystem,
) -> Result<ExecCluster, ExecError> {
    let cluster = &effective.cluster;
    let from_file =
        cluster.certificate_authority_data.is_empty() && !cluster.certificate_authority.is_empty();
    let authority = if from_file {
        let path = &cluster.certificate_authority;
        files
            .read(Path::new(path))
            .map_err(|source| ExecError::Authority { path: path.clone(), source: Arc::new(source) })?
    } else {
        cluster.certificate_authority_data.clone()
    };
    Ok(ExecCluster {
        server: effective.server(),
        tls_server_name: cluster.tls_server_name.clone(),
        insecure_skip_tls_verify: cluster.insecure_skip_tls_verify,
        certificate_authority_data: authority,
        proxy_url: cluster.proxy_url.clone(),
        disable_compression: cluster.disable_compression,
        config: config.clone(),
    })
}
