//! Streams bodies in both directions without buffering, except small request bodies, which can be replayed with a
//! refreshed credential.
// S253, S254

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, Method, Request, Response, Uri, Version, request};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use navicert_client::credential::BoxFuture;
use navicert_client::transport::{Body, BodyEnd, OutgoingRequest};
use tokio::time::{Instant, Sleep};

/// Body of a response: streamed from the API server, or created here.
pub use navicert_client::transport::ResponseBody as ReplyBody;

use super::{headers, query};
use crate::fairness::{Admission, BodyReservation, FlowId};
use crate::limits::with_timeout;
use crate::problem::Problem;

/// Bodies up to this size are buffered, so that the request can be sent again after a credential refresh.
// C432
const MAX_REPLAY_BYTES: u64 = 64 * 1024;

/// An inbound request. Its head is boxed and stays in place until it is sent.
#[derive(Debug)]
pub struct Inbound {
    pub(super) request: Box<OutgoingRequest>,
    pub(super) body: Incoming,
}

impl Inbound {
    /// The request head.
    pub fn head(&self) -> &request::Parts {
        &self.request.head
    }
}

impl From<Request<Incoming>> for Inbound {
    fn from(request: Request<Incoming>) -> Self {
        let (head, body) = request.into_parts();
        Inbound { request: Box::new(OutgoingRequest { head, body: Body::empty() }), body }
    }
}

/// Sets the target and removes state of the client's connection.
pub(super) fn retarget(head: &mut request::Parts, target: Uri) {
    head.uri = target;
    head.version = Version::default();
    head.extensions = Extensions::new();
}

/// What a response is that outlives its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// A watch or a followed log. It may end after any event: clients continue with another request.
    Watch,
    /// Another body, which is incomplete if it ends early.
    Body,
    /// An upgraded connection.
    Tunnel,
}

/// Completes when a response has to end early, and says how its body ends.
pub type EarlyEnd = BoxFuture<'static, BodyEnd>;

/// Responses up to this size end soon by themselves.
const MAX_SHORT_RESPONSE_BYTES: u64 = 1024 * 1024;

/// Whether a request asks for a response without an end: a watch or a followed log.
pub(super) fn is_watch(head: &request::Parts) -> bool {
    let is_set = |query: &str| query::is_enabled(query, "watch") || query::is_enabled(query, "follow");
    head.method == Method::GET && (head.uri.query().is_some_and(is_set) || is_watch_path(head.uri.path()))
}

/// The deprecated form `/api/v1/watch/…`, `/apis/apps/v1/watch/…`.
fn is_watch_path(path: &str) -> bool {
    let mut segments = path.trim_start_matches('/').split('/');
    match segments.next() {
        Some("api") => segments.nth(1) == Some("watch"),
        Some("apis") => segments.nth(2) == Some("watch"),
        _ => false,
    }
}

/// The kind of a response that outlives its head; `None` for one that is complete or ends soon.
pub(super) fn kind(response: &Response<ReplyBody>, is_watch: bool) -> Option<StreamKind> {
    let body = response.body();
    match body.size_hint().exact() {
        Some(..=MAX_SHORT_RESPONSE_BYTES) => None,
        // It cannot be complete before its last byte.
        Some(_) => Some(StreamKind::Body),
        None if is_watch && response.status().is_success() => Some(StreamKind::Watch),
        None => Some(StreamKind::Body),
    }
}

/// The request body to send. A small one is received first, within the memory share of its flow and a time limit; the
/// reservation is returned with it.
pub(super) async fn buffer_or_stream(
    body: Incoming,
    flow: FlowId,
    admission: &Admission,
) -> Result<(Body, Option<BodyReservation<'_>>), Problem> {
    let size = body.size_hint().exact().filter(|size| *size <= MAX_REPLAY_BYTES);
    let Some(size) = size.and_then(|size| usize::try_from(size).ok()) else {
        return Ok((Body::stream(StreamedBody::new(body, admission.body_timeout())), None));
    };
    let reserved = admission.reserve_body(flow, size)?;
    let whole = with_timeout(admission.body_timeout(), body.collect()).await.ok_or(Problem::BodyTimeout)?;
    let whole = whole.map_err(|_| Problem::Malformed("incomplete request body"))?;
    Ok((Body::from(whole.to_bytes()), Some(reserved)))
}

/// A streamed request body, without its trailers. Fails when the client sends nothing for too long, because the request holds a seat.
struct StreamedBody {
    body: Incoming,
    timeout: Duration,
    /// Runs while the body is pending.
    timer: Option<Pin<Box<Sleep>>>,
}

impl StreamedBody {
    fn new(body: Incoming, timeout: Duration) -> Self {
        StreamedBody { body, timeout, timer: None }
    }
}

impl http_body::Body for StreamedBody {
    type Data = Bytes;
    type Error = StreamedBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamedBodyError>>> {
        let StreamedBody { body, timeout, timer } = &mut *self;
        while let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(context) {
            if matches!(&frame, Some(Ok(frame)) if frame.is_trailers()) {
                continue;
            }
            *timer = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(StreamedBodyError::Receive)));
        }
        let timer =
            timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + *timeout)));
        timer.as_mut().poll(context).map(|()| Some(Err(StreamedBodyError::Timeout)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A streamed request body ended early.
#[derive(Debug, thiserror::Error)]
enum StreamedBodyError {
    #[error("failed to receive the request body")]
    Receive(#[source] hyper::Error),
    #[error("timed out waiting for the request body")]
    Timeout,
}

/// Prepares the response for the client. hyper flushes whenever the body is pending, so watch events are not delayed.
///
/// Trailers are dropped. The body ends once `early_end` completes.
// S253
pub(super) fn prepare_response(response: &mut Response<ReplyBody>, early_end: Option<EarlyEnd>) {
    headers::strip_response(response.headers_mut());
    *response.extensions_mut() = Extensions::new();
    *response.version_mut() = Version::default();
    response.body_mut().drop_trailers();
    if let Some(early_end) = early_end {
        response.body_mut().end_with(early_end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_and_followed_logs_are_recognised() {
        for (method, target, expected) in [
            ("GET", "/api/v1/pods?watch=true", true),
            ("GET", "/api/v1/pods?limit=5&watch=1", true),
            ("GET", "/api/v1/watch/pods", true),
            ("GET", "/apis/apps/v1/watch/namespaces/a/deployments", true),
            ("GET", "/api/v1/namespaces/a/pods/b/log?follow=true", true),
            ("GET", "/api/v1/pods", false),
            ("GET", "/api/v1/pods?watch=false", false),
            ("GET", "/api/v1/namespaces/watch/pods", false),
            ("POST", "/api/v1/namespaces/a/pods/b/exec?watch=true", false),
        ] {
            let request = Request::builder().method(method).uri(target).body(()).unwrap();
            assert_eq!(is_watch(&request.into_parts().0), expected, "{method} {target}");
        }
    }
}
