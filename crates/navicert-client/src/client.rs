//! A client of one API server, built from a [`Config`].

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{HeaderValue, Request, Response};
#[cfg(feature = "exec")]
use navicert_plugin::Runner;

use crate::config::{Config, CredentialPlan};
use crate::context::ClientContext;
use crate::credential::{BoxFuture, CredentialSource, RequestOrigin};
#[cfg(feature = "exec")]
use crate::exec::interactive::Terminal;
#[cfg(feature = "exec")]
use crate::exec::{AuthenticatorRegistry, ExecSettings, PluginPolicy};
use crate::metrics::Recorder;
use crate::transport::{
    Body, BuildError, ResponseBody, Timeouts, Timer, Transport, TransportError, TransportSettings,
};

/// Sends authenticated requests to one API server. Clones share connections and credentials.
///
/// A tower service. Calling it needs a tokio runtime; creating it does not.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use navicert_client::transport::Body;
/// use navicert_client::{Client, Config};
///
/// let client = Client::new(Config::infer()?)?;
/// let response = client.send(http::Request::get("/version").body(Body::empty())?).await?;
/// assert!(response.status().is_success());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    transport: Transport,
    namespace: Arc<str>,
}

impl Client {
    /// Builds a client with default settings. Runs no plugin and opens no connection.
    ///
    /// # Errors
    /// [`BuildError`]: a file that was usable when the configuration was resolved no longer is.
    pub fn new(config: Config) -> Result<Client, BuildError> {
        Client::builder(config).build()
    }

    /// Builds a client with other settings.
    pub fn builder(config: Config) -> ClientBuilder {
        let client_context = config.client_context();
        ClientBuilder {
            config,
            client_context,
            #[cfg(feature = "exec")]
            exec: ExecSettings::default(),
        }
    }

    /// The namespace of the configuration; empty if none is set.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Sends a request. The response body streams, so a watch works; pass a 101 response to `hyper::upgrade::on`.
    ///
    /// # Errors
    /// [`TransportError`]: no response was received. A 401 response is not an error.
    pub async fn send(&self, request: Request<Body>) -> Result<Response<ResponseBody>, TransportError> {
        self.transport.send(request).await
    }

    /// Gets the credential now rather than with the first request, so that an interactive plugin can use the terminal
    /// before the program does. Needs no async runtime.
    ///
    /// # Errors
    /// The credential source failed.
    pub async fn prepare(&self, origin: RequestOrigin) -> Result<(), TransportError> {
        self.transport.prepare(origin).await
    }

    /// The transport that sends the requests.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }
}

impl From<Client> for Transport {
    fn from(client: Client) -> Transport {
        client.transport
    }
}

impl tower_service::Service<Request<Body>> for Client {
    type Response = Response<ResponseBody>;
    type Error = TransportError;
    type Future = BoxFuture<'static, Result<Response<ResponseBody>, TransportError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.transport.call(request)
    }
}

/// Builds a [`Client`].
#[derive(Clone)]
pub struct ClientBuilder {
    config: Config,
    client_context: ClientContext,
    #[cfg(feature = "exec")]
    exec: ExecSettings,
}

impl ClientBuilder {
    /// Sets clock, timer, files, environment, runner, terminal, policy, recorder and registry at once.
    #[must_use]
    pub fn client_context(mut self, client_context: ClientContext) -> Self {
        self.client_context = client_context;
        self
    }

    /// Sets the recorder of metrics.
    #[must_use]
    pub fn metrics(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.client_context.recorder = recorder;
        self
    }

    /// Sets the timer.
    #[must_use]
    pub fn timer(mut self, timer: Arc<dyn Timer>) -> Self {
        self.client_context.timer = timer;
        self
    }

    /// Sets the timeouts for opening and keeping connections.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.config.transport.timeouts = timeouts;
        self
    }

    /// Sets whether to offer HTTP/2, unless the environment disables it.
    #[must_use]
    pub fn http2(mut self, offered: bool) -> Self {
        self.config.transport.http2 &= offered;
        self
    }

    /// Sets whether to request compressed responses, unless the configuration disables it.
    #[must_use]
    pub fn compression(mut self, requested: bool) -> Self {
        self.config.transport.compression &= requested;
        self
    }

    /// Sets the maximum number of idle connections.
    #[must_use]
    pub fn max_idle(mut self, connections: usize) -> Self {
        self.config.transport.max_idle = connections;
        self
    }

    /// Sets the `User-Agent` of requests that have none; `None` sends no such header.
    #[must_use]
    pub fn user_agent(mut self, value: Option<HeaderValue>) -> Self {
        self.config.transport.user_agent = value;
        self
    }

    /// Changes any setting of the transport.
    #[must_use]
    pub fn transport_settings(mut self, change: impl FnOnce(&mut TransportSettings)) -> Self {
        change(&mut self.config.transport);
        self
    }

    /// Sends no credential and impersonates no user.
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        self.config.credential = CredentialPlan::anonymous();
        self.config.transport.impersonation = None;
        self
    }

    /// The credential source alone, for programs with a transport of their own.
    pub fn credential_source(&self) -> Arc<dyn CredentialSource> {
        #[cfg(feature = "exec")]
        return self.config.credential.source(&self.exec, &self.client_context);
        #[cfg(not(feature = "exec"))]
        self.config.credential.source(&self.client_context)
    }

    /// Builds the client. Runs no plugin and opens no connection.
    ///
    /// # Errors
    /// [`BuildError`]: a file that was usable when the configuration was resolved no longer is, or a setting of this
    /// builder is invalid.
    pub fn build(self) -> Result<Client, BuildError> {
        let source = self.credential_source();
        let namespace = Arc::from(self.config.namespace());
        let transport = Transport::new(self.config.transport, source, self.client_context)?;
        Ok(Client { transport, namespace })
    }
}

/// What runs plugins and signers.
#[cfg(feature = "exec")]
impl ClientBuilder {
    /// Sets which plugins and signers may run, instead of the configuration's policy.
    #[must_use]
    pub fn plugin_policy(mut self, policy: impl Into<PluginPolicy>) -> Self {
        self.client_context.policy = policy.into();
        self
    }

    /// Sets how plugins are run and how long their credentials are used.
    #[must_use]
    pub fn exec_settings(mut self, settings: ExecSettings) -> Self {
        self.exec = settings;
        self
    }

    /// Sets the terminal that decides whether plugins may prompt.
    #[must_use]
    pub fn terminal(mut self, terminal: Arc<dyn Terminal>) -> Self {
        self.client_context.terminal = terminal;
        self
    }

    /// Sets what starts plugins.
    #[must_use]
    pub fn runner(mut self, runner: Arc<dyn Runner>) -> Self {
        self.client_context.runner = runner;
        self
    }

    /// Sets the registry through which clients share credentials.
    #[must_use]
    pub fn registry(mut self, registry: AuthenticatorRegistry) -> Self {
        self.client_context.registry = registry;
        self
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}
