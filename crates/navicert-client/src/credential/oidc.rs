//! The auth provider `oidc`: an ID token from the kubeconfig, renewed with its refresh token. New tokens are kept in
//! memory; the kubeconfig is never written.
// C165

#[cfg(test)]
#[cfg(feature = "exec")]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use base64::Engine as _;
use http::HeaderMap;
use navicert_go::base64::STANDARD;
use navicert_types::Secret;
use navicert_types::kubeconfig::AuthProviderConfig;
use thiserror::Error;
use tokio::sync::Mutex;

use super::claims::Claims;
use super::{
    BoxFuture, ClientIdentity, Credential, CredentialError, CredentialSource, Generation, Rejection,
    RequestOrigin, bearer,
};
use crate::config::ClientProblem;
use crate::context::ClientContext;
use crate::kubeconfig::FileSystem;
use crate::oauth::{
    ClientSecret, Form, JsonObject, OAuthConnection, OAuthFailure, OAuthHttp, SecretPlacement, SendError,
    TokenAnswer, discovery_url, host_of,
};
use crate::transport::{ProxyChoice, ProxyEnvironment, Trust, has_certificate};

/// A token is renewed this long before it expires.
const EXPIRY_LEEWAY: Duration = Duration::from_secs(10);

/// Why there is no ID token. No text contains a token.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum OidcError {
    /// The ID token has expired and there is no refresh token.
    #[error("No valid id-token, and cannot refresh without refresh-token")]
    NoRefreshToken,
    /// The identity provider could not be reached.
    #[error("failed to refresh token: {0}")]
    Unreachable(String),
    /// The identity provider rejected the request.
    #[error("failed to refresh token: the identity provider answered {status}{}", .code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default())]
    Rejected {
        /// The status.
        status: u16,
        /// The `error` of the response, such as `invalid_grant`.
        code: Option<String>,
    },
    /// The identity provider's response is incomplete.
    #[error("the identity provider's answer did not contain {0}")]
    Incomplete(&'static str),
}

/// Gets ID tokens from an OpenID Connect provider. Its futures need a tokio runtime.
pub(crate) struct Oidc {
    issuer: String,
    client_id: String,
    client_secret: Secret<String>,
    http: OAuthHttp,
    client_context: ClientContext,
    identity: Option<Arc<ClientIdentity>>,
    current: ArcSwapOption<Credential>,
    refresh_token: Mutex<Secret<String>>,
}

/// The settings of an `auth-provider` section, checked.
#[derive(Clone)]
pub(crate) struct OidcSettings {
    issuer: String,
    client_id: String,
    client_secret: Secret<String>,
    trust: Trust,
    id_token: Secret<String>,
    refresh_token: Secret<String>,
}

impl OidcSettings {
    pub(crate) fn read(provider: &AuthProviderConfig, files: &dyn FileSystem) -> Result<Self, ClientProblem> {
        let secret = |name: &str| provider.config.get(name).cloned().unwrap_or_default();
        let text = |name: &str| secret(name).expose().clone();
        let missing = ["idp-issuer-url", "client-id"].into_iter().find(|name| text(name).is_empty());
        if let Some(name) = missing {
            return Err(ClientProblem::OidcSetting(name));
        }
        let (data, file) = (text("idp-certificate-authority-data"), text("idp-certificate-authority"));
        let trust = if !data.is_empty() {
            Trust::Pem(STANDARD.decode(data).map_err(|_| ClientProblem::OidcAuthority(None))?)
        } else if !file.is_empty() {
            let read = files.read(Path::new(&file));
            Trust::Pem(read.map_err(|source| ClientProblem::OidcAuthority(Some(source)))?)
        } else {
            Trust::System
        };
        if matches!(&trust, Trust::Pem(text) if !has_certificate(text)) {
            return Err(ClientProblem::OidcAuthority(None));
        }
        Ok(OidcSettings {
            issuer: text("idp-issuer-url"),
            client_id: text("client-id"),
            client_secret: secret("client-secret"),
            trust,
            id_token: secret("id-token"),
            refresh_token: secret("refresh-token"),
        })
    }
}

impl Oidc {
    /// A source with the user's client certificate, if any.
    pub(crate) fn new(
        settings: OidcSettings,
        identity: Option<Arc<ClientIdentity>>,
        client_context: &ClientContext,
    ) -> Self {
        let lookup = |name: &str| client_context.environment.variable(name)?.to_str().map(ToOwned::to_owned);
        let connection = OAuthConnection {
            issuer: settings.issuer.clone(),
            trust: settings.trust,
            proxy: ProxyChoice::Environment(ProxyEnvironment::read(lookup)),
            tls_server_name: String::new(),
            identity: None,
            headers: HeaderMap::new(),
        };
        let oidc = Oidc {
            issuer: settings.issuer,
            client_id: settings.client_id,
            client_secret: settings.client_secret,
            http: OAuthHttp::new(connection, client_context.clone()),
            client_context: client_context.clone(),
            identity,
            current: ArcSwapOption::empty(),
            refresh_token: Mutex::new(settings.refresh_token),
        };
        if !settings.id_token.is_empty() {
            oidc.current.store(oidc.credential(&settings.id_token, Generation::FIRST).map(Arc::new));
        }
        oidc
    }

    /// `None` for a token that is not a JWT or has no expiry.
    fn credential(&self, id_token: &Secret<String>, generation: Generation) -> Option<Credential> {
        let expires = Claims::parse_unverified(id_token.expose())?.expires?;
        let authorization = Some(bearer(id_token).ok()?);
        Some(Credential {
            generation,
            authorization,
            identity: self.identity.clone(),
            expires: Some(expires),
        })
    }

    async fn refresh(&self) -> Result<Arc<Credential>, OidcError> {
        let mut refresh_token = self.refresh_token.lock().await;
        // Another caller may have refreshed the token meanwhile.
        if let Some(credential) = self.cached() {
            return Ok(credential);
        }
        if refresh_token.is_empty() {
            return Err(OidcError::NoRefreshToken);
        }
        // The content is sensitive, on loopback too.
        if !self.issuer.starts_with("https://") {
            return Err(OidcError::Unreachable("identity provider URL is not https".to_owned()));
        }
        let discovery = self.http.get(&discovery_url(&self.issuer)).await?;
        let document = JsonObject::read(&discovery.body).filter(|_| (200..300).contains(&discovery.status));
        let endpoint = document.and_then(|document| document.text("token_endpoint"));
        let endpoint = endpoint.ok_or(OidcError::Incomplete("a token_endpoint"))?;
        let answer = self.redeem_refresh_token(&endpoint, &refresh_token).await?;
        let id_token = answer.id_token.ok_or(OidcError::Incomplete("an id_token"))?;
        // A provider that returns no other refresh token lets the client keep the one it has.
        if let Some(newer) = answer.refresh_token {
            *refresh_token = newer;
        }
        let last = self.current.load().as_ref().map(|credential| credential.generation);
        let generation = last.map_or(Generation::FIRST, Generation::next);
        let credential = self.credential(&id_token, generation).map(Arc::new);
        let credential = credential.ok_or(OidcError::Incomplete("an id_token with an expiry"))?;
        self.current.store(Some(Arc::clone(&credential)));
        Ok(credential)
    }

    /// Redeems the refresh token. The client secret goes into a header first, then into the form; most providers accept
    /// both.
    async fn redeem_refresh_token(
        &self,
        endpoint: &str,
        refresh_token: &Secret<String>,
    ) -> Result<TokenAnswer, OidcError> {
        let secret = Some(&self.client_secret).filter(|secret| !secret.is_empty());
        let client = ClientSecret { client_id: &self.client_id, secret };
        let placements = [SecretPlacement::Header, SecretPlacement::Form];
        let mut rejection = OidcError::Incomplete("an id_token");
        for placement in placements.into_iter().skip(usize::from(secret.is_none())) {
            let mut form = Form::new();
            form.add("grant_type", "refresh_token");
            form.add("refresh_token", refresh_token.expose());
            let header = client.apply(placement, &mut form);
            let answer = self.http.post(endpoint, &form, header).await?;
            if (200..300).contains(&answer.status) {
                return Ok(TokenAnswer::read(&answer, host_of(endpoint)).map_err(SendError::from)?);
            }
            let code = OAuthFailure::read(&answer).map(|failure| failure.code);
            rejection = OidcError::Rejected { status: answer.status, code };
        }
        Err(rejection)
    }
}

impl From<SendError> for OidcError {
    fn from(failure: SendError) -> Self {
        OidcError::Unreachable(failure.error.to_string())
    }
}

impl CredentialSource for Oidc {
    fn cached(&self) -> Option<Arc<Credential>> {
        let credential = self.current.load_full()?;
        let now = self.client_context.clock.now().saturating_add(EXPIRY_LEEWAY).ok()?;
        credential.expires.is_some_and(|end| now < end).then_some(credential)
    }

    fn get(&self, _: RequestOrigin) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(async move {
            match self.cached() {
                Some(credential) => Ok(credential),
                None => Ok(Box::pin(self.refresh()).await?),
            }
        })
    }

    /// As in client-go, a rejected token is not refreshed.
    fn refresh_rejected(
        &self,
        _: Generation,
        _: Rejection,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        Box::pin(async { Ok(None) })
    }
}

impl fmt::Debug for Oidc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oidc")
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}
