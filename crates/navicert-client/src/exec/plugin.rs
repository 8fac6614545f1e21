//! A plugin as the kubeconfig configures it, with everything about the cluster that it may be told. An immutable value:
//! two contexts that share a user never see each other's cluster (C166).

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use navicert_types::exec_credential::{Cluster, Version};
use navicert_types::kubeconfig::Cluster as KubeconfigCluster;
use navicert_types::tree::Node;
use navicert_types::{Secret, redact};

use super::error::ExecError;
use crate::kubeconfig::{Effective, Files};

/// A plugin and what it is told.
#[derive(Clone, PartialEq)]
pub struct Plugin {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, Secret<String>)>,
    pub(super) version: Version,
    /// Cleaned for a terminal (C166).
    pub(super) install_hint: String,
    pub(super) interactive_mode: String,
    /// The address requests go to.
    pub(super) server: String,
    /// What the cluster's entry says for plugins.
    pub(super) config: Node,
    /// Only if the user asked for it to be told.
    pub(super) cluster: Option<Cluster>,
}

impl Plugin {
    /// The plugin of the selected user; `None` if there is none, or if the server is not reached over https, where no
    /// credential is used at all (C160).
    ///
    /// # Errors
    /// The version is not known (C201), or the authority's file cannot be read (C212).
    pub fn of(effective: &Effective, files: &dyn Files) -> Result<Option<Self>, ExecError> {
        let Some(exec) = effective.user.exec.as_ref().filter(|_| effective.is_https()) else {
            return Ok(None);
        };
        let version = Version::of(&exec.api_version)
            .ok_or_else(|| ExecError::InvalidVersion(exec.api_version.clone()))?;
        let config = exec_extension(&effective.cluster);
        let told = exec.provide_cluster_info && version.has_cluster();
        let cluster = told.then(|| cluster_info(effective, &config, files)).transpose()?;
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

    /// How to get it, as the kubeconfig says; cleaned for a terminal, empty if it says nothing.
    pub fn install_hint(&self) -> &str {
        &self.install_hint
    }

    /// The version of `ExecCredential` it speaks.
    pub fn version(&self) -> Version {
        self.version
    }

    /// What it will be told about the cluster, if anything.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }
}

/// Arguments, values of variables and the cluster's configuration may hold secrets (C195, C232).
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

/// Only the extension of exactly this name (C230); the short name of an early draft is somebody else's (C231).
fn exec_extension(cluster: &KubeconfigCluster) -> Node {
    let named = |extension: &&navicert_types::kubeconfig::NamedExtension| {
        extension.name == KubeconfigCluster::EXEC_EXTENSION
    };
    cluster.extensions.iter().find(named).map(|found| found.extension.clone()).unwrap_or_default()
}

/// The cluster as it is really reached: after overrides, the authority's file read in (C212).
fn cluster_info(effective: &Effective, config: &Node, files: &dyn Files) -> Result<Cluster, ExecError> {
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
    Ok(Cluster {
        server: effective.server(),
        tls_server_name: cluster.tls_server_name.clone(),
        insecure_skip_tls_verify: cluster.insecure_skip_tls_verify,
        certificate_authority_data: authority,
        proxy_url: cluster.proxy_url.clone(),
        disable_compression: cluster.disable_compression,
        config: config.clone(),
    })
}
