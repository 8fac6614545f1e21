//! Bodies in both directions: chunk by chunk as they come, with nothing kept but what is small enough to be sent again
//! after a refreshed credential (S253, S254).

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, Uri, request};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use navicert_client::credential::BoxFuture;
use navicert_client::transport::{Body, ResponseBody, TransportError};

use super::headers;
use crate::problem::Problem;

/// A body up to this size is read before it is sent, so that a request that met an expired credential can be sent once
/// more (client-credentials.md C432).
const SMALL: u64 = 64 * 1024;

/// The request as it goes out.
pub(super) async fn outbound(
    head: request::Parts,
    target: Uri,
    body: Incoming,
) -> Result<Request<Body>, Problem> {
    let body = if body.is_end_stream() {
        Body::empty()
    } else if body.size_hint().exact().is_some_and(|size| size <= SMALL) {
        let whole = body.collect().await.map_err(|_| Problem::Malformed("the body breaks off"))?;
        Body::from(whole.to_bytes())
    } else {
        Body::stream(body)
    };
    let mut request = Request::new(body);
    *request.method_mut() = head.method;
    *request.uri_mut() = target;
    *request.headers_mut() = head.headers;
    Ok(request)
}

/// The answer as it goes back. hyper flushes whenever the body has nothing more to give, so an event of a watch is on
/// its way before the next one exists.
///
/// Once `late` is done the answer breaks off, and is seen to break off.
pub(super) fn reply(answer: Response<ResponseBody>, late: Option<Late>) -> Response<ReplyBody> {
    let (mut head, body) = answer.into_parts();
    headers::clean_response(&mut head.headers);
    let mut reply = Response::new(ReplyBody(match late {
        None => Kind::Upstream(body),
        Some(late) => Kind::Limited(Box::new((body, late))),
    }));
    *reply.status_mut() = head.status;
    *reply.headers_mut() = head.headers;
    reply
}

/// Done when something has lasted long enough.
pub(super) type Late = BoxFuture<'static, ()>;

/// What a client is sent: the API server's answer as it comes, or one of our own.
pub struct ReplyBody(Kind);

enum Kind {
    Upstream(ResponseBody),
    Limited(Box<(ResponseBody, Late)>),
    Whole(Option<Bytes>),
}

impl ReplyBody {
    /// Nothing.
    pub const fn empty() -> Self {
        ReplyBody(Kind::Whole(None))
    }

    /// These bytes.
    pub fn whole(bytes: Bytes) -> Self {
        ReplyBody(Kind::Whole(Some(bytes).filter(|bytes| !bytes.is_empty())))
    }
}

impl http_body::Body for ReplyBody {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        match &mut self.0 {
            Kind::Upstream(body) => Pin::new(body).poll_frame(context),
            Kind::Limited(limited) => {
                let (body, late) = &mut **limited;
                if late.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Some(Err(TransportError::Retired)));
                }
                Pin::new(body).poll_frame(context)
            }
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Upstream(body) => body.is_end_stream(),
            Kind::Limited(limited) => limited.0.is_end_stream(),
            Kind::Whole(bytes) => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Upstream(body) => body.size_hint(),
            Kind::Limited(limited) => limited.0.size_hint(),
            Kind::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len).try_into().unwrap_or(u64::MAX))
            }
        }
    }
}

impl fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Kind::Upstream(_) | Kind::Limited(_) => "ReplyBody(upstream)",
            Kind::Whole(_) => "ReplyBody(whole)",
        })
    }
}
