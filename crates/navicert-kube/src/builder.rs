//! Builds a `kube::Client` from a configuration: context, plugin policy and tower layers.

use std::fmt;
use std::path::Path;

use bytes::Bytes;
use http::{Request, Response};
use navicert_client::exec::PluginPolicy;
use navicert_client::kubeconfig::KubeconfigSources;
use navicert_client::{Client, Config, ConfigErrors, ConfigOptions};
use tower_layer::{Identity, Layer, Stack};
use tower_service::Service;

use crate::error::ClientError;
use crate::service::KubeService;

/// kube's default namespace where the configuration has none.
const DEFAULT_NAMESPACE: &str = "default";

/// Builds a `kube::Client` that sends its requests through navicert's transport.
///
/// Files are read by [`build`](ClientBuilder::build), after the context is chosen: a kubeconfig whose current context is
/// broken is usable with another context.
///
/// ```no_run
/// # fn example() -> Result<(), navicert_kube::ClientError> {
/// let client = navicert_kube::ClientBuilder::infer().context("prod").build()?;
/// # let _ = client; Ok(()) }
/// ```
///
/// `C` is where the configuration comes from, `L` the layers around the transport.
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ClientBuilder<C = ConfigOptions, L = Identity> {
    config: C,
    policy: Option<PluginPolicy>,
    layers: L,
}

impl ClientBuilder<ConfigOptions> {
    /// The files of `KUBECONFIG`, else `~/.kube/config`, else the pod's service account. Plugins run as the kuberc permits.
    pub fn infer() -> Self {
        ClientBuilder::new(Config::options().kuberc_policy(None))
    }

    /// One kubeconfig file, which must exist. Plugins run as the kuberc permits.
    pub fn from_kubeconfig(path: impl AsRef<Path>) -> Self {
        ClientBuilder::new(Config::options().kuberc_policy(None).kubeconfig(path))
    }

    /// The pod's service account.
    pub fn in_cluster() -> Self {
        ClientBuilder::new(Config::options().sources(KubeconfigSources::Nothing))
    }
}

impl<C: ResolveConfig> ClientBuilder<C> {
    /// A resolved [`Config`], or [`ConfigOptions`] that [`build`](ClientBuilder::build) resolves. Plugins run as their policy
    /// permits; by default every plugin may run.
    pub fn new(config: C) -> Self {
        ClientBuilder { config, policy: None, layers: Identity::new() }
    }
}

impl<L> ClientBuilder<ConfigOptions, L> {
    /// Selects a context instead of `current-context`.
    pub fn context(mut self, name: impl Into<String>) -> Self {
        self.config = self.config.context(name);
        self
    }
}

impl<C: ResolveConfig, L> ClientBuilder<C, L> {
    /// Sets which plugins and signers may run, instead of the configuration's policy.
    pub fn plugin_policy(mut self, policy: impl Into<PluginPolicy>) -> Self {
        self.policy = Some(policy.into());
        self
    }

    /// Adds a tower layer around the transport. A request passes the layer that was added last first, as with kube's own
    /// builder; a request that the transport retries after a 401 passes the layers once.
    pub fn layer<T>(self, layer: T) -> ClientBuilder<C, Stack<L, T>> {
        let layers = Stack::new(self.layers, layer);
        ClientBuilder { config: self.config, policy: self.policy, layers }
    }

    /// Resolves the configuration and builds the client. Runs no plugin and opens no connection.
    ///
    /// Call it inside a tokio runtime: `kube::Client` spawns a task.
    ///
    /// # Errors
    /// [`ClientError`]: no client can be built from the configuration.
    pub fn build<B>(self) -> Result<kube::Client, ClientError>
    where
        L: Layer<KubeService>,
        L::Service: Service<Request<kube::client::Body>, Response = Response<B>> + Send + 'static,
        <L::Service as Service<Request<kube::client::Body>>>::Future: Send + 'static,
        <L::Service as Service<Request<kube::client::Body>>>::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let mut builder = Client::builder(self.config.resolve(self.policy.as_ref())?);
        if let Some(policy) = self.policy {
            builder = builder.plugin_policy(policy);
        }
        let built = builder.build()?;
        let namespace = match built.namespace() {
            "" => DEFAULT_NAMESPACE.to_owned(),
            namespace => namespace.to_owned(),
        };
        Ok(kube::Client::new(self.layers.layer(KubeService::new(built.into())), namespace))
    }
}

/// Omits the layers, which need not implement `Debug`.
impl<C: fmt::Debug, L> fmt::Debug for ClientBuilder<C, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A boxed error, as tower defines it.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Where a [`ClientBuilder`] gets its configuration: a [`Config`], or [`ConfigOptions`] that are resolved when the client is
/// built. Not implemented by other types.
pub trait ResolveConfig: sealed::Sealed {
    /// The configuration, checked under this policy instead of its own.
    ///
    /// # Errors
    /// [`ConfigErrors`]: every problem that prevents building a client.
    fn resolve(self, policy: Option<&PluginPolicy>) -> Result<Config, ConfigErrors>;
}

impl ResolveConfig for Config {
    /// It has been checked: the client applies the policy when a program is to run.
    fn resolve(self, _: Option<&PluginPolicy>) -> Result<Config, ConfigErrors> {
        Ok(self)
    }
}

impl ResolveConfig for ConfigOptions {
    fn resolve(self, policy: Option<&PluginPolicy>) -> Result<Config, ConfigErrors> {
        match policy {
            Some(policy) => ConfigOptions::resolve(&self.plugin_policy(policy.clone())),
            None => ConfigOptions::resolve(&self),
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for navicert_client::Config {}
    impl Sealed for navicert_client::ConfigOptions {}
}
