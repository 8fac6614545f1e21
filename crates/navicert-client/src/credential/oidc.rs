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
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use navicert_go::base64::STANDARD;
use navicert_go::percent;
use navicert_go::url::Url;
use navicert_types::kubeconfig::AuthProviderConfig;
use navicert_types::tree::{Node, Syntax, parse};
use navicert_types::{Secret, error_chain};
use thiserror::Error;
use tokio::sync::Mutex;
use zeroize::Zeroizing;

use super::claims::Claims;
use super::{
    BoxFuture, ClientIdentity, Credential, CredentialError, CredentialSource, Generation, Rejection,
    RequestOrigin, StaticCredential, bearer,
};
use crate::config::ClientProblem;
use crate::context::ClientContext;
use crate::json::member;
use crate::kubeconfig::FileSystem;
use crate::transport::{
    Body, ProxyChoice, ProxyEnvironment, Transport, TransportSettings, Trust, has_certificate,
};

/// A token is renewed this long before it expires.
const EXPIRY_LEEWAY: Duration = Duration::from_secs(10);
/// Limit for a response of the identity provider.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

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
    trust: Trust,
    proxies: ProxyEnvironment,
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
        let oidc = Oidc {
            issuer: settings.issuer,
            client_id: settings.client_id,
            client_secret: settings.client_secret,
            trust: settings.trust,
            proxies: ProxyEnvironment::read(lookup),
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
        let discovery = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let (status, found) = self.send_request(&discovery, None, None).await?;
        let endpoint = status.is_success().then(|| member(&found, "token_endpoint")?.as_str()).flatten();
        let endpoint = endpoint.ok_or(OidcError::Incomplete("a token_endpoint"))?;
        let answer = self.redeem_refresh_token(endpoint, &refresh_token).await?;
        let text = |name: &str| {
            member(&answer, name).and_then(Node::as_str).map(|text| Secret::new(text.to_owned()))
        };
        let id_token = text("id_token").ok_or(OidcError::Incomplete("an id_token"))?;
        // A provider that returns no other refresh token lets the client keep the one it has.
        if let Some(newer) = text("refresh_token") {
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
    ) -> Result<Node, OidcError> {
        let form = |with_client: bool| {
            let mut form = Zeroizing::new(String::from("grant_type=refresh_token"));
            let mut add = |name: &str, value: &str| {
                form.push('&');
                form.push_str(name);
                form.push('=');
                form.push_str(&form_encoded(value));
            };
            add("refresh_token", refresh_token.expose());
            if with_client {
                add("client_id", &self.client_id);
                if !self.client_secret.is_empty() {
                    add("client_secret", self.client_secret.expose());
                }
            }
            Bytes::copy_from_slice(form.as_bytes())
        };
        if !self.client_secret.is_empty() {
            let pair = Zeroizing::new(format!(
                "{}:{}",
                form_encoded(&self.client_id),
                form_encoded(self.client_secret.expose())
            ));
            let header = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
            let (status, answer) = self.send_request(endpoint, Some(form(false)), header.ok()).await?;
            if status.is_success() {
                return Ok(answer);
            }
        }
        let (status, answer) = self.send_request(endpoint, Some(form(true)), None).await?;
        if status.is_success() {
            return Ok(answer);
        }
        let code = member(&answer, "error").and_then(Node::as_str);
        let code = code.map(|code| navicert_types::redact::line(code).chars().take(64).collect());
        Err(OidcError::Rejected { status: status.as_u16(), code })
    }

    /// Sends one request to the provider, over https only: the content is sensitive.
    async fn send_request(
        &self,
        url: &str,
        form: Option<Bytes>,
        authorization: Option<HeaderValue>,
    ) -> Result<(StatusCode, Node), OidcError> {
        let unreachable = |reason: &dyn fmt::Display| OidcError::Unreachable(reason.to_string());
        let address = Url::parse(url).map_err(|_| unreachable(&"invalid identity provider URL"))?;
        if address.scheme != "https" {
            return Err(unreachable(&"identity provider URL is not https"));
        }
        let path = if address.path.is_empty() { "/" } else { address.path };
        let settings = TransportSettings {
            trust: self.trust.clone(),
            proxy: ProxyChoice::Environment(self.proxies.clone()),
            ..TransportSettings::new(format!("https://{}", address.host))
        };
        let anonymous = Arc::new(StaticCredential::new(Credential::anonymous()));
        let transport = Transport::new(settings, anonymous, self.client_context.clone())
            .map_err(|error| unreachable(&error_chain(&error)))?;
        let mut request = match form {
            Some(form) => Request::post(path)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(Body::from(form)),
            None => Request::get(path).body(Body::empty()),
        }
        .map_err(|_| unreachable(&"invalid identity provider URL"))?;
        if let Some(value) = authorization {
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let response = transport.send(request).await.map_err(|error| unreachable(&error_chain(&error)))?;
        let status = response.status();
        let collected = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await;
        let body = Zeroizing::new(collected.map(|all| all.to_bytes().to_vec()).unwrap_or_default());
        Ok((status, parse(&body, Syntax::Json).unwrap_or_default()))
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

/// Percent-encodes a form value.
fn form_encoded(text: &str) -> String {
    percent::encode(text, percent::Plus::Literal, percent::is_unreserved)
}
