//! Builds the layer: opens the configurations and starts their background tasks.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use navicert_authn::KubeVersion;
use navicert_authn::config::{AuthnLoadError, AuthnReloader, BaseProfile, ConfigOrigin, ConfigSources};
use navicert_authn::jwks::{Fetch, JwksContext};
use navicert_authn::metrics::AuthnRecorder;
use navicert_client::transport::{ProxyEnvironment, Timer, TokioTimer, Transport};
use navicert_server::fetch::HttpFetch;
use navicert_server::proxy::service_accounts::ServiceAccountReviews;
use navicert_server::token_review_client::TokenReviewClient;
use navicert_types::backoff::random_fraction;
use navicert_types::{Clock, SystemClock};
use thiserror::Error;

use crate::authenticate::{MissingToken, RequestAuthenticator, RunningAuthenticator};
use crate::layer::AuthnLayer;
use crate::service_accounts::ServiceAccounts;

/// How long a request waits for its decision, by default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a layer cannot be built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AuthnLayerError {
    /// Neither a configuration nor service accounts nor token reviews are set: every token would be rejected.
    #[error("missing configuration: set a configuration file, service accounts or token reviews")]
    NoSource,
    /// A file of the configuration cannot be read or is invalid.
    #[error("failed to load the authentication configuration `{}`", path.display())]
    Config {
        /// The `AuthenticationConfiguration`.
        path: PathBuf,
        /// The cause.
        source: AuthnLoadError,
    },
    /// The issuer or the audiences of the service accounts are invalid.
    #[error("invalid service account issuer `{issuer}` or audiences")]
    ServiceAccounts {
        /// The issuer.
        issuer: String,
        /// The cause.
        source: AuthnLoadError,
    },
    /// The layer is built outside of a tokio runtime, and cannot refresh keys.
    #[error("missing tokio runtime: build the layer inside of one")]
    NoRuntime,
}

/// Builds an [`AuthnLayer`].
///
/// ```no_run
/// use navicert_client::{Client, Config};
/// use navicert_tower::{AuthnLayer, MissingToken, ServiceAccounts};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::new(Config::infer()?)?;
/// let authn = AuthnLayer::builder()
///     .config("auth.yaml")
///     .service_accounts(ServiceAccounts::discover(client.clone(), ["my-service"]).await?)
///     .token_review(client)
///     .missing_token(MissingToken::Anonymous)
///     .build()?;
/// # let _ = authn; Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct AuthnLayerBuilder {
    config: Option<PathBuf>,
    navicert_config: Option<PathBuf>,
    profile: Option<BaseProfile>,
    kube_version: Option<KubeVersion>,
    audiences: Vec<String>,
    missing_token: MissingToken,
    timeout: Duration,
    service_accounts: Option<ServiceAccounts>,
    review: Option<Transport>,
    fetch: Option<Arc<dyn Fetch>>,
    clock: Arc<dyn Clock>,
    timer: Arc<dyn Timer>,
    recorder: Arc<dyn AuthnRecorder>,
}

/// Profile `hardened`, no source, the system's clock.
impl Default for AuthnLayerBuilder {
    fn default() -> Self {
        AuthnLayerBuilder {
            config: None,
            navicert_config: None,
            profile: None,
            kube_version: None,
            audiences: Vec::new(),
            missing_token: MissingToken::default(),
            timeout: DEFAULT_TIMEOUT,
            service_accounts: None,
            review: None,
            fetch: None,
            clock: Arc::new(SystemClock),
            timer: Arc::new(TokioTimer),
            recorder: Arc::new(()),
        }
    }
}

impl AuthnLayerBuilder {
    /// Sets the file with Kubernetes' `AuthenticationConfiguration`. Its `jwt` section is used; its `anonymous` section is for
    /// API servers, see [`missing_token`](AuthnLayerBuilder::missing_token).
    pub fn config(mut self, path: impl AsRef<Path>) -> Self {
        self.config = Some(path.as_ref().to_owned());
        self
    }

    /// Sets the file with the `NavicertConfiguration`: settings of issuers, hardening rules, the revocation list.
    pub fn navicert_config(mut self, path: impl AsRef<Path>) -> Self {
        self.navicert_config = Some(path.as_ref().to_owned());
        self
    }

    /// Sets the profile, unless the `NavicertConfiguration` names one.
    pub fn profile(mut self, profile: BaseProfile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Sets the Kubernetes version whose kube-apiserver to decide like [default: the newest stable one].
    pub fn kube_version(mut self, version: KubeVersion) -> Self {
        self.kube_version = Some(version);
        self
    }

    /// Requires that a token is for one of these audiences, in addition to what the configuration requires. Token reviews ask
    /// for them.
    pub fn audiences(mut self, audiences: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.audiences = audiences.into_iter().map(Into::into).collect();
        self
    }

    /// Sets what happens to a request without a bearer token.
    pub fn missing_token(mut self, policy: MissingToken) -> Self {
        self.missing_token = policy;
        self
    }

    /// Accepts tokens of the cluster's service accounts, verified with the cluster's keys.
    pub fn service_accounts(mut self, service_accounts: ServiceAccounts) -> Self {
        self.service_accounts = Some(service_accounts);
        self
    }

    /// Sends tokens that no other source knows to this API server for review (`TokenReview`): tokens of unknown issuers, and
    /// service account tokens while the cluster's keys are not available.
    ///
    /// The review asks for the layer's audiences, else for those of the service accounts, else for the API server's own. Every
    /// user that the API server authenticates is accepted. Answers are cached for seconds, concurrent reviews of one token are
    /// one, and the number of reviews in flight and of requests that wait for one is limited, so that a flood of invalid tokens
    /// does not reach the API server.
    pub fn token_review(mut self, client: impl Into<Transport>) -> Self {
        self.review = Some(client.into());
        self
    }

    /// Sets how long a request waits for its decision; then it is answered with 401. The default is ten seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets what fetches the documents of configured issuers. By default, navicert's HTTP client with the proxy variables of
    /// this process.
    pub fn fetch(mut self, fetch: Arc<dyn Fetch>) -> Self {
        self.fetch = Some(fetch);
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the timer of the background tasks.
    pub fn timer(mut self, timer: Arc<dyn Timer>) -> Self {
        self.timer = timer;
        self
    }

    /// Sets what records metrics.
    pub fn recorder(mut self, recorder: Arc<dyn AuthnRecorder>) -> Self {
        self.recorder = recorder;
        self
    }

    /// Loads the configuration and starts to refresh keys. Issuers may be unreachable: their tokens are rejected until they
    /// are not.
    ///
    /// Call it inside a tokio runtime.
    ///
    /// # Errors
    /// [`AuthnLayerError`]: a configuration is missing or invalid, or there is no runtime.
    pub fn build(self) -> Result<AuthnLayer, AuthnLayerError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(AuthnLayerError::NoRuntime);
        }
        if self.config.is_none() && self.service_accounts.is_none() && self.review.is_none() {
            return Err(AuthnLayerError::NoSource);
        }
        Ok(AuthnLayer::new(RequestAuthenticator {
            configured: self.configured()?,
            cluster: self.cluster()?,
            reviews: self.reviews(),
            audiences: self.audiences,
            missing_token: self.missing_token,
            timeout: self.timeout,
        }))
    }

    fn configured(&self) -> Result<Option<RunningAuthenticator>, AuthnLayerError> {
        let Some(path) = &self.config else { return Ok(None) };
        let sources = ConfigSources {
            config: ConfigOrigin::File(path.clone()),
            navicert_config: self.navicert_config.clone(),
            profile: self.profile,
            kube_version: self.kube_version,
        };
        let fetch = self.fetch.clone().unwrap_or_else(|| Arc::new(HttpFetch::new(process_proxies())));
        let opened = AuthnReloader::open(sources, self.jwks_context(fetch))
            .map_err(|source| AuthnLayerError::Config { path: path.clone(), source })?;
        Ok(Some(RunningAuthenticator::start(opened, Arc::clone(&self.timer))))
    }

    fn cluster(&self) -> Result<Option<RunningAuthenticator>, AuthnLayerError> {
        let Some(accounts) = &self.service_accounts else { return Ok(None) };
        let config = accounts.config_origin();
        let sources = ConfigSources {
            config,
            navicert_config: None,
            profile: self.profile,
            kube_version: self.kube_version,
        };
        let fetch = Arc::new(accounts.fetch(Arc::clone(&self.timer)));
        let opened = AuthnReloader::open(sources, self.jwks_context(fetch)).map_err(|source| {
            AuthnLayerError::ServiceAccounts { issuer: accounts.issuer().to_owned(), source }
        })?;
        Ok(Some(RunningAuthenticator::start(opened, Arc::clone(&self.timer))))
    }

    fn reviews(&self) -> Option<ServiceAccountReviews> {
        let transport = self.review.clone()?;
        let of_accounts = || self.service_accounts.as_ref().map(|accounts| accounts.audiences().to_vec());
        let required = Some(self.audiences.clone()).filter(|own| !own.is_empty()).or_else(of_accounts);
        let timer = Arc::clone(&self.timer);
        let client = TokenReviewClient::for_api_server(transport, Vec::new(), Arc::clone(&timer))
            .with_required_audiences(required.unwrap_or_default());
        Some(ServiceAccountReviews::new(Arc::new(client), Arc::clone(&self.clock), timer))
    }

    fn jwks_context(&self, fetch: Arc<dyn Fetch>) -> JwksContext {
        JwksContext {
            fetch,
            clock: Arc::clone(&self.clock),
            random: Arc::new(random_fraction),
            recorder: Arc::clone(&self.recorder),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the default of the builder; programs can pass another fetcher"
)]
fn process_proxies() -> ProxyEnvironment {
    ProxyEnvironment::read(|name| std::env::var(name).ok())
}

impl fmt::Debug for AuthnLayerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthnLayerBuilder")
            .field("config", &self.config)
            .field("profile", &self.profile)
            .field("kube_version", &self.kube_version)
            .field("audiences", &self.audiences)
            .field("missing_token", &self.missing_token)
            .field("service_accounts", &self.service_accounts)
            .finish_non_exhaustive()
    }
}
