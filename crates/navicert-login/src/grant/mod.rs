//! Grants: how the first token of a session is obtained.
//!
//! A grant returns a checked entry that is already stored, because the browser's page promises that.

mod ambient;
mod authcode;
mod client_credentials;
mod device;
mod exchange;
mod keyboard;
mod parameters;
mod password;
pub(crate) mod prompt;
mod subject_token;

use navicert_types::Timestamp;

use crate::browser::Browser;
use crate::cache::{CacheFolder, Entry};
use crate::check::{Expectation, check};
use crate::context::LoginContext;
use crate::error::LoginError;
use crate::key::KeyFields;
use crate::person::Person;
use crate::provider::{Metadata, ProviderClient, TokenAnswer, TokenFailure, classify};
use crate::request::{GrantType, LoginRequest, SecretSource};

pub(crate) use exchange::exchange_session;
pub(crate) use parameters::requested_scopes;

/// What every grant uses.
pub(crate) struct GrantRun<'g> {
    pub(crate) client: &'g ProviderClient<'g>,
    pub(crate) request: &'g LoginRequest,
    pub(crate) context: &'g LoginContext,
    pub(crate) folder: &'g CacheFolder,
    pub(crate) key: &'g KeyFields,
    pub(crate) person: Person,
    /// The session that has ended, if there was one.
    pub(crate) ended: Option<&'g Entry>,
}

/// Whether a grant needs a person.
pub(crate) fn needs_person(request: &LoginRequest) -> bool {
    match request.grant_by_flags() {
        GrantType::Auto | GrantType::Authcode | GrantType::AuthcodeKeyboard | GrantType::DeviceCode => true,
        GrantType::Password => request.password.is_none(),
        GrantType::ClientCredentials | GrantType::TokenExchange | GrantType::Ambient => false,
    }
}

impl GrantRun<'_> {
    /// Obtains and stores a session.
    pub(crate) async fn run(&self) -> Result<Entry, LoginError> {
        match self.request.grant_by_flags() {
            GrantType::ClientCredentials => self.client_credentials().await,
            GrantType::TokenExchange => self.token_exchange().await,
            GrantType::Ambient => self.ambient().await,
            GrantType::Password => self.password().await,
            GrantType::Authcode => self.authcode().await,
            GrantType::AuthcodeKeyboard => self.keyboard().await,
            GrantType::DeviceCode => self.device().await,
            GrantType::Auto => self.auto().await,
        }
    }

    /// A browser if there is one, else a device login, else pasting.
    async fn auto(&self) -> Result<Entry, LoginError> {
        if self.browser()?.is_some() {
            return match self.authcode().await {
                Err(error @ LoginError::PortTaken { .. }) if self.person.reads_messages => {
                    self.context.messages.show(&format!("warning: {error}"));
                    self.without_browser().await
                }
                result => result,
            };
        }
        self.without_browser().await
    }

    async fn without_browser(&self) -> Result<Entry, LoginError> {
        let metadata = self.client.metadata().await?;
        if metadata.device_authorization_endpoint.is_some() && self.person.reads_messages {
            return self.device().await;
        }
        if self.person.can_type {
            return self.keyboard().await;
        }
        Err(LoginError::NoBrowser { host: self.request.host().to_owned() })
    }

    fn browser(&self) -> Result<Option<Browser>, LoginError> {
        crate::browser::find(self.request, self.context)
    }

    /// Checks the answer of a grant, stores the session and tells the person what to know about it.
    async fn finish(&self, answer: TokenAnswer, expectation: Expectation<'_>) -> Result<Entry, LoginError> {
        let unwanted = answer.refresh_token.clone().filter(|_| self.request.no_refresh_token);
        let mut entry = check(self.client, self.key, answer, expectation).await?;
        if let Some(ended) = self.ended {
            entry.memo = ended.memo.clone();
            entry.history = ended.history.clone();
        }
        self.client.learned(&mut entry.memo);
        entry.history.logins = entry.history.logins.saturating_add(1);
        entry.history.last_failure = None;
        self.note_secret_arguments(&mut entry);
        crate::store::store(self.folder, self.context, &mut entry);
        // The session is kept whatever becomes of the exchange.
        if self.request.exchange.audience.is_some() {
            exchange_session(self.client, &mut entry).await?;
            crate::store::store(self.folder, self.context, &mut entry);
        }
        if let Some(token) = unwanted {
            // The session does not need it; a failure to revoke it changes nothing.
            let _ = crate::logout::revoke(self.client, &token, "refresh_token").await;
        }
        self.tell(&entry);
        Ok(entry)
    }

    /// Says once per entry that other users can see arguments.
    fn note_secret_arguments(&self, entry: &mut Entry) {
        let is_argument = |source: &Option<SecretSource>| matches!(source, Some(SecretSource::Argument(_)));
        let secrets = [
            (&self.request.client.secret, "--oidc-client-secret", "--oidc-client-secret-file"),
            (&self.request.password, "--password", "--password-file"),
        ];
        for (source, flag, replacement) in secrets {
            if is_argument(source) && self.person.reads_messages && !entry.memo.secret_note_shown {
                self.context.messages.show(&format!(
                    "warning: other users of this machine can see {flag}; use {replacement} instead"
                ));
                entry.memo.secret_note_shown = true;
            }
        }
    }

    fn tell(&self, entry: &Entry) {
        let host = self.request.host();
        let skew = entry.skew_seconds;
        if skew.abs() > crate::check::REPORTED_SKEW_SECONDS {
            let direction = if skew > 0 { "behind" } else { "ahead of" };
            self.context.messages.show(&format!(
                "warning: this machine's clock is {} min {direction} {host}; set it",
                skew.abs() / 60
            ));
        }
        let is_expected = needs_person(self.request) && !self.request.no_refresh_token;
        if is_expected && entry.refresh_token.is_none() && self.person.reads_messages {
            let minutes = entry.local_expiry.duration_since(entry.received_at).as_secs() / 60;
            self.context.messages.show(&format!(
                "note: {host} sent no refresh token, so you will be asked again in {minutes} min; add \
                 --oidc-extra-scope=offline_access, or ask the provider's administrator to allow it for {}",
                self.request.client_id
            ));
        }
    }

    /// The error for a failed token request.
    async fn token_error(&self, failure: TokenFailure, redirect_uri: &str, grant: &str) -> LoginError {
        match failure {
            TokenFailure::Login(error) => error,
            TokenFailure::OAuth(failure) => {
                let metadata: Option<Metadata> = self.client.metadata().await.ok();
                classify(&failure, self.request, metadata.as_ref(), redirect_uri, grant)
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.context.clock.now()
    }
}
