//! Bodies in both directions: what a request carries, and what an answer streams back.

use std::fmt;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;

use super::error::TransportError;
use super::pool::Exchange;
use crate::credential::BoxFuture;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How much of a compressed frame is expanded at a time: a thousandfold of it fits in memory.
const BITE: usize = 4 * 1024;

/// What a request carries. Bytes can be sent again, a stream cannot (C432).
pub struct Body(Kind);

enum Kind {
    Whole(Option<Bytes>),
    Stream(UnsyncBoxBody<Bytes, BoxError>),
}

impl Body {
    /// Nothing.
    pub const fn empty() -> Self {
        Body(Kind::Whole(None))
    }

    /// Something that comes piece by piece, once.
    pub fn stream<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Body(Kind::Stream(body.map_err(Into::into).boxed_unsync()))
    }

    /// What it consists of, unless it comes piece by piece.
    pub(super) fn bytes(&self) -> Option<Bytes> {
        match &self.0 {
            Kind::Whole(bytes) => Some(bytes.clone().unwrap_or_default()),
            Kind::Stream(_) => None,
        }
    }

    /// The same again, if it can be had again.
    pub fn try_clone(&self) -> Option<Self> {
        self.bytes().map(Body::from)
    }
}

impl Default for Body {
    fn default() -> Self {
        Body::empty()
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Body(Kind::Whole(Some(bytes.into()).filter(|bytes: &Bytes| !bytes.is_empty())))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Whole(bytes) => write!(f, "Body({} bytes)", bytes.as_ref().map_or(0, Bytes::len)),
            Kind::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Stream(stream) => Pin::new(stream).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_none(),
            Kind::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => size_of_whole(bytes.as_ref()),
            Kind::Stream(stream) => stream.size_hint(),
        }
    }
}

/// The body of an answer, as it comes, or one that somebody on the way gave. Read to its end, it gives its connection back for
/// the next request.
pub struct ResponseBody {
    source: Source,
    /// Done when it has lasted long enough.
    late: Option<BoxFuture<'static, ()>>,
}

enum Source {
    Server(FromServer),
    Whole(Option<Bytes>),
}

impl ResponseBody {
    /// Nothing.
    pub const fn empty() -> Self {
        ResponseBody { source: Source::Whole(None), late: None }
    }

    /// These bytes.
    pub fn whole(bytes: Bytes) -> Self {
        let bytes = Some(bytes).filter(|bytes| !bytes.is_empty());
        ResponseBody { source: Source::Whole(bytes), late: None }
    }

    /// Once `late` is done it breaks off, and is seen to break off.
    pub fn break_off_after(&mut self, late: BoxFuture<'static, ()>) {
        self.late = Some(late);
    }

    pub(super) fn new(incoming: Incoming, exchange: Exchange) -> Self {
        let mut server = FromServer { incoming, gzip: None, exchange };
        server.finish_if_ended();
        ResponseBody { source: Source::Server(server), late: None }
    }

    /// Expands what comes from now on.
    pub(super) fn decompress(&mut self) {
        if let Source::Server(server) = &mut self.source {
            server.gzip = Some(Box::default());
        }
    }

    /// Nobody closes the connection before this body has been read or dropped.
    pub(super) fn hold(&mut self) {
        if let Source::Server(server) = &mut self.source {
            server.exchange.hold();
        }
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        if self.late.as_mut().is_some_and(|late| late.as_mut().poll(context).is_ready()) {
            return Poll::Ready(Some(Err(TransportError::Retired)));
        }
        match &mut self.source {
            Source::Server(server) => server.poll_frame(context),
            Source::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Server(server) => server.is_end_stream(),
            Source::Whole(bytes) => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Server(server) => server.size_hint(),
            Source::Whole(bytes) => size_of_whole(bytes.as_ref()),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Server(server) => {
                f.debug_struct("ResponseBody").field("gzip", &server.gzip.is_some()).finish_non_exhaustive()
            }
            Source::Whole(bytes) => {
                write!(f, "ResponseBody({} bytes)", bytes.as_ref().map_or(0, Bytes::len))
            }
        }
    }
}

fn size_of_whole(bytes: Option<&Bytes>) -> SizeHint {
    SizeHint::with_exact(bytes.map_or(0, Bytes::len).try_into().unwrap_or(u64::MAX))
}

/// What a server sends.
struct FromServer {
    incoming: Incoming,
    /// On the heap: it is large, and mostly not there.
    gzip: Option<Box<Gunzip>>,
    exchange: Exchange,
}

impl FromServer {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> FramePoll {
        let Some(mut gzip) = self.gzip.take() else { return self.poll_incoming(context) };
        let polled = gzip.poll(|| self.poll_incoming(context));
        self.gzip = Some(gzip);
        polled
    }

    fn poll_incoming(&mut self, context: &mut Context<'_>) -> FramePoll {
        let mut incoming = Pin::new(&mut self.incoming);
        let frame = self.exchange.poll(context, |context| incoming.as_mut().poll_frame(context));
        Poll::Ready(match std::task::ready!(frame) {
            Some(Ok(frame)) => Some(Ok(frame)),
            Some(Err(error)) => Some(Err(self.exchange.explain(error))),
            None => {
                self.exchange.finish();
                None
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.gzip {
            None => self.incoming.is_end_stream(),
            Some(gzip) => gzip.ended,
        }
    }

    fn size_hint(&self) -> SizeHint {
        if self.gzip.is_some() { SizeHint::default() } else { self.incoming.size_hint() }
    }

    fn finish_if_ended(&mut self) {
        if self.incoming.is_end_stream() {
            self.exchange.finish();
        }
    }
}

impl Drop for FromServer {
    fn drop(&mut self) {
        // Who reads what `content-length` promised and not one frame more has read it all.
        self.finish_if_ended();
    }
}

/// Expands a gzip stream as it comes.
struct Gunzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    /// Compressed bytes that wait for their turn.
    rest: Bytes,
    /// Whether anything came at all: an empty body is no gzip stream, and no error either.
    begun: bool,
    ended: bool,
}

impl Default for Gunzip {
    fn default() -> Self {
        Gunzip { decoder: MultiGzDecoder::new(Vec::new()), rest: Bytes::new(), begun: false, ended: false }
    }
}

type FramePoll = Poll<Option<Result<Frame<Bytes>, TransportError>>>;

impl Gunzip {
    fn poll(&mut self, mut next: impl FnMut() -> FramePoll) -> FramePoll {
        if self.ended {
            return Poll::Ready(None);
        }
        loop {
            while !self.rest.is_empty() {
                let bite = self.rest.split_to(self.rest.len().min(BITE));
                match self.expand(&bite) {
                    Ok(expanded) if expanded.is_empty() => {}
                    Ok(expanded) => return Poll::Ready(Some(Ok(Frame::data(expanded)))),
                    Err(error) => return self.fail(error),
                }
            }
            match std::task::ready!(next()) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        self.begun |= !data.is_empty();
                        self.rest = data;
                    }
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                Some(Err(error)) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
                None => return self.finish(),
            }
        }
    }

    fn expand(&mut self, bite: &[u8]) -> io::Result<Bytes> {
        self.decoder.write_all(bite)?;
        self.decoder.flush()?;
        Ok(Bytes::from(std::mem::take(self.decoder.get_mut())))
    }

    /// A stream that breaks off inside the compressed data is an error, not an end.
    fn finish(&mut self) -> FramePoll {
        if self.begun
            && let Err(error) = self.decoder.try_finish()
        {
            return self.fail(error);
        }
        self.ended = true;
        let last = std::mem::take(self.decoder.get_mut());
        Poll::Ready((!last.is_empty()).then(|| Ok(Frame::data(Bytes::from(last)))))
    }

    fn fail(&mut self, error: io::Error) -> FramePoll {
        self.ended = true;
        Poll::Ready(Some(Err(TransportError::Decompress(error))))
    }
}
