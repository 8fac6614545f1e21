//! The auth-provider `oidc` (client-credentials.md C165): an id token from the kubeconfig, renewed with its refresh token. New
//! tokens are kept in memory; writing them back is for whoever asks for it with a [`TokenStore`].

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use navicert_types::Secret;
use navicert_types::kubeconfig::AuthProviderConfig;
use navicert_types::tree::{Node, Syntax, parse};
use thiserror::Error;
use tokio::sync::Mutex;
use zeroize::Zeroizing;

use super::claims::Claims;
use super::{
    Asking, BoxFuture, Credential, CredentialError, CredentialSource, Fixed, Generation, Identity, Refused,
    SharedFiles,
};
use crate::exec::Surroundings;
use crate::exec::response::bearer;
use crate::kubeconfig::Address;
use crate::transport::{Around, Body, ProxyChoice, ProxyEnvironment, Settings, TokioTimer, Transport, Trust};
use crate::whoami::member;

/// A token is used until so long before its end.
const LEEWAY: Duration = Duration::from_secs(10);
/// More than this is no answer of a provider.
const LARGEST: usize = 1024 * 1024;

/// Why the provider gave no token. No text holds one.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum OidcError {
    /// The kubeconfig does not say which provider, or as which client.
    #[error("Must provide {0}")]
    Lacks(&'static str),
    /// The provider's certificate authority cannot be used.
    #[error("oidc: the certificate authority of the identity provider cannot be used")]
    Authority,
    /// The token has expired and there is nothing to get another with.
    #[error("No valid id-token, and cannot refresh without refresh-token")]
    NoRefreshToken,
    /// The provider could not be asked.
    #[error("failed to refresh token: {0}")]
    Unreachable(String),
    /// The provider said no.
    #[error("failed to refresh token: the identity provider answered {status}{}", .code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default())]
    Refused {
        /// The status.
        status: u16,
        /// The `error` of its answer, such as `invalid_grant`.
        code: Option<String>,
    },
    /// The provider's answer lacks what is needed.
    #[error("the identity provider's answer did not contain {0}")]
    Incomplete(&'static str),
    /// The new tokens could not be kept.
    #[error("could not persist new tokens: {0}")]
    Store(String),
}

/// Somewhere new tokens are kept, before they are used. Without one they live as long as the process.
pub trait TokenStore: fmt::Debug + Send + Sync {
    /// Keeps them; a refresh token may be as it was.
    ///
    /// # Errors
    /// They could not be kept; then they are not used either, because the old refresh token may be worth nothing now.
    fn store(&self, id_token: &Secret<String>, refresh_token: &Secret<String>) -> io::Result<()>;
}

/// Gets id tokens from an OpenID provider. Its futures need a tokio runtime, as requests do.
pub struct Oidc {
    issuer: String,
    client_id: String,
    client_secret: Secret<String>,
    trust: Trust,
    proxies: ProxyEnvironment,
    around: Around,
    identity: Option<Arc<Identity>>,
    store: Option<Arc<dyn TokenStore>>,
    current: ArcSwapOption<Credential>,
    refresh_token: Mutex<Secret<String>>,
}

impl Oidc {
    /// From an `auth-provider` section, with a client certificate if the user has one.
    ///
    /// # Errors
    /// Something is missing from the section, or the provider's authority cannot be read.
    pub fn new(
        provider: &AuthProviderConfig,
        identity: Option<Arc<Identity>>,
        files: &SharedFiles,
        surroundings: &Surroundings,
        store: Option<Arc<dyn TokenStore>>,
    ) -> Result<Self, OidcError> {
        let secret = |name: &str| provider.config.get(name).cloned().unwrap_or_default();
        let text = |name: &str| secret(name).expose().clone();
        let lacking = ["idp-issuer-url", "client-id"].into_iter().find(|name| text(name).is_empty());
        if let Some(name) = lacking {
            return Err(OidcError::Lacks(name));
        }
        let (data, file) = (text("idp-certificate-authority-data"), text("idp-certificate-authority"));
        let trust = if !data.is_empty() {
            Trust::Pem(STANDARD.decode(data).map_err(|_| OidcError::Authority)?)
        } else if !file.is_empty() {
            Trust::Pem(files.read(Path::new(&file)).map_err(|_| OidcError::Authority)?)
        } else {
            Trust::System
        };
        let lookup = |name: &str| surroundings.environment.variable(name)?.to_str().map(ToOwned::to_owned);
        let oidc = Oidc {
            issuer: text("idp-issuer-url"),
            client_id: text("client-id"),
            client_secret: secret("client-secret"),
            trust,
            proxies: ProxyEnvironment::read(lookup),
            around: Around {
                clock: Arc::clone(&surroundings.clock),
                timer: Arc::new(TokioTimer),
                files: Arc::clone(files),
                recorder: Arc::clone(&surroundings.recorder),
            },
            identity,
            store,
            current: ArcSwapOption::empty(),
            refresh_token: Mutex::new(secret("refresh-token")),
        };
        let known = secret("id-token");
        if !known.is_empty() {
            oidc.current.store(oidc.credential(&known, Generation::FIRST).map(Arc::new));
        }
        Ok(oidc)
    }

    /// A token that is no JWT, or does not say when it ends, is of no use.
    fn credential(&self, id_token: &Secret<String>, generation: Generation) -> Option<Credential> {
        let expires = Claims::of(id_token.expose())?.expires?;
        let authorization = Some(bearer(id_token).ok()?);
        Some(Credential {
            generation,
            authorization,
            identity: self.identity.clone(),
            expires: Some(expires),
        })
    }

    async fn renew(&self) -> Result<Arc<Credential>, OidcError> {
        let mut refresh_token = self.refresh_token.lock().await;
        // Somebody may have been here while we waited.
        if let Some(credential) = self.ready() {
            return Ok(credential);
        }
        if refresh_token.is_empty() {
            return Err(OidcError::NoRefreshToken);
        }
        let discovery = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let (status, found) = self.ask(&discovery, None, None).await?;
        let endpoint = status.is_success().then(|| member(&found, "token_endpoint")?.as_str()).flatten();
        let endpoint = endpoint.ok_or(OidcError::Incomplete("a token_endpoint"))?;
        let answer = self.exchange(endpoint, &refresh_token).await?;
        let text = |name: &str| {
            member(&answer, name).and_then(Node::as_str).map(|text| Secret::new(text.to_owned()))
        };
        let id_token = text("id_token").ok_or(OidcError::Incomplete("an id_token"))?;
        let newer = text("refresh_token").unwrap_or_else(|| refresh_token.clone());
        if let Some(store) = &self.store {
            store.store(&id_token, &newer).map_err(|error| OidcError::Store(error.to_string()))?;
        }
        *refresh_token = newer;
        let last = self.current.load().as_ref().map(|credential| credential.generation);
        let generation = last.map_or(Generation::FIRST, Generation::next);
        let credential = self.credential(&id_token, generation).map(Arc::new);
        let credential = credential.ok_or(OidcError::Incomplete("an id_token that says when it expires"))?;
        self.current.store(Some(Arc::clone(&credential)));
        Ok(credential)
    }

    /// Trades the refresh token. Providers take a client's secret in a header or in the form; most take both.
    async fn exchange(&self, endpoint: &str, refresh_token: &Secret<String>) -> Result<Node, OidcError> {
        let form = |with_client: bool| {
            let mut form = Zeroizing::new(String::from("grant_type=refresh_token"));
            let mut add = |name: &str, value: &str| {
                form.push('&');
                form.push_str(name);
                form.push('=');
                form.push_str(&escaped(value));
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
                escaped(&self.client_id),
                escaped(self.client_secret.expose())
            ));
            let header = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
            let (status, answer) = self.ask(endpoint, Some(form(false)), header.ok()).await?;
            if status.is_success() {
                return Ok(answer);
            }
        }
        let (status, answer) = self.ask(endpoint, Some(form(true)), None).await?;
        if status.is_success() {
            return Ok(answer);
        }
        let code = member(&answer, "error").and_then(Node::as_str);
        let code = code.map(|code| navicert_types::redact::terminal(code).chars().take(64).collect());
        Err(OidcError::Refused { status: status.as_u16(), code })
    }

    /// One question to the provider, over https alone: what is sent is worth a login.
    async fn ask(
        &self,
        url: &str,
        form: Option<Bytes>,
        authorization: Option<HeaderValue>,
    ) -> Result<(StatusCode, Node), OidcError> {
        let unreachable = |reason: &dyn fmt::Display| OidcError::Unreachable(reason.to_string());
        let address = Address::parse(url).map_err(|_| unreachable(&"its address is no URL"))?;
        if address.scheme != "https" {
            return Err(unreachable(&"its address is not https"));
        }
        let path = if address.path.is_empty() { "/" } else { address.path };
        let settings = Settings {
            trust: self.trust.clone(),
            proxy: ProxyChoice::Environment(self.proxies.clone()),
            ..Settings::new(format!("https://{}", address.host))
        };
        let nobody = Arc::new(Fixed::new(Credential::anonymous()));
        let transport =
            Transport::new(settings, nobody, self.around.clone()).map_err(|error| unreachable(&error))?;
        let mut request = match form {
            Some(form) => Request::post(path)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(Body::from(form)),
            None => Request::get(path).body(Body::empty()),
        }
        .map_err(|_| unreachable(&"its address is no URL"))?;
        if let Some(value) = authorization {
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let response = transport.send(request).await.map_err(|error| unreachable(&error))?;
        let status = response.status();
        let collected = Limited::new(response.into_body(), LARGEST).collect().await;
        let body = Zeroizing::new(collected.map(|all| all.to_bytes().to_vec()).unwrap_or_default());
        Ok((status, parse(&body, Syntax::Json).unwrap_or_default()))
    }
}

impl CredentialSource for Oidc {
    fn ready(&self) -> Option<Arc<Credential>> {
        let credential = self.current.load_full()?;
        let now = self.around.clock.now().saturating_add(LEEWAY).ok()?;
        credential.expires.is_some_and(|end| now < end).then_some(credential)
    }

    fn current(&self, _: Asking) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(async move {
            match self.ready() {
                Some(credential) => Ok(credential),
                None => Ok(Box::pin(self.renew()).await?),
            }
        })
    }

    /// As upstream: what a server says does not change when a token is renewed.
    fn refused(
        &self,
        _: Generation,
        _: Refused,
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

/// As forms want it.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}
