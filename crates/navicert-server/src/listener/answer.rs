//! An answer's body together with the news that its connection is in use.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::places::Busy;
use crate::forward::ReplyBody;

/// An answer that is being sent; until it is dropped, its connection is in use.
pub(super) struct Answer {
    body: ReplyBody,
    _busy: Busy,
}

impl Answer {
    pub(super) fn new(body: ReplyBody, busy: Busy) -> Self {
        Answer { body, _busy: busy }
    }
}

impl Body for Answer {
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
