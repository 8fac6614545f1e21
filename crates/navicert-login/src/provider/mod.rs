//! The OpenID provider: its documents, its endpoints, and what its errors mean.
//!
//! ```text
//! ProviderClient ──documents──▶ Metadata, KeySet     (cached; metadata, documents)
//!                ──endpoint───▶ TokenAnswer | TokenFailure (connection, client_auth, failure)
//! ```
//!
//! Requests and answers are those of `navicert_client::oauth`, which the auth provider `oidc` uses as well.

mod assertion;
mod client_auth;
mod connection;
mod device_answer;
mod documents;
mod failure;
mod metadata;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use navicert_authn::jwks::KeySet;
pub use navicert_client::oauth::TokenAnswer;
pub(crate) use navicert_client::oauth::{Form, HttpAnswer, OAuthFailure, check_address, clean};
use navicert_client::oauth::{OAuthHttp, SecretPlacement, SendError};
use navicert_types::Timestamp;

pub(crate) use client_auth::{ClientAuth, read_secret};
pub(crate) use device_answer::DeviceAnswer;
pub(crate) use failure::{TokenFailure, classify};
pub use metadata::Metadata;

use crate::cache::{CacheFolder, Memo, ProviderDocuments};
use crate::context::LoginContext;
use crate::error::LoginError;
use crate::key::{CacheKey, KeyFields};
use crate::request::LoginRequest;

/// Attempts of a request that may be repeated, and the waits between them.
const RETRY_WAITS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];
/// The longest `Retry-After` that is waited for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(10);

/// Whether a request may be sent more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Up to three times.
    Always,
    /// A request with a refresh token: faults before the request was sent are retried as usual; if the connection is lost
    /// afterwards, once more after a second.
    Refresh,
    /// Never: a code can be used once.
    Never,
}

/// Talks to one provider.
pub struct ProviderClient<'r> {
    pub(crate) request: &'r LoginRequest,
    pub(crate) context: &'r LoginContext,
    pub(crate) http: OAuthHttp,
    folder: &'r CacheFolder,
    provider_key: CacheKey,
    state: Mutex<ClientState>,
}

#[derive(Default)]
struct ClientState {
    documents: Option<ProviderDocuments>,
    metadata: Option<Metadata>,
    /// The metadata was not fetched by this process.
    is_cached: bool,
    keys_fetched_here: bool,
    placement: Option<SecretPlacement>,
}

impl<'r> ProviderClient<'r> {
    /// A client for the provider of the request. Sends nothing.
    ///
    /// # Errors
    /// The issuer is not https, or a file or address of the connection is invalid.
    pub fn new(
        request: &'r LoginRequest,
        context: &'r LoginContext,
        folder: &'r CacheFolder,
        key: &KeyFields,
    ) -> Result<Self, LoginError> {
        check_address(&request.issuer, &request.issuer)?;
        Ok(ProviderClient {
            request,
            context,
            http: connection::connect(request, context)?,
            folder,
            provider_key: key.provider_key(),
            state: Mutex::default(),
        })
    }

    /// Uses what earlier runs learned.
    pub(crate) fn recall(&self, memo: &Memo) {
        self.state().placement = memo.client_auth.as_deref().and_then(SecretPlacement::from_text);
    }

    /// What this run learned.
    pub(crate) fn learned(&self, memo: &mut Memo) {
        if let Some(placement) = self.state().placement {
            memo.client_auth = Some(placement.as_str().to_owned());
        }
    }

    /// The provider's metadata, from the cache or fetched.
    ///
    /// # Errors
    /// The document cannot be fetched or is not valid.
    pub async fn metadata(&self) -> Result<Metadata, LoginError> {
        let known = self.state().metadata.clone();
        match known {
            Some(metadata) => Ok(metadata),
            None => self.load_metadata(self.request.force_refresh).await,
        }
    }

    /// Sends a form to an endpoint with client authentication.
    pub(crate) async fn post(
        &self,
        endpoint: impl Fn(&Metadata) -> Result<String, LoginError>,
        fields: &[(&str, &str)],
        repeat: Repeat,
    ) -> Result<HttpAnswer, LoginError> {
        let metadata = self.metadata().await?;
        let answer = self.post_with(&metadata, &endpoint, fields, repeat).await?;
        if matches!(answer.status, 404 | 405 | 410) && self.state().is_cached {
            // The endpoint may have moved since the document was fetched.
            let metadata = self.load_metadata(true).await?;
            return self.post_with(&metadata, &endpoint, fields, repeat).await;
        }
        Ok(answer)
    }

    async fn post_with(
        &self,
        metadata: &Metadata,
        endpoint: &impl Fn(&Metadata) -> Result<String, LoginError>,
        fields: &[(&str, &str)],
        repeat: Repeat,
    ) -> Result<HttpAnswer, LoginError> {
        let url = endpoint(metadata)?;
        let auth = ClientAuth::load(self.request)?;
        let placement = self.state().placement.unwrap_or_else(|| metadata.secret_placement());
        let answer = self.post_once(&url, metadata, &auth, placement, fields, repeat).await?;
        let is_rejected = OAuthFailure::read(&answer).is_some_and(|failure| failure.code == "invalid_client");
        // A code can be used once, but a provider that rejects the client has not looked at it.
        if !auth.is_secret() || !is_rejected {
            return Ok(answer);
        }
        let other = placement.other();
        let second = self.post_once(&url, metadata, &auth, other, fields, repeat).await?;
        if OAuthFailure::read(&second).is_none_or(|failure| failure.code != "invalid_client") {
            self.state().placement = Some(other);
        }
        Ok(second)
    }

    async fn post_once(
        &self,
        url: &str,
        metadata: &Metadata,
        auth: &ClientAuth,
        placement: SecretPlacement,
        fields: &[(&str, &str)],
        repeat: Repeat,
    ) -> Result<HttpAnswer, LoginError> {
        let mut form = Form::new();
        for (name, value) in fields {
            form.add(name, value);
        }
        let now = self.context.clock.now();
        let header = auth.apply(&self.request.client_id, metadata, placement, &mut form, now)?;
        self.with_retries(repeat, || self.http.post(url, &form, header.clone())).await
    }

    /// Sends a form to the token endpoint.
    pub(crate) async fn token_request(
        &self,
        fields: &[(&str, &str)],
        repeat: Repeat,
    ) -> Result<TokenAnswer, TokenFailure> {
        let endpoint = |metadata: &Metadata| Ok(metadata.token_endpoint.clone());
        let answer = self.post(endpoint, fields, repeat).await?;
        if let Some(failure) = OAuthFailure::read(&answer) {
            return Err(TokenFailure::OAuth(failure));
        }
        Ok(TokenAnswer::read(&answer, self.request.host()).map_err(LoginError::from)?)
    }

    /// Repeats a request after faults that may pass.
    async fn with_retries(
        &self,
        repeat: Repeat,
        send: impl AsyncFn() -> Result<HttpAnswer, SendError>,
    ) -> Result<HttpAnswer, LoginError> {
        let host = self.request.host();
        let mut waits = RETRY_WAITS.iter().copied();
        let mut was_lost = false;
        loop {
            let (fault, wanted_wait) = match send().await {
                Ok(answer) => match answer.transient_fault() {
                    Some(why) => {
                        (LoginError::ProviderFault { host: host.to_owned(), why }, answer.retry_after)
                    }
                    None => return Ok(answer),
                },
                Err(SendError { error, was_sent }) => {
                    let error = LoginError::from(error);
                    if !error.is_transient() {
                        return Err(error);
                    }
                    if repeat == Repeat::Refresh && was_sent {
                        if std::mem::replace(&mut was_lost, true) {
                            return Err(error);
                        }
                        self.context.timer.sleep(Duration::from_secs(1)).await;
                        continue;
                    }
                    (error, None)
                }
            };
            let wait = waits.next().filter(|_| repeat != Repeat::Never);
            let Some(wait) =
                wait.map(|wait| wanted_wait.unwrap_or(wait)).filter(|wait| *wait <= MAX_RETRY_AFTER)
            else {
                return Err(fault);
            };
            self.context.timer.sleep(wait).await;
        }
    }

    /// The keys, from the cache or fetched; with `newer` fetched at most once per run and once a minute.
    pub(crate) async fn keys(&self, newer: bool) -> Result<Option<KeySet>, LoginError> {
        self.load_keys(newer).await
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.context.clock.now()
    }
}

impl std::fmt::Debug for ProviderClient<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderClient").field("issuer", &self.request.issuer).finish_non_exhaustive()
    }
}
