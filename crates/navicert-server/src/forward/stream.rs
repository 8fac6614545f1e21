//! Bodies in both directions: chunk by chunk as they come, with nothing kept but what is small enough to be sent again
//! after a refreshed credential (S253, S254).

use http::{Extensions, Request, Response, Uri, Version, request};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use navicert_client::credential::BoxFuture;
use navicert_client::transport::{Body, Outgoing};

/// What a client is sent: the API server's answer as it comes, or one of our own.
pub use navicert_client::transport::ResponseBody as ReplyBody;

use super::headers;
use crate::problem::Problem;

/// A body up to this size is read before it is sent, so that a request that met an expired credential can be sent once
/// more (client-credentials.md C432).
const SMALL: u64 = 64 * 1024;

/// A request as it came in: small to hand on, since its head is on the heap, where it stays until it has gone out.
#[derive(Debug)]
pub struct Inbound {
    pub(super) request: Box<Outgoing>,
    pub(super) body: Incoming,
}

impl Inbound {
    /// What is asked for.
    pub fn head(&self) -> &request::Parts {
        &self.request.head
    }
}

impl From<Request<Incoming>> for Inbound {
    fn from(request: Request<Incoming>) -> Self {
        let (head, body) = request.into_parts();
        Inbound { request: Box::new(Outgoing { head, body: Body::empty() }), body }
    }
}

/// Nothing of what is between the client and us goes out.
pub(super) fn leave(head: &mut request::Parts, target: Uri) {
    head.uri = target;
    head.version = Version::default();
    head.extensions = Extensions::new();
}

/// What a request carries, as it goes out.
pub(super) async fn carried(body: Incoming) -> Result<Body, Problem> {
    if body.size_hint().exact().is_some_and(|size| size <= SMALL) {
        let whole = body.collect().await.map_err(|_| Problem::Malformed("the body breaks off"))?;
        Ok(Body::from(whole.to_bytes()))
    } else {
        Ok(Body::stream(body))
    }
}

/// The answer as it goes back. hyper flushes whenever the body has nothing more to give, so an event of a watch is on
/// its way before the next one exists.
///
/// Once `late` is done the answer breaks off, and is seen to break off.
pub(super) fn reply(answer: &mut Response<ReplyBody>, late: Option<Late>) {
    headers::clean_response(answer.headers_mut());
    *answer.extensions_mut() = Extensions::new();
    *answer.version_mut() = Version::default();
    if let Some(late) = late {
        answer.body_mut().break_off_after(late);
    }
}

/// Done when something has lasted long enough.
pub(super) type Late = BoxFuture<'static, ()>;
