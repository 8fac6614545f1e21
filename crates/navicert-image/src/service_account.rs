//! Service-account mode: reads service accounts, requests tokens for plugins and caches both.
// I109–I118

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use navicert_types::backoff::random_fraction;
use navicert_types::{Clock, Secret, Timestamp};
use thiserror::Error;

use crate::cache_key::ServiceAccountIdentity;
use crate::config::TokenSettings;

/// A token is refreshed when less than this fraction of its lifetime remains.
// I115
const MIN_REMAINING_FRACTION: f64 = 0.2;
/// A token older than this is refreshed regardless of its lifetime.
// I115
const MAX_TOKEN_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Tokens are refreshed up to this much earlier, at random.
// I115
const MAX_REFRESH_JITTER: Duration = Duration::from_secs(10);
/// Maximum number of cached tokens, and of cached accounts.
const MAX_ENTRIES: usize = 10_000;

/// Access to service accounts on the API server. The binary implements it with the client crate.
pub trait ServiceAccounts: fmt::Debug + Send + Sync {
    /// Reads a service account.
    ///
    /// # Errors
    /// A message: not found, unreachable, forbidden.
    fn account(&self, namespace: &str, name: &str) -> Result<ServiceAccount, String>;

    /// Requests a token bound to a pod, without `expirationSeconds`.
    ///
    /// # Errors
    /// A message.
    // I114
    fn token(&self, request: &TokenRequest) -> Result<ServiceAccountToken, String>;
}

/// A service account as read from the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceAccount {
    /// Its UID.
    pub uid: String,
    /// All its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// A request for a service account token.
// I114
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenRequest {
    /// The service account; its UID is a precondition.
    pub account: ServiceAccountIdentity,
    /// The audience.
    pub audience: String,
    /// The pod it is bound to: name and UID.
    pub pod: (String, String),
}

/// A token with its lifetime.
#[derive(Clone, Debug)]
pub struct ServiceAccountToken {
    /// The token.
    pub token: Secret<String>,
    /// When it was issued.
    pub issued: Timestamp,
    /// When it expires.
    pub expires: Timestamp,
}

/// A pod that pulls an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// `spec.serviceAccountName`; empty for static pods.
    pub service_account_name: String,
}

/// The identity on whose behalf an image is pulled.
#[derive(Clone, Debug, Default)]
pub enum PullIdentity {
    /// No pod, for example a user's tool.
    // I237
    #[default]
    None,
    /// A pod.
    Pod(PodRef),
    /// A caller that provides the token and annotations itself: a debugging tool, or a kubelet that has requested them.
    // I237
    Bearer {
        /// The token; may be empty.
        token: Secret<String>,
        /// The annotations.
        annotations: BTreeMap<String, String>,
    },
}

/// Why a provider has no token.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceAccountError {
    /// The service account could not be read.
    // I112
    #[error("failed to get service account: {0}")]
    Account(String),
    /// No token was issued. The message names the missing permission, if that is the cause.
    // I114
    // I243
    #[error("failed to get service account token: {message}{}", missing_grant_hint(.message, .audience))]
    Token {
        /// The API server's message.
        message: String,
        /// The requested audience.
        audience: String,
    },
    /// The request is for a pod, but no API server is configured.
    #[error("failed to get service account: no API server is configured")]
    NoApiServer,
}

/// A hint for the most common cause: the missing audience permission.
// I116, I243
fn missing_grant_hint(message: &str, audience: &str) -> String {
    if !message.contains("is not authorized to request tokens for audience") {
        return String::new();
    }
    format!(
        "; grant it with a ClusterRole: rules: [{{apiGroups: [\"\"], resources: [\"{audience}\"], \
         verbs: [\"request-serviceaccounts-token-audience\"]}}], bound to the group system:nodes"
    )
}

/// Why a provider in service-account mode is skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skipped {
    /// The provider requires a service account, but the pull has none.
    // I111
    NoServiceAccount,
    /// The service account lacks a required annotation.
    // I113
    MissingAnnotation(String),
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Skipped::NoServiceAccount => f.write_str("requires a service account, but the pull has none"),
            Skipped::MissingAnnotation(key) => {
                write!(f, "service account is missing the required annotation `{key}`")
            }
        }
    }
}

/// Selects the annotations a provider requests: all required ones, and the optional ones that exist.
// I113
pub(crate) fn select_annotations(
    settings: &TokenSettings,
    annotations: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Skipped> {
    let mut selected = BTreeMap::new();
    for key in &settings.required_annotations {
        let value = annotations.get(key).ok_or_else(|| Skipped::MissingAnnotation(key.clone()))?;
        selected.insert(key.clone(), value.clone());
    }
    for key in &settings.optional_annotations {
        if let Some(value) = annotations.get(key) {
            selected.insert(key.clone(), value.clone());
        }
    }
    Ok(selected)
}

/// Caches accounts and tokens, so that they stay usable while the API server is unreachable.
pub(crate) struct ServiceAccountCache {
    api: Arc<dyn ServiceAccounts>,
    clock: Arc<dyn Clock>,
    jitter: fn() -> f64,
    state: Mutex<CacheState>,
}

#[derive(Default)]
struct CacheState {
    accounts: HashMap<(String, String), ServiceAccount>,
    /// Tokens with their refresh jitter.
    tokens: HashMap<TokenRequest, (ServiceAccountToken, Duration)>,
}

/// An account, and the error if the API server could not confirm it.
pub(crate) struct KnownAccount {
    pub(crate) account: ServiceAccount,
    pub(crate) outage: Option<ServiceAccountError>,
}

impl ServiceAccountCache {
    pub(crate) fn new(api: Arc<dyn ServiceAccounts>, clock: Arc<dyn Clock>) -> Self {
        ServiceAccountCache { api, clock, jitter: random_fraction, state: Mutex::default() }
    }

    /// Reads the account. If the API server fails, returns the last known state.
    pub(crate) fn account(&self, namespace: &str, name: &str) -> Result<KnownAccount, ServiceAccountError> {
        let key = (namespace.to_owned(), name.to_owned());
        match self.api.account(namespace, name) {
            Ok(account) => {
                let mut state = self.lock();
                if state.accounts.len() >= MAX_ENTRIES {
                    state.accounts.clear();
                }
                state.accounts.insert(key, account.clone());
                Ok(KnownAccount { account, outage: None })
            }
            Err(message) => {
                let outage = ServiceAccountError::Account(message);
                let last = self.lock().accounts.get(&key).cloned();
                last.map(|account| KnownAccount { account, outage: Some(outage.clone()) }).ok_or(outage)
            }
        }
    }

    /// Returns the cached token while it is fresh, otherwise requests a new one. If that fails, returns the cached token
    /// while it is unexpired.
    // I115
    pub(crate) fn token(&self, request: &TokenRequest) -> Result<Secret<String>, ServiceAccountError> {
        let last = self.lock().tokens.get(request).cloned();
        let now = self.clock.now();
        if let Some((last, _)) = last.as_ref().filter(|(last, earlier)| is_fresh(last, now + *earlier)) {
            return Ok(last.token.clone());
        }
        match self.api.token(request) {
            Ok(token) => {
                let mut state = self.lock();
                if state.tokens.len() >= MAX_ENTRIES {
                    state.tokens.retain(|_, (kept, _)| kept.expires > now);
                }
                let earlier = MAX_REFRESH_JITTER.mul_f64((self.jitter)());
                state.tokens.insert(request.clone(), (token.clone(), earlier));
                Ok(token.token)
            }
            Err(message) => {
                let unexpired = last.filter(|(last, _)| now < last.expires);
                let error = ServiceAccountError::Token { message, audience: request.audience.clone() };
                unexpired.map(|(last, _)| last.token).ok_or(error)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ServiceAccountCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceAccountCache").field("api", &self.api).finish_non_exhaustive()
    }
}

fn is_fresh(token: &ServiceAccountToken, now: Timestamp) -> bool {
    let lifetime = token.expires.duration_since(token.issued).as_secs_f64();
    let left = token.expires.duration_since(now).as_secs_f64();
    left > lifetime * MIN_REMAINING_FRACTION
        && now.duration_since(token.issued).as_secs_f64() <= MAX_TOKEN_AGE.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use navicert_types::clock::ManualClock;

    use super::*;

    #[derive(Debug)]
    struct Api {
        clock: Arc<ManualClock>,
        lifetime: Duration,
        asked: Mutex<u32>,
        down: Mutex<bool>,
    }

    impl ServiceAccounts for Api {
        fn account(&self, _: &str, name: &str) -> Result<ServiceAccount, String> {
            if *self.down.lock().unwrap() {
                Err("down".into())
            } else {
                Ok(ServiceAccount { uid: name.into(), ..Default::default() })
            }
        }

        fn token(&self, _: &TokenRequest) -> Result<ServiceAccountToken, String> {
            if *self.down.lock().unwrap() {
                return Err("down".into());
            }
            let mut asked = self.asked.lock().unwrap();
            *asked += 1;
            let issued = self.clock.now();
            Ok(ServiceAccountToken {
                token: format!("token-{asked}").into(),
                issued,
                expires: issued + self.lifetime,
            })
        }
    }

    fn cache(lifetime: Duration) -> (Arc<ManualClock>, Arc<Api>, ServiceAccountCache) {
        let clock = Arc::new(ManualClock::at(1_000));
        let api = Api { clock: Arc::clone(&clock), lifetime, asked: Mutex::new(0), down: Mutex::new(false) };
        let api = Arc::new(api);
        let mut cache = ServiceAccountCache::new(Arc::clone(&api) as _, Arc::clone(&clock) as _);
        cache.jitter = || 0.0;
        (clock, api, cache)
    }

    fn request() -> TokenRequest {
        let account = ServiceAccountIdentity { namespace: "n".into(), name: "s".into(), uid: "u".into() };
        TokenRequest { account, audience: "a".into(), pod: ("p".into(), "pu".into()) }
    }

    #[test]
    fn refreshes_token_after_80_percent_of_its_lifetime_or_a_day() {
        // I115
        for (lifetime, good, after) in [(3_600, 2_879, 2_881), (90 * 24 * 3_600, 86_400, 86_401)] {
            let (clock, api, cache) = cache(Duration::from_secs(lifetime));
            cache.token(&request()).unwrap();
            clock.advance(Duration::from_secs(good));
            cache.token(&request()).unwrap();
            assert_eq!(*api.asked.lock().unwrap(), 1);
            clock.advance(Duration::from_secs(after - good));
            assert_eq!(cache.token(&request()).unwrap().expose(), "token-2");
        }
    }

    #[test]
    fn jitter_refreshes_token_a_few_seconds_earlier() {
        // I115
        let (clock, api, mut cache) = cache(Duration::from_secs(3_600));
        cache.jitter = || 1.0;
        cache.token(&request()).unwrap();
        for (seconds, asked) in [(2_869, 1), (2, 2)] {
            clock.advance(Duration::from_secs(seconds));
            cache.token(&request()).unwrap();
            assert_eq!(*api.asked.lock().unwrap(), asked, "after {seconds} s more");
        }
    }

    #[test]
    fn failed_refresh_keeps_unexpired_token() {
        // I115
        let (clock, api, cache) = cache(Duration::from_secs(100));
        cache.token(&request()).unwrap();
        *api.down.lock().unwrap() = true;
        clock.advance(Duration::from_secs(99));
        assert_eq!(cache.token(&request()).unwrap().expose(), "token-1");
        clock.advance(Duration::from_secs(1));
        let error = cache.token(&request()).unwrap_err().to_string();
        assert_eq!(error, "failed to get service account token: down");
    }

    #[test]
    fn cached_account_survives_an_outage() {
        let (_, api, cache) = cache(Duration::from_secs(100));
        assert!(cache.account("n", "s").unwrap().outage.is_none());
        *api.down.lock().unwrap() = true;
        let known = cache.account("n", "s").unwrap();
        assert_eq!((known.account.uid.as_str(), known.outage.is_some()), ("s", true));
        assert!(cache.account("n", "other").is_err());
    }

    #[test]
    fn error_names_the_missing_permission() {
        // I116, I243
        let message = "serviceaccounts \"s\" is forbidden: audience: User \"system:node:n\" is not authorized to request tokens for audience \"a\"";
        let error = ServiceAccountError::Token { message: message.into(), audience: "a".into() }.to_string();
        assert!(
            error.contains("request-serviceaccounts-token-audience") && error.contains("resources: [\"a\"]"),
            "{error}"
        );
    }

    #[test]
    fn selects_required_and_existing_optional_annotations() {
        // I113
        let settings = TokenSettings {
            audience: "a".into(),
            cache_type: crate::config::TokenCacheType::Token,
            require_service_account: true,
            required_annotations: vec!["r".into()],
            optional_annotations: vec!["o".into(), "absent".into()],
        };
        let have =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let selected = select_annotations(&settings, &have(&[("r", ""), ("o", "1"), ("x", "2")])).unwrap();
        assert_eq!(selected, have(&[("r", ""), ("o", "1")]));
        assert_eq!(
            select_annotations(&settings, &have(&[("o", "1")])),
            Err(Skipped::MissingAnnotation("r".into()))
        );
    }
}
