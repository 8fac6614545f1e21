//! The layer and its service: one decision per request, then the inner service or a 401.

use std::fmt;
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{AUTHORIZATION, Entry, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use http::{Request, Response, StatusCode};
use navicert_authn::AuthenticatedUser;
use navicert_authn::jwks::IssuerHealth;
use navicert_client::credential::BoxFuture;
use tower_layer::Layer;
use tower_service::Service;

use crate::authenticate::{RequestAuthenticator, RequestDecision};
use crate::builder::{AuthnLayerBuilder, AuthnLayerError};

/// A layer that authenticates requests. Clones share configuration, keys and cached decisions.
///
/// A request with a valid bearer token is passed on with an [`AuthenticatedUser`] in its extensions. Every other request is
/// answered with 401, `WWW-Authenticate: Bearer` and an empty body; the reason is logged at level `debug`. With
/// [`MissingToken::Anonymous`](crate::MissingToken::Anonymous) a request without a bearer token is passed on without a user.
///
/// The user of an outer layer is replaced or removed: the extension is always this layer's.
#[derive(Clone, Debug)]
pub struct AuthnLayer(Arc<RequestAuthenticator>);

impl AuthnLayer {
    /// Authenticates with the `AuthenticationConfiguration` of a file, under profile `hardened`. The file is reloaded when it
    /// changes.
    ///
    /// Call it inside a tokio runtime: it spawns the tasks that refresh keys and watch the file. They end with the last clone
    /// of the layer and its services.
    ///
    /// # Errors
    /// [`AuthnLayerError`]: the file cannot be read or is invalid, or there is no runtime.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, AuthnLayerError> {
        AuthnLayer::builder().config(path).build()
    }

    /// Sets more than a file.
    pub fn builder() -> AuthnLayerBuilder {
        AuthnLayerBuilder::default()
    }

    pub(crate) fn new(authenticator: RequestAuthenticator) -> Self {
        AuthnLayer(Arc::new(authenticator))
    }

    /// The health of every issuer, by its URL, for a readiness check.
    pub fn health(&self) -> Vec<(String, IssuerHealth)> {
        self.0.health()
    }

    /// Whether the tokens of every issuer can be verified.
    pub fn is_ready(&self) -> bool {
        self.health().iter().all(|(_, health)| health.is_ready)
    }
}

impl<S> Layer<S> for AuthnLayer {
    type Service = AuthnService<S>;

    fn layer(&self, inner: S) -> AuthnService<S> {
        AuthnService { authenticator: Arc::clone(&self.0), inner }
    }
}

/// The service of [`AuthnLayer`].
#[derive(Clone)]
pub struct AuthnService<S> {
    authenticator: Arc<RequestAuthenticator>,
    inner: S,
}

/// Omits the inner service, which need not implement `Debug`.
impl<S> fmt::Debug for AuthnService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthnService").field("authenticator", &self.authenticator).finish_non_exhaustive()
    }
}

impl<S, RequestBody, ResponseBody> Service<Request<RequestBody>> for AuthnService<S>
where
    S: Service<Request<RequestBody>, Response = Response<ResponseBody>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    RequestBody: Send + 'static,
    ResponseBody: Default,
{
    type Response = Response<ResponseBody>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<ResponseBody>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let authenticator = Arc::clone(&self.authenticator);
        // The service that was polled ready takes the request; its clone takes the next.
        let next = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, next);
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            head.extensions.remove::<AuthenticatedUser>();
            match authenticator.authenticate(&head.headers).await {
                RequestDecision::Authenticated(user) => {
                    head.extensions.insert(user);
                }
                RequestDecision::Anonymous => {}
                RequestDecision::Rejected(reason) => {
                    tracing::debug!(event = "http_request_rejected", reason, "rejected HTTP request");
                    return Ok(unauthorized());
                }
            }
            mark_sensitive(&mut head.headers);
            inner.call(Request::from_parts(head, body)).await
        })
    }
}

/// The same response for every reason: it tells nothing about the configuration.
// S271
fn unauthorized<B: Default>() -> Response<B> {
    let mut response = Response::new(B::default());
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Keeps the token out of the `Debug` output of headers, which inner layers may log.
fn mark_sensitive(headers: &mut HeaderMap) {
    if let Entry::Occupied(mut values) = headers.entry(AUTHORIZATION) {
        values.iter_mut().for_each(|value| value.set_sensitive(true));
    }
}
