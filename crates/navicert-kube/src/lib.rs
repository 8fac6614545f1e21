#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
//!
//! # Types
//!
//! ```text
//! kube::Client ──▶ (layers) ──▶ KubeService ──▶ navicert_client::Transport
//! (typed API)                   (bodies)        (credentials, rotation, 401)
//! ```
//!
//! [`ClientBuilder`] selects a kubeconfig, a context, a plugin policy and tower layers. Programs that keep kube's own
//! transport attach credentials with [`AuthLayer`].

mod auth_layer;
mod builder;
mod error;
mod service;

use navicert_client::transport::Transport;

pub use auth_layer::{AuthLayer, AuthService};
pub use builder::{ClientBuilder, ResolveConfig};
pub use error::{AuthLayerError, ClientError};
pub use service::KubeService;

pub use navicert_client::exec::PluginPolicy;
pub use navicert_client::{Config, ConfigErrors, ConfigOptions};

/// Creates a client that sends its requests through `transport`, with this default namespace.
///
/// Call it inside a tokio runtime: `kube::Client` spawns a task.
pub fn client(transport: impl Into<Transport>, default_namespace: impl Into<String>) -> kube::Client {
    kube::Client::new(KubeService::new(transport.into()), default_namespace)
}

/// Creates a client from `KUBECONFIG`, `~/.kube/config` or the pod's service account, with its namespace. Plugins run as
/// the kuberc permits. The one-line form of [`ClientBuilder::infer`].
///
/// Call it inside a tokio runtime: `kube::Client` spawns a task.
///
/// # Errors
/// [`ClientError`]: no client can be built from the configuration.
pub fn try_default() -> Result<kube::Client, ClientError> {
    ClientBuilder::infer().build()
}

/// Creates a client from a configuration, with its namespace; without one, `default`. The one-line form of
/// [`ClientBuilder::new`].
///
/// Call it inside a tokio runtime: `kube::Client` spawns a task.
///
/// # Errors
/// [`ClientError`]: a file that was usable when the configuration was resolved no longer is.
pub fn from_config(config: Config) -> Result<kube::Client, ClientError> {
    ClientBuilder::new(config).build()
}
