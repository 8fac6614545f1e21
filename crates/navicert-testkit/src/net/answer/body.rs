//! The body of an answer, played part by part as the connection asks for it.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::Part;
use crate::net::watch::Subscription;

/// How much filler goes into one frame.
static FILLER: [u8; 64 * 1024] = [b' '; 64 * 1024];
/// How often a break lets the connection flush what came before it.
const FLUSHES: u8 = 8;

/// A body made of parts.
pub(crate) struct AnswerBody {
    parts: VecDeque<Part>,
    length: Option<u64>,
    now: Now,
}

/// The part being played, where playing it takes more than one poll.
enum Now {
    Next,
    Filling(u64),
    Waiting(Pin<Box<dyn Future<Output = ()> + Send>>),
    Breaking(u8),
    Watching(Subscription),
}

impl AnswerBody {
    pub(crate) fn new(parts: Vec<Part>) -> Self {
        AnswerBody { length: announced_length(&parts), parts: parts.into(), now: Now::Next }
    }

    /// Begins the next part; `None` at the end of the body.
    fn advance(&mut self) -> Option<Option<Frame<Bytes>>> {
        self.now = Now::Next;
        match self.parts.pop_front()? {
            Part::Bytes(bytes) if bytes.is_empty() => {}
            Part::Bytes(bytes) => return Some(Some(Frame::data(bytes))),
            Part::Trailers(trailers) => return Some(Some(Frame::trailers(trailers))),
            Part::Filler(length) => self.now = Now::Filling(length),
            Part::Gate(gate) => self.now = Now::Waiting(Box::pin(async move { gate.pass().await })),
            Part::Break => self.now = Now::Breaking(FLUSHES),
            Part::Watch(watch) => self.now = Now::Watching(watch.subscribe()),
        }
        Some(None)
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        loop {
            match &mut self.now {
                Now::Next | Now::Filling(0) => match self.advance() {
                    None => return Poll::Ready(None),
                    Some(Some(frame)) => return Poll::Ready(Some(Ok(frame))),
                    Some(None) => {}
                },
                Now::Filling(left) => {
                    let size = FILLER.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= size as u64;
                    return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&FILLER[..size])))));
                }
                Now::Waiting(gate) => {
                    ready!(gate.as_mut().poll(context));
                    self.now = Now::Next;
                }
                // hyper drops what it has buffered when a body fails; a pending poll makes it flush first.
                Now::Breaking(0) => return Poll::Ready(Some(Err(io::Error::other("cut off by the test")))),
                Now::Breaking(flushes) => {
                    *flushes -= 1;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Now::Watching(subscription) => match ready!(subscription.poll_next(context)) {
                    Some(Ok(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => self.now = Now::Next,
                },
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.now, Now::Next) && self.parts.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl fmt::Debug for AnswerBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AnswerBody").field("parts", &self.parts).finish_non_exhaustive()
    }
}

/// The length, where it is known before the body is played.
fn announced_length(parts: &[Part]) -> Option<u64> {
    parts.iter().try_fold(0u64, |sum, part| match part {
        Part::Bytes(bytes) => sum.checked_add(bytes.len() as u64),
        Part::Filler(u64::MAX) => None,
        Part::Filler(length) => sum.checked_add(*length),
        Part::Gate(_) => Some(sum),
        Part::Break | Part::Watch(_) | Part::Trailers(_) => None,
    })
}
