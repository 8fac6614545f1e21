//! The front type of the crate: loads a configuration and authenticates tokens with it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use navicert_types::backoff::random_fraction;
use navicert_types::{Clock, SystemClock};
use thiserror::Error;

use crate::config::{AuthnLoadError, AuthnReloader, BaseProfile, ConfigOrigin, ConfigSources};
use crate::decision::AuthnDecision;
use crate::jwks::{
    BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, FetchStage, IssuerHealth, JwksContext,
};
use crate::metrics::AuthnRecorder;
use crate::model::outcome::AuthnOutcome;
use crate::profile::KubeVersion;

/// Authenticates bearer tokens as an `AuthenticationConfiguration` says. Clones share keys and cached decisions.
///
/// ```no_run
/// # use navicert_authn::jwks::Fetch;
/// # async fn example(http: impl Fetch + 'static, token: &str) -> Result<(), Box<dyn std::error::Error>> {
/// use navicert_authn::{Authenticator, AuthnOutcome};
///
/// let authenticator = Authenticator::from_file("auth.yaml", http)?;
/// if let AuthnOutcome::Authenticated(user) = authenticator.authenticate(token).await {
///     println!("{} in {:?}", user.username(), user.groups());
/// }
/// # Ok(()) }
/// ```
///
/// It runs no task. Keys are fetched when a token needs them: an issuer's first token waits for its discovery document and
/// key set, and a token with an unknown key waits for the new set. Servers that fetch ahead of requests and follow changes of
/// the files drive [`Authenticator::reloader`]; `navicert-server` does so.
#[derive(Clone, Debug)]
pub struct Authenticator {
    reloader: Arc<AuthnReloader>,
}

/// Why an [`Authenticator`] cannot be built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AuthenticatorError {
    /// Neither a file nor a text is set.
    #[error("missing authentication configuration: set a file or a text")]
    NoConfig,
    /// A file of the configuration cannot be read or is invalid.
    #[error("failed to load the authentication configuration")]
    Load(#[from] AuthnLoadError),
}

impl Authenticator {
    /// Loads Kubernetes' `AuthenticationConfiguration` with profile `hardened`. `fetch` is your HTTP client: it gets the
    /// issuers' discovery documents and key sets.
    ///
    /// # Errors
    /// [`AuthenticatorError::Load`]: the file cannot be read or is invalid. The source has every problem.
    pub fn from_file(
        path: impl AsRef<Path>,
        fetch: impl Fetch + 'static,
    ) -> Result<Self, AuthenticatorError> {
        Authenticator::builder().config(path).fetch(Arc::new(fetch)).build()
    }

    /// Sets profile, issuer settings, clock and metrics as well.
    pub fn builder() -> AuthenticatorBuilder {
        AuthenticatorBuilder::default()
    }

    /// Authenticates a token. The outcome is a user, a rejection, or no opinion on a token of no configured issuer.
    pub async fn authenticate(&self, token: &str) -> AuthnOutcome {
        self.reloader.authenticator().authenticate(token).await
    }

    /// Authenticates a token; the decision also has the issuer, the audiences and the expiry as they were verified.
    pub async fn decide(&self, token: &str) -> AuthnDecision {
        self.reloader.authenticator().decide(token).await
    }

    /// The health of every issuer, by its URL.
    pub fn health(&self) -> Vec<(String, IssuerHealth)> {
        self.reloader.authenticator().health()
    }

    /// What a server drives in the background: reloads of the files and refreshes of the keys.
    pub fn reloader(&self) -> &Arc<AuthnReloader> {
        &self.reloader
    }
}

/// Builds an [`Authenticator`].
///
/// ```
/// use navicert_authn::Authenticator;
/// use navicert_authn::config::BaseProfile;
///
/// let text = "
/// apiVersion: apiserver.config.k8s.io/v1
/// kind: AuthenticationConfiguration
/// jwt:
/// - issuer: {url: 'https://login.example.com', audiences: [my-service]}
///   claimMappings: {username: {claim: sub, prefix: ''}}
/// ";
/// let authenticator = Authenticator::builder().config_text(text).profile(BaseProfile::Kube).build()?;
/// assert_eq!(authenticator.health()[0].0, "https://login.example.com");
/// # Ok::<(), navicert_authn::AuthenticatorError>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct AuthenticatorBuilder {
    config: Option<ConfigOrigin>,
    navicert_config: Option<PathBuf>,
    profile: Option<BaseProfile>,
    kube_version: Option<KubeVersion>,
    fetch: Arc<dyn Fetch>,
    clock: Arc<dyn Clock>,
    recorder: Arc<dyn AuthnRecorder>,
}

/// Profile `hardened`, the newest stable Kubernetes version, keys from files alone, the system's clock.
impl Default for AuthenticatorBuilder {
    fn default() -> Self {
        AuthenticatorBuilder {
            config: None,
            navicert_config: None,
            profile: None,
            kube_version: None,
            fetch: Arc::new(NoFetch),
            clock: Arc::new(SystemClock),
            recorder: Arc::new(()),
        }
    }
}

impl AuthenticatorBuilder {
    /// Sets the file with Kubernetes' `AuthenticationConfiguration`.
    pub fn config(mut self, path: impl AsRef<Path>) -> Self {
        self.config = Some(ConfigOrigin::File(path.as_ref().to_owned()));
        self
    }

    /// Sets the `AuthenticationConfiguration` itself, in place of a file.
    pub fn config_text(mut self, text: impl Into<String>) -> Self {
        self.config = Some(ConfigOrigin::Text { text: text.into(), issuers: Vec::new() });
        self
    }

    /// Sets the file with the `NavicertConfiguration`: key files and other settings of issuers, hardening rules, the
    /// revocation list.
    pub fn navicert_config(mut self, path: impl AsRef<Path>) -> Self {
        self.navicert_config = Some(path.as_ref().to_owned());
        self
    }

    /// Sets the profile, unless the `NavicertConfiguration` names one.
    pub fn profile(mut self, profile: BaseProfile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Sets the Kubernetes version whose kube-apiserver to decide like [default: the newest stable one]. Takes precedence over the
    /// `NavicertConfiguration`.
    pub fn kube_version(mut self, version: KubeVersion) -> Self {
        self.kube_version = Some(version);
        self
    }

    /// Sets the HTTP client. Without one, keys come from the files that the `NavicertConfiguration` names (`jwksFile`), and
    /// tokens of every other issuer are rejected.
    pub fn fetch(mut self, fetch: Arc<dyn Fetch>) -> Self {
        self.fetch = fetch;
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets what records metrics.
    pub fn recorder(mut self, recorder: Arc<dyn AuthnRecorder>) -> Self {
        self.recorder = recorder;
        self
    }

    /// Loads the configuration. Sends no request: issuers may be offline.
    ///
    /// # Errors
    /// [`AuthenticatorError`].
    pub fn build(self) -> Result<Authenticator, AuthenticatorError> {
        let config = self.config.ok_or(AuthenticatorError::NoConfig)?;
        let sources = ConfigSources {
            config,
            navicert_config: self.navicert_config,
            profile: self.profile,
            kube_version: self.kube_version,
        };
        let context = JwksContext {
            fetch: self.fetch,
            clock: self.clock,
            random: Arc::new(random_fraction),
            recorder: self.recorder,
        };
        Ok(Authenticator { reloader: Arc::new(AuthnReloader::open(sources, context)?) })
    }
}

impl fmt::Debug for AuthenticatorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthenticatorBuilder")
            .field("config", &self.config)
            .field("navicert_config", &self.navicert_config)
            .field("profile", &self.profile)
            .field("kube_version", &self.kube_version)
            .finish_non_exhaustive()
    }
}

/// Fails every request.
#[derive(Debug)]
struct NoFetch;

impl Fetch for NoFetch {
    fn get<'f>(&'f self, request: FetchRequest<'f>) -> BoxFuture<'f, Result<FetchResponse, FetchError>> {
        let what = format!("no HTTP client is configured to fetch `{}`", request.url);
        Box::pin(std::future::ready(Err(FetchError::new(FetchStage::Connect, what))))
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use navicert_testkit::pki::jws::{Algorithm, SigningKey};
    use navicert_types::clock::ManualClock;
    use serde_json::json;

    use super::*;
    use crate::jwks::ScriptedFetch;

    const ISSUER: &str = "https://login.example.com";
    const NOW: i64 = 1_700_000_000;

    fn config() -> String {
        json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{
                "issuer": {"url": ISSUER, "audiences": ["my-service"]},
                "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
            }],
        })
        .to_string()
    }

    fn token(key: &SigningKey) -> String {
        key.token(&json!({"iss": ISSUER, "aud": "my-service", "sub": "ann", "exp": NOW + 300}))
    }

    #[tokio::test]
    async fn first_token_fetches_the_keys_and_is_accepted() {
        let key = SigningKey::generate(Algorithm::Es256, "k");
        let fetch = Arc::new(ScriptedFetch::default());
        let keys = format!("{ISSUER}/keys");
        let document = json!({"issuer": ISSUER, "jwks_uri": keys}).to_string();
        fetch.answer(&format!("{ISSUER}/.well-known/openid-configuration"), 200, &document);
        fetch.answer(&keys, 200, &json!({"keys": [key.jwk()]}).to_string());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.yaml");
        std::fs::write(&path, config()).unwrap();
        let builder = Authenticator::builder().config(&path).fetch(Arc::clone(&fetch) as Arc<dyn Fetch>);
        let authenticator = builder.clock(Arc::new(ManualClock::at(NOW))).build().unwrap();
        assert_eq!(fetch.requests().len(), 0, "building sends no request");
        for _ in 0..2 {
            let decision = authenticator.decide(&token(&key)).await;
            let AuthnOutcome::Authenticated(user) = &decision.outcome else { panic!("{decision:?}") };
            assert_eq!((user.username(), decision.issuer()), ("ann", Some(ISSUER)));
        }
        assert_eq!(fetch.count(&keys), 1, "the keys are kept");
        let outcome = authenticator.authenticate("not a token").await;
        assert!(matches!(outcome, AuthnOutcome::NoOpinion(_)), "{outcome:?}");
    }

    #[tokio::test]
    async fn rejects_tokens_without_an_http_client() {
        let key = SigningKey::generate(Algorithm::Es256, "k");
        let builder = Authenticator::builder().config_text(config());
        let authenticator = builder.clock(Arc::new(ManualClock::at(NOW))).build().unwrap();
        let outcome = authenticator.authenticate(&token(&key)).await;
        assert!(matches!(outcome, AuthnOutcome::Rejected(_)), "{outcome:?}");
        let error = authenticator.health()[0].1.last_error.clone().unwrap();
        assert!(error.contains("no HTTP client is configured"), "{error}");
    }

    #[test]
    fn errors_say_what_is_missing() {
        assert!(matches!(Authenticator::builder().build(), Err(AuthenticatorError::NoConfig)));
        let missing = Authenticator::from_file("/no/such/file", NoFetch).unwrap_err();
        let source = missing.source().unwrap().to_string();
        assert!(source.contains("failed to read `/no/such/file`"), "{source}");
    }
}
