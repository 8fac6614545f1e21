//! For whoever uses kube-rs: a `kube::Client` that sends its requests through navicert.
//!
//! ```text
//! kube::Client ──▶ Service ──▶ navicert_client::Transport
//! (typed API)      (bodies)    (credentials, rotation, 401)
//! ```
//!
//! The plugin runs when the first request needs it and once for all that wait; a 401 refreshes and the request is sent
//! once more; a new client certificate gets new connections and watches end with an error that informers retry.
//!
//! ```no_run
//! # async fn example(transport: navicert_client::transport::Transport) -> Result<(), kube::Error> {
//! let client = navicert_kube::client(transport, "default");
//! let version = client.apiserver_version().await?;
//! # let _ = version; Ok(()) }
//! ```
//!
//! This crate adapts and holds no logic.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use http_body::Body as _;
use navicert_client::credential::BoxFuture;
use navicert_client::transport::{Body, ResponseBody, Transport, TransportError};

/// A client that sends its requests through `transport`. Objects without a namespace are looked for in this one.
///
/// Call it inside a tokio runtime: `kube::Client` starts a task.
pub fn client(transport: Transport, default_namespace: impl Into<String>) -> kube::Client {
    kube::Client::new(Service(transport), default_namespace)
}

/// A [`Transport`] that takes kube's requests: for whoever puts layers of their own around it.
#[derive(Clone, Debug)]
pub struct Service(Transport);

impl Service {
    /// Around this transport.
    pub fn new(transport: Transport) -> Self {
        Service(transport)
    }
}

impl tower_service::Service<Request<kube::client::Body>> for Service {
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

/// What kube holds in memory stays bytes, so that the request can be sent again; the rest streams.
fn body(body: kube::client::Body) -> Body {
    let Some(mut copy) = body.try_clone() else { return Body::stream(body) };
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(&mut copy).poll_frame(&mut context) {
        Poll::Ready(None) => Body::empty(),
        Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
            Ok(bytes) => Body::from(bytes),
            Err(_) => Body::stream(body),
        },
        // Not what a body that can be cloned does.
        Poll::Ready(Some(Err(_))) | Poll::Pending => Body::stream(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kube_holds_in_memory_can_be_sent_again() {
        for text in ["", "{}"] {
            let converted = body(kube::client::Body::from(text.as_bytes().to_vec()));
            assert!(converted.try_clone().is_some(), "{text:?}");
            let length = u64::try_from(text.len()).unwrap();
            assert_eq!(converted.size_hint().exact(), Some(length));
        }
    }
}
