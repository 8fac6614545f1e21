//! Streams bodies in both directions without buffering, except small request bodies, which can be replayed with a
//! refreshed credential.
// S253, S254

use http::{Extensions, Request, Response, Uri, Version, request};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use navicert_client::credential::BoxFuture;
use navicert_client::transport::{Body, OutgoingRequest};

/// Body of a response: streamed from the API server, or created here.
pub use navicert_client::transport::ResponseBody as ReplyBody;

use super::headers;
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

/// The request body to send.
pub(super) async fn buffer_or_stream(body: Incoming) -> Result<Body, Problem> {
    if body.size_hint().exact().is_some_and(|size| size <= MAX_REPLAY_BYTES) {
        let whole = body.collect().await.map_err(|_| Problem::Malformed("incomplete request body"))?;
        Ok(Body::from(whole.to_bytes()))
    } else {
        Ok(Body::stream(body))
    }
}

/// Prepares the response for the client. hyper flushes whenever the body is pending, so watch events are not delayed.
///
/// Aborts the body, visibly to the client, once `deadline` completes.
pub(super) fn prepare_response(response: &mut Response<ReplyBody>, deadline: Option<Deadline>) {
    headers::strip_response(response.headers_mut());
    *response.extensions_mut() = Extensions::new();
    *response.version_mut() = Version::default();
    if let Some(deadline) = deadline {
        response.body_mut().abort_after(deadline);
    }
}

/// Completes when the maximum duration is over.
pub(super) type Deadline = BoxFuture<'static, ()>;
