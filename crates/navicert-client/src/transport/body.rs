//! Request and response bodies.

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

/// How much of a compressed frame is decompressed at a time: even at a ratio of 1000:1 the output fits in memory.
const GZIP_CHUNK_BYTES: usize = 4 * 1024;

/// A request body. Bytes can be sent again, a stream cannot.
// C432
pub struct Body(Kind);

enum Kind {
    Full(Option<Bytes>),
    Stream(UnsyncBoxBody<Bytes, BoxError>),
}

impl Body {
    /// An empty body.
    pub const fn empty() -> Self {
        Body(Kind::Full(None))
    }

    /// A streaming body, which can be sent once.
    pub fn stream<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Body(Kind::Stream(body.map_err(Into::into).boxed_unsync()))
    }

    /// The bytes; `None` for a stream.
    pub(super) fn bytes(&self) -> Option<Bytes> {
        match &self.0 {
            Kind::Full(bytes) => Some(bytes.clone().unwrap_or_default()),
            Kind::Stream(_) => None,
        }
    }

    /// A copy; `None` for a stream.
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
        Body(Kind::Full(Some(bytes.into()).filter(|bytes: &Bytes| !bytes.is_empty())))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Full(bytes) => write!(f, "Body({} bytes)", bytes.as_ref().map_or(0, Bytes::len)),
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
            Kind::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Stream(stream) => Pin::new(stream).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Full(bytes) => bytes.is_none(),
            Kind::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => size_of_full(bytes.as_ref()),
            Kind::Stream(stream) => stream.size_hint(),
        }
    }
}

/// A response body: streamed from the server, or given as bytes. Once it is read to its end, its connection is reused.
pub struct ResponseBody {
    source: Source,
    /// When this future completes, the body ends.
    early_end: Option<BoxFuture<'static, BodyEnd>>,
    drops_trailers: bool,
}

/// How a body ends before the server ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// As if the server had ended it: with the last chunk in HTTP/1.1, with `END_STREAM` in HTTP/2.
    Finish,
    /// With an error, so that the receiver does not take the body for complete.
    Abort,
}

enum Source {
    Server(ServerBody),
    Full(Option<Bytes>),
}

impl ResponseBody {
    /// An empty body.
    pub const fn empty() -> Self {
        ResponseBody { source: Source::Full(None), early_end: None, drops_trailers: false }
    }

    /// A body of these bytes.
    pub fn full(bytes: Bytes) -> Self {
        let bytes = Some(bytes).filter(|bytes| !bytes.is_empty());
        ResponseBody { source: Source::Full(bytes), early_end: None, drops_trailers: false }
    }

    /// Ends the body once `early_end` completes, and closes its exchange with the server.
    pub fn end_with(&mut self, early_end: BoxFuture<'static, BodyEnd>) {
        self.early_end = Some(early_end);
    }

    /// Drops trailers.
    pub fn drop_trailers(&mut self) {
        self.drops_trailers = true;
    }

    pub(super) fn new(incoming: Incoming, exchange: Exchange) -> Self {
        let mut server = ServerBody { incoming, gzip: None, exchange };
        server.finish_if_ended();
        ResponseBody { source: Source::Server(server), early_end: None, drops_trailers: false }
    }

    /// Decompresses the data from now on.
    pub(super) fn decompress(&mut self) {
        if let Source::Server(server) = &mut self.source {
            server.gzip = Some(Box::default());
        }
    }

    /// Keeps a rotation from closing the connection until this body is read or dropped.
    pub(super) fn hold_connection(&mut self) {
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
        if let Some(early_end) = &mut self.early_end
            && let Poll::Ready(end) = early_end.as_mut().poll(context)
        {
            self.early_end = None;
            self.source = Source::Full(None);
            return Poll::Ready(match end {
                BodyEnd::Finish => None,
                BodyEnd::Abort => Some(Err(TransportError::Retired)),
            });
        }
        let drops_trailers = self.drops_trailers;
        match &mut self.source {
            Source::Server(server) => loop {
                match server.poll_frame(context) {
                    Poll::Ready(Some(Ok(frame))) if drops_trailers && frame.is_trailers() => {}
                    polled => return polled,
                }
            },
            Source::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Server(server) => server.is_end_stream(),
            Source::Full(bytes) => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Server(server) => server.size_hint(),
            Source::Full(bytes) => size_of_full(bytes.as_ref()),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Server(server) => {
                f.debug_struct("ResponseBody").field("gzip", &server.gzip.is_some()).finish_non_exhaustive()
            }
            Source::Full(bytes) => {
                write!(f, "ResponseBody({} bytes)", bytes.as_ref().map_or(0, Bytes::len))
            }
        }
    }
}

fn size_of_full(bytes: Option<&Bytes>) -> SizeHint {
    SizeHint::with_exact(bytes.map_or(0, Bytes::len).try_into().unwrap_or(u64::MAX))
}

/// A body streamed from a server.
struct ServerBody {
    incoming: Incoming,
    /// Boxed: it is large and rarely used.
    gzip: Option<Box<Gunzip>>,
    exchange: Exchange,
}

impl ServerBody {
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

impl Drop for ServerBody {
    fn drop(&mut self) {
        // A caller may stop reading after `content-length` bytes without polling for the end.
        self.finish_if_ended();
    }
}

/// Decompresses a gzip stream incrementally.
struct Gunzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    /// Compressed bytes not yet decompressed.
    compressed: Bytes,
    /// Whether any data came: an empty body is not a gzip stream, and not an error.
    started: bool,
    ended: bool,
}

impl Default for Gunzip {
    fn default() -> Self {
        Gunzip {
            decoder: MultiGzDecoder::new(Vec::new()),
            compressed: Bytes::new(),
            started: false,
            ended: false,
        }
    }
}

type FramePoll = Poll<Option<Result<Frame<Bytes>, TransportError>>>;

impl Gunzip {
    fn poll(&mut self, mut next: impl FnMut() -> FramePoll) -> FramePoll {
        if self.ended {
            return Poll::Ready(None);
        }
        loop {
            while !self.compressed.is_empty() {
                let chunk = self.compressed.split_to(self.compressed.len().min(GZIP_CHUNK_BYTES));
                match self.decompress(&chunk) {
                    Ok(decompressed) if decompressed.is_empty() => {}
                    Ok(decompressed) => return Poll::Ready(Some(Ok(Frame::data(decompressed)))),
                    Err(error) => return self.fail(error),
                }
            }
            match std::task::ready!(next()) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        self.started |= !data.is_empty();
                        self.compressed = data;
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

    fn decompress(&mut self, chunk: &[u8]) -> io::Result<Bytes> {
        self.decoder.write_all(chunk)?;
        self.decoder.flush()?;
        Ok(Bytes::from(std::mem::take(self.decoder.get_mut())))
    }

    /// Ends the stream; truncated compressed data is an error.
    fn finish(&mut self) -> FramePoll {
        if self.started
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
