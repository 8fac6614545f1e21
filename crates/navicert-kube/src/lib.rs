//! Adapter for kube-rs: a `kube::Client` that sends its requests through navicert's transport.
//!
//! ```text
//! kube::Client ──▶ KubeService ──▶ navicert_client::Transport
//! (typed API)      (bodies)        (credentials, rotation, 401)
//! ```
//!
//! The plugin runs when the first request needs it, once for all waiting requests. A 401 refreshes the credential and the
//! request is retried once. A new client certificate gets new connections, and old watches end with an error that
//! informers retry.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = navicert_kube::try_default()?;
//! let version = client.apiserver_version().await?;
//! # let _ = version; Ok(()) }
//! ```
//!
//! This crate only converts types.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use http_body::Body as _;
use navicert_client::credential::BoxFuture;
use navicert_client::transport::{Body, BuildError, ResponseBody, Transport, TransportError};
use navicert_client::{Config, ConfigErrors};

/// Creates a client that sends its requests through `transport`, with this default namespace.
///
/// Call it inside a tokio runtime: `kube::Client` spawns a task.
pub fn client(transport: impl Into<Transport>, default_namespace: impl Into<String>) -> kube::Client {
    kube::Client::new(KubeService(transport.into()), default_namespace)
}

/// Creates a client from `KUBECONFIG`, `~/.kube/config` or the pod's service account, with its namespace. Plugins run as
/// the kuberc permits.
///
/// Call it inside a tokio runtime: `kube::Client` spawns a task.
///
/// # Errors
/// [`ClientError`]: no client can be built from the configuration.
pub fn try_default() -> Result<kube::Client, ClientError> {
    Ok(from_config(Config::options().kuberc_policy(None).resolve()?)?)
}

/// Creates a client from a configuration, with its namespace; without one, `default`.
///
/// Call it inside a tokio runtime: `kube::Client` spawns a task.
///
/// # Errors
/// [`BuildError`]: a file that was usable when the configuration was resolved no longer is.
pub fn from_config(config: Config) -> Result<kube::Client, BuildError> {
    let built = navicert_client::Client::new(config)?;
    let namespace = if built.namespace().is_empty() { "default" } else { built.namespace() }.to_owned();
    Ok(client(built, namespace))
}

/// Why there is no client.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The configuration has problems.
    Config(ConfigErrors),
    /// A file changed after it was checked.
    Build(BuildError),
}

impl From<ConfigErrors> for ClientError {
    fn from(errors: ConfigErrors) -> Self {
        ClientError::Config(errors)
    }
}

impl From<BuildError> for ClientError {
    fn from(error: BuildError) -> Self {
        ClientError::Build(error)
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Config(errors) => errors.fmt(f),
            ClientError::Build(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ClientError::Config(errors) => errors.source(),
            ClientError::Build(error) => error.source(),
        }
    }
}

/// A tower service that sends kube's requests through a [`Transport`], for use with tower layers.
#[derive(Clone, Debug)]
pub struct KubeService(Transport);

impl KubeService {
    /// Wraps a transport.
    pub fn new(transport: Transport) -> Self {
        KubeService(transport)
    }
}

impl tower_service::Service<Request<kube::client::Body>> for KubeService {
    type Response = Response<ResponseBody>;
    type Error = TransportError;
    type Future = BoxFuture<'static, Result<Response<ResponseBody>, TransportError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let transport = self.0.clone();
        Box::pin(async move { transport.send(request.map(body)).await })
    }
}

/// Converts a body. Bytes in memory stay bytes, so that the request can be retried; others are streamed.
fn body(body: kube::client::Body) -> Body {
    let Some(mut copy) = body.try_clone() else { return Body::stream(body) };
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(&mut copy).poll_frame(&mut context) {
        Poll::Ready(None) => Body::empty(),
        Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
            Ok(bytes) => Body::from(bytes),
            Err(_) => Body::stream(body),
        },
        // Does not happen for a body that can be cloned.
        Poll::Ready(Some(Err(_))) | Poll::Pending => Body::stream(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_memory_body_can_be_retried() {
        for text in ["", "{}"] {
            let converted = body(kube::client::Body::from(text.as_bytes().to_vec()));
            assert!(converted.try_clone().is_some(), "{text:?}");
            let length = u64::try_from(text.len()).unwrap();
            assert_eq!(converted.size_hint().exact(), Some(length));
        }
    }
}
