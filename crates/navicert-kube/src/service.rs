//! The service below a `kube::Client`: kube's bodies to navicert's, everything else is the transport.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use http_body::Body as _;
use navicert_client::credential::BoxFuture;
use navicert_client::transport::{Body, ResponseBody, Transport, TransportError};

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
