//! A tower layer that authenticates the requests of kube's own transport with a navicert credential source.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use kube::client::Body;
use navicert_client::credential::{
    BoxFuture, Credential, CredentialSource, Generation, RejectedResponse, Rejection, RequestOrigin,
};
use navicert_client::transport::attach;
use navicert_types::error_chain;
use tokio::sync::Mutex;
use tower_layer::Layer;
use tower_service::Service;

use crate::error::AuthLayerError;

/// A boxed error, as tower defines it.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Attaches the token of a credential source to requests, for programs that keep kube's own transport.
///
/// After a 401 the credential is refreshed, and the request is sent once more if its body is in memory. A request that
/// already has an `Authorization` header keeps it, and its 401 is returned as it is.
///
/// A client certificate belongs to the connection, which a layer does not open: a credential with one is an error
/// ([`AuthLayerError::ClientCertificate`]). Use [`ClientBuilder`](crate::ClientBuilder) for certificates, and wherever you
/// need not keep kube's transport.
///
/// The layer does not know the server: give kube a configuration of the same server over https, without credentials of
/// its own.
///
/// ```no_run
/// use navicert_client::{Client, Config};
/// use navicert_kube::AuthLayer;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let source = Client::builder(Config::infer()?).credential_source();
/// let mut config = kube::Config::infer().await?;
/// config.auth_info = kube::config::AuthInfo::default();
/// let client = kube::client::ClientBuilder::try_from(config)?.with_layer(&AuthLayer::new(source)).build();
/// # let _: kube::Client = client; Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct AuthLayer {
    source: Arc<dyn CredentialSource>,
}

impl AuthLayer {
    /// Attaches credentials of this source, for example that of `navicert_client::ClientBuilder::credential_source`.
    pub fn new(source: Arc<dyn CredentialSource>) -> Self {
        AuthLayer { source }
    }
}

impl<S> Layer<S> for AuthLayer {
    type Service = AuthService<S>;

    fn layer(&self, service: S) -> AuthService<S> {
        AuthService { source: Arc::clone(&self.source), service: Arc::new(Mutex::new(service)) }
    }
}

/// The service of [`AuthLayer`].
///
/// The inner service is shared rather than cloned, because kube's is not `Clone`. It is locked until it is ready for a
/// request, not while the request is sent.
pub struct AuthService<S> {
    source: Arc<dyn CredentialSource>,
    service: Arc<Mutex<S>>,
}

impl<S> Clone for AuthService<S> {
    fn clone(&self) -> Self {
        AuthService { source: Arc::clone(&self.source), service: Arc::clone(&self.service) }
    }
}

/// Omits the inner service, which need not implement `Debug`.
impl<S> fmt::Debug for AuthService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthService").field("source", &self.source).finish_non_exhaustive()
    }
}

impl<S, B> Service<Request<Body>> for AuthService<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    /// Always ready: each request waits for the inner service when it is sent.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { service.send_with_refresh(request).await })
    }
}

impl<S, B> AuthService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
{
    /// Attaches the credential and sends the request; if the credential is rejected, refreshes it and retries once.
    // C430, C432
    async fn send_with_refresh(&self, request: Request<Body>) -> Result<Response<B>, BoxError> {
        if request.headers().contains_key(AUTHORIZATION) {
            return self.send(request).await; // C471
        }
        let origin = request.extensions().get::<RequestOrigin>().copied().unwrap_or_default();
        let credential = self.credential(origin).await?;
        let retry_parts = RetryParts::new(&request);
        let response = self.send_as(&credential, request).await?;
        let Some(rejection) = rejection_in(&response) else { return Ok(response) };
        let new = self.refresh(credential.generation, rejection).await;
        let (Some(new), Some(again)) = (new, retry_parts) else { return Ok(response) };
        check(&new)?;
        // Releases the connection before the second attempt.
        drop(response);
        let response = self.send_as(&new, again.into_request()).await?;
        if let Some(rejection) = rejection_in(&response) {
            // The source learns of it, so that it does not return this credential for ever. No third attempt.
            self.refresh(new.generation, rejection).await;
        }
        Ok(response)
    }

    async fn credential(&self, origin: RequestOrigin) -> Result<Arc<Credential>, AuthLayerError> {
        let credential = match self.source.cached() {
            Some(credential) => credential,
            None => self.source.get(origin).await.map_err(AuthLayerError::Credentials)?,
        };
        check(&credential)?;
        Ok(credential)
    }

    async fn refresh(&self, rejected: Generation, rejection: Rejection) -> Option<Arc<Credential>> {
        let refreshed = self.source.refresh_rejected(rejected, rejection).await;
        refreshed.unwrap_or_else(|error| {
            tracing::warn!(
                event = "credential_refresh_failed",
                error = error_chain(&error),
                "failed to refresh rejected credential"
            );
            None
        })
    }

    async fn send_as(
        &self,
        credential: &Credential,
        mut request: Request<Body>,
    ) -> Result<Response<B>, BoxError> {
        attach(credential, request.headers_mut());
        self.send(request).await
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<B>, BoxError> {
        let response = {
            let mut service = self.service.lock().await;
            poll_fn(|context| service.poll_ready(context)).await.map_err(Into::into)?;
            service.call(request)
        };
        response.await.map_err(Into::into)
    }
}

/// A certificate would be silently missing: the server would see another user, or none.
fn check(credential: &Credential) -> Result<(), AuthLayerError> {
    if credential.identity.is_some() { Err(AuthLayerError::ClientCertificate) } else { Ok(()) }
}

/// How a response rejects the credential; `None` if it does not.
fn rejection_in<B>(response: &Response<B>) -> Option<Rejection> {
    (response.status() == StatusCode::UNAUTHORIZED).then(|| {
        let head = RejectedResponse { status: response.status(), headers: response.headers().clone() };
        Rejection::Unauthorized(Some(Arc::new(head)))
    })
}

/// What it takes to send a request again. The credential is not part of it.
struct RetryParts(Parts, Body);

impl RetryParts {
    /// `None` for a body that is streamed.
    fn new(request: &Request<Body>) -> Option<Self> {
        let body = request.body().try_clone()?;
        let mut copy = Request::new(());
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.version_mut() = request.version();
        *copy.headers_mut() = request.headers().clone();
        *copy.extensions_mut() = request.extensions().clone();
        Some(RetryParts(copy.into_parts().0, body))
    }

    fn into_request(self) -> Request<Body> {
        Request::from_parts(self.0, self.1)
    }
}
