//! Response body that keeps its connection marked as active.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use navicert_client::transport::ResponseBody as ReplyBody;

use super::connection_slots::ActiveRequest;

/// A response body; its connection counts as active until the body is dropped.
pub(super) struct TrackedBody {
    body: ReplyBody,
    _active: ActiveRequest,
}

impl TrackedBody {
    pub(super) fn new(body: ReplyBody, active: ActiveRequest) -> Self {
        TrackedBody { body, _active: active }
    }
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = <ReplyBody as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
