//! Strict HTTP/1.1 framing. hyper accepts some ambiguous messages (`Content-Length` beside `Transfer-Encoding`, bare
//! line feeds). A proxy must not: another proxy or server in the chain may parse them differently, which enables
//! request smuggling. This module checks the framing and replaces the bytes of a violation with NULs; hyper then
//! responds 400 and closes the connection.
// structured-authentication.md A75, S244

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use memchr::{memchr, memchr2, memmem};
use navicert_client::wake_gate::PollGate;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that lets only unambiguously framed requests through.
pub(super) struct StrictHttp1<S> {
    stream: S,
    /// Skips reads until the stream has signalled readiness.
    read_gate: PollGate,
    framing: RequestFraming,
}

impl<S> StrictHttp1<S> {
    /// `limit` bounds the request head. Twice that is scanned here, so that hyper rejects a long head first, with its
    /// own response.
    pub(super) fn new(stream: S, limit: usize) -> Self {
        StrictHttp1 {
            stream,
            read_gate: PollGate::default(),
            framing: RequestFraming::new(limit.saturating_mul(2)),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StrictHttp1<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let StrictHttp1 { stream, read_gate: ring, framing: frames } = &mut *self;
        let before = buffer.filled().len();
        ready!(ring.poll_if_woken(context, |context| Pin::new(stream).poll_read(context, buffer)))?;
        if let Some(new) = buffer.filled_mut().get_mut(before..) {
            frames.inspect(new);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StrictHttp1<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}

/// Position in the byte stream of requests.
struct RequestFraming {
    position: FramePosition,
    /// A head or line received so far.
    partial: Vec<u8>,
    limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramePosition {
    Head,
    Body(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
    /// An upgrade was requested: the following bytes are not HTTP, whatever the response is.
    // S252
    Upgraded,
    /// A rule was violated.
    Rejected,
}

/// A message that parsers may frame differently.
#[derive(Debug, PartialEq, Eq)]
struct Ambiguous;

/// Maximum length of a line in a chunked body.
const MAX_CHUNK_LINE_BYTES: usize = 8 * 1024;

impl RequestFraming {
    fn new(limit: usize) -> Self {
        RequestFraming { position: FramePosition::Head, partial: Vec::new(), limit }
    }

    /// Scans the next bytes. Overwrites everything from the first violation on with NULs.
    fn inspect(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            match self.advance(bytes) {
                Ok(used) => bytes = bytes.get_mut(used..).unwrap_or_default(),
                Err(Ambiguous) => {
                    self.position = FramePosition::Rejected;
                    self.partial = Vec::new();
                    bytes.fill(0);
                    return;
                }
            }
        }
    }

    /// Consumes one element and returns its length.
    fn advance(&mut self, bytes: &[u8]) -> Result<usize, Ambiguous> {
        match self.position {
            FramePosition::Upgraded => Ok(bytes.len()),
            FramePosition::Rejected => Err(Ambiguous),
            FramePosition::Head => self.head(bytes),
            FramePosition::Body(left) => Ok(self.skip(bytes, left, FramePosition::Body, FramePosition::Head)),
            FramePosition::Chunk(left) => {
                Ok(self.skip(bytes, left, FramePosition::Chunk, FramePosition::ChunkEnd))
            }
            FramePosition::ChunkSize => self.line(bytes, |line| match parse_chunk_size(line)? {
                0 => Ok(FramePosition::Trailer),
                size => Ok(FramePosition::Chunk(size)),
            }),
            FramePosition::ChunkEnd => self.line(bytes, |line| match line {
                [] => Ok(FramePosition::ChunkSize),
                _ => Err(Ambiguous),
            }),
            FramePosition::Trailer => self.line(bytes, |line| match line {
                [] => Ok(FramePosition::Head),
                line => parse_field(line).map(|_| FramePosition::Trailer),
            }),
        }
    }

    fn skip(
        &mut self,
        bytes: &[u8],
        left: u64,
        same: fn(u64) -> FramePosition,
        next: FramePosition,
    ) -> usize {
        let used = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let left = left.saturating_sub(u64::try_from(used).unwrap_or(u64::MAX));
        self.position = if left == 0 { next } else { same(left) };
        used
    }

    /// A request head. Copied only if it arrives in several reads.
    fn head(&mut self, bytes: &[u8]) -> Result<usize, Ambiguous> {
        if self.partial.is_empty() {
            if let Some(end) = end_of_head(bytes) {
                self.position = check_head(bytes.get(..end).unwrap_or_default())?;
                return Ok(end);
            }
        } else {
            // The terminator may have started in the previous read.
            let tail = self.partial.len().saturating_sub(3);
            let mut seam: Vec<u8> = self.partial.get(tail..).unwrap_or_default().to_vec();
            let overlap = seam.len();
            seam.extend_from_slice(bytes);
            if let Some(end) = end_of_head(&seam) {
                let used = end.saturating_sub(overlap);
                self.partial.extend_from_slice(bytes.get(..used).unwrap_or_default());
                self.position = check_head(&std::mem::take(&mut self.partial))?;
                return Ok(used);
            }
        }
        // hyper accepts a bare line feed as line ending, and two as the end of the head.
        check_line_endings(self.partial.last().copied(), bytes)?;
        self.partial.extend_from_slice(bytes);
        if self.partial.len() > self.limit { Err(Ambiguous) } else { Ok(bytes.len()) }
    }

    /// A line of a chunked body.
    fn line(
        &mut self,
        bytes: &[u8],
        next: impl FnOnce(&[u8]) -> Result<FramePosition, Ambiguous>,
    ) -> Result<usize, Ambiguous> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            self.partial.extend_from_slice(bytes);
            return if self.partial.len() > MAX_CHUNK_LINE_BYTES { Err(Ambiguous) } else { Ok(bytes.len()) };
        };
        let mut line = std::mem::take(&mut self.partial);
        line.extend_from_slice(bytes.get(..end).unwrap_or_default());
        let line = line.strip_suffix(b"\r").filter(|line| !line.contains(&b'\r')).ok_or(Ambiguous)?;
        self.position = next(line)?;
        Ok(end.saturating_add(1))
    }
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    memmem::find(bytes, b"\r\n\r\n").and_then(|start| start.checked_add(4))
}

/// Checks a complete head and returns what follows it.
fn check_head(head: &[u8]) -> Result<FramePosition, Ambiguous> {
    let (request, mut rest) = next_line(head)?;
    // hyper skips empty lines before a request and drops a fragment, which a client must not send (S258).
    if request.is_empty() || memchr2(b'#', b'\t', request).is_some() {
        return Err(Ambiguous);
    }
    let (mut length, mut chunked, mut another) = (None, false, request.starts_with(b"CONNECT "));
    loop {
        let (line, after) = next_line(rest)?;
        if line.is_empty() {
            break;
        }
        rest = after;
        let (name, value) = parse_field(line)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            let digits = Some(value).filter(|value| value.iter().all(u8::is_ascii_digit));
            let number = digits.and_then(|value| std::str::from_utf8(value).ok()?.parse::<u64>().ok());
            if length.replace(number.ok_or(Ambiguous)?).is_some() {
                return Err(Ambiguous);
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Ambiguous);
            }
            chunked = true;
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            another = true;
        }
    }
    match (length, chunked) {
        (Some(_), true) => Err(Ambiguous),
        _ if another => Ok(FramePosition::Upgraded),
        (_, true) => Ok(FramePosition::ChunkSize),
        (None | Some(0), false) => Ok(FramePosition::Head),
        (Some(length), false) => Ok(FramePosition::Body(length)),
    }
}

/// Splits off the first line. Carriage return and line feed are allowed only as a pair, NUL not at all.
fn next_line(bytes: &[u8]) -> Result<(&[u8], &[u8]), Ambiguous> {
    let end = memchr(b'\n', bytes).ok_or(Ambiguous)?;
    let (line, rest) = bytes.split_at_checked(end).ok_or(Ambiguous)?;
    let line = line.strip_suffix(b"\r").ok_or(Ambiguous)?;
    if memchr2(b'\r', 0, line).is_some() {
        return Err(Ambiguous);
    }
    Ok((line, rest.get(1..).unwrap_or_default()))
}

/// Name and value of a header field. Rejects leading white space (obsolete line folding) and white space before the
/// colon.
fn parse_field(line: &[u8]) -> Result<(&[u8], &[u8]), Ambiguous> {
    let end = line.iter().position(|byte| !is_token_byte(*byte)).ok_or(Ambiguous)?;
    let (name, value) = line.split_at_checked(end).ok_or(Ambiguous)?;
    let value = value.strip_prefix(b":").filter(|_| !name.is_empty()).ok_or(Ambiguous)?;
    Ok((name, value.trim_ascii()))
}

/// Whether the byte is a `tchar` (RFC 9110).
fn is_token_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

/// Allows carriage return and line feed only as a pair; the data may end after a carriage return.
fn check_line_endings(before: Option<u8>, bytes: &[u8]) -> Result<(), Ambiguous> {
    let mut before = before.unwrap_or_default();
    for byte in bytes {
        if (before == b'\r') != (*byte == b'\n') || *byte == 0 {
            return Err(Ambiguous);
        }
        before = *byte;
    }
    Ok(())
}

/// Accepts hexadecimal digits only. Chunk extensions are unused in practice and have been abused for smuggling.
fn parse_chunk_size(line: &[u8]) -> Result<u64, Ambiguous> {
    let is_plain = !line.is_empty() && line.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(line).ok().filter(|_| is_plain).ok_or(Ambiguous)?;
    u64::from_str_radix(text, 16).map_err(|_| Ambiguous)
}

#[cfg(test)]
mod tests;
