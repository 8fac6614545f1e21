//! HTTP/1.1 that can be read in one way only. hyper repairs some ambiguities silently (a length beside a transfer encoding,
//! bare line feeds); a proxy should not, because whoever stands before or behind it may repair them differently
//! (structured-authentication.md A75, S244). So the bytes are framed here once more, strictly, and where they break a rule
//! hyper is shown a NUL instead, which it answers with a 400 and the end of the connection.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use memchr::{memchr, memchr2, memmem};
use navicert_client::when_rung::Ring;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream of requests, each with one meaning.
pub(super) struct OneMeaning<S> {
    stream: S,
    /// Rings when there may be something to read.
    ring: Ring,
    frames: Frames,
}

impl<S> OneMeaning<S> {
    /// `limit` is how long a head may be before it is given up here; hyper should give it up earlier, with better words.
    pub(super) fn new(stream: S, limit: usize) -> Self {
        OneMeaning { stream, ring: Ring::default(), frames: Frames::new(limit.saturating_mul(2)) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for OneMeaning<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let OneMeaning { stream, ring, frames } = &mut *self;
        let before = buffer.filled().len();
        ready!(ring.when_rung(context, |context| Pin::new(stream).poll_read(context, buffer)))?;
        if let Some(new) = buffer.filled_mut().get_mut(before..) {
            frames.inspect(new);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for OneMeaning<S> {
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

/// Where in a stream of requests we are.
struct Frames {
    place: Place,
    /// A head or line that came in pieces.
    begun: Vec<u8>,
    limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Head,
    Body(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
    /// Another protocol was asked for: what follows is no request, whatever the answer (S252).
    Another,
    /// A rule was broken.
    Broken,
}

/// A broken rule.
#[derive(Debug, PartialEq, Eq)]
struct Ambiguous;

/// The longest line within a chunked body.
const LONGEST_LINE: usize = 8 * 1024;

impl Frames {
    fn new(limit: usize) -> Self {
        Frames { place: Place::Head, begun: Vec::new(), limit }
    }

    /// Looks at the next bytes; from the piece that breaks a rule on, they become NULs.
    fn inspect(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            match self.step(bytes) {
                Ok(used) => bytes = bytes.get_mut(used..).unwrap_or_default(),
                Err(Ambiguous) => {
                    self.place = Place::Broken;
                    self.begun = Vec::new();
                    bytes.fill(0);
                    return;
                }
            }
        }
    }

    /// Takes one piece off the front: how many bytes it has.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, Ambiguous> {
        match self.place {
            Place::Another => Ok(bytes.len()),
            Place::Broken => Err(Ambiguous),
            Place::Head => self.head(bytes),
            Place::Body(left) => Ok(self.skip(bytes, left, Place::Body, Place::Head)),
            Place::Chunk(left) => Ok(self.skip(bytes, left, Place::Chunk, Place::ChunkEnd)),
            Place::ChunkSize => self.line(bytes, |line| match chunk_size(line)? {
                0 => Ok(Place::Trailer),
                size => Ok(Place::Chunk(size)),
            }),
            Place::ChunkEnd => self.line(bytes, |line| match line {
                [] => Ok(Place::ChunkSize),
                _ => Err(Ambiguous),
            }),
            Place::Trailer => self.line(bytes, |line| match line {
                [] => Ok(Place::Head),
                line => field(line).map(|_| Place::Trailer),
            }),
        }
    }

    fn skip(&mut self, bytes: &[u8], left: u64, same: fn(u64) -> Place, next: Place) -> usize {
        let used = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let left = left.saturating_sub(u64::try_from(used).unwrap_or(u64::MAX));
        self.place = if left == 0 { next } else { same(left) };
        used
    }

    /// A head, mostly in one piece; then nothing is copied.
    fn head(&mut self, bytes: &[u8]) -> Result<usize, Ambiguous> {
        if self.begun.is_empty() {
            if let Some(end) = end_of_head(bytes) {
                self.place = judge(bytes.get(..end).unwrap_or_default())?;
                return Ok(end);
            }
        } else {
            // The end may have begun in the piece before.
            let tail = self.begun.len().saturating_sub(3);
            let mut seam: Vec<u8> = self.begun.get(tail..).unwrap_or_default().to_vec();
            let overlap = seam.len();
            seam.extend_from_slice(bytes);
            if let Some(end) = end_of_head(&seam) {
                let used = end.saturating_sub(overlap);
                self.begun.extend_from_slice(bytes.get(..used).unwrap_or_default());
                self.place = judge(&std::mem::take(&mut self.begun))?;
                return Ok(used);
            }
        }
        // hyper would take a bare line feed for an end of line, and two for the end of the head.
        bare_ends(self.begun.last().copied(), bytes)?;
        self.begun.extend_from_slice(bytes);
        if self.begun.len() > self.limit { Err(Ambiguous) } else { Ok(bytes.len()) }
    }

    /// A line within a chunked body.
    fn line(
        &mut self,
        bytes: &[u8],
        next: impl FnOnce(&[u8]) -> Result<Place, Ambiguous>,
    ) -> Result<usize, Ambiguous> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            self.begun.extend_from_slice(bytes);
            return if self.begun.len() > LONGEST_LINE { Err(Ambiguous) } else { Ok(bytes.len()) };
        };
        let mut line = std::mem::take(&mut self.begun);
        line.extend_from_slice(bytes.get(..end).unwrap_or_default());
        let line = line.strip_suffix(b"\r").filter(|line| !line.contains(&b'\r')).ok_or(Ambiguous)?;
        self.place = next(line)?;
        Ok(end.saturating_add(1))
    }
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    memmem::find(bytes, b"\r\n\r\n").and_then(|start| start.checked_add(4))
}

/// What comes behind a whole head.
fn judge(head: &[u8]) -> Result<Place, Ambiguous> {
    let (request, mut rest) = next_line(head)?;
    // hyper skips empty lines before a request; and it drops a fragment, which nobody may send (S258).
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
        let (name, value) = field(line)?;
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
        _ if another => Ok(Place::Another),
        (_, true) => Ok(Place::ChunkSize),
        (None | Some(0), false) => Ok(Place::Head),
        (Some(length), false) => Ok(Place::Body(length)),
    }
}

/// Takes a line off the front. Every carriage return and line feed belongs to a pair, and NUL to nobody.
fn next_line(bytes: &[u8]) -> Result<(&[u8], &[u8]), Ambiguous> {
    let end = memchr(b'\n', bytes).ok_or(Ambiguous)?;
    let (line, rest) = bytes.split_at_checked(end).ok_or(Ambiguous)?;
    let line = line.strip_suffix(b"\r").ok_or(Ambiguous)?;
    if memchr2(b'\r', 0, line).is_some() {
        return Err(Ambiguous);
    }
    Ok((line, rest.get(1..).unwrap_or_default()))
}

/// A header's name and value. A line that begins with white space would continue the line before; white space before the
/// colon would make another name.
fn field(line: &[u8]) -> Result<(&[u8], &[u8]), Ambiguous> {
    let end = line.iter().position(|byte| !is_in_name(*byte)).ok_or(Ambiguous)?;
    let (name, value) = line.split_at_checked(end).ok_or(Ambiguous)?;
    let value = value.strip_prefix(b":").filter(|_| !name.is_empty()).ok_or(Ambiguous)?;
    Ok((name, value.trim_ascii()))
}

/// Whether a header's name may have it.
fn is_in_name(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

/// Every carriage return and line feed belongs to a pair; a last carriage return may still get its line feed.
fn bare_ends(before: Option<u8>, bytes: &[u8]) -> Result<(), Ambiguous> {
    let mut before = before.unwrap_or_default();
    for byte in bytes {
        if (before == b'\r') != (*byte == b'\n') || *byte == 0 {
            return Err(Ambiguous);
        }
        before = *byte;
    }
    Ok(())
}

/// Hexadecimal digits and nothing else: extensions of chunks are unused, and have been abused.
fn chunk_size(line: &[u8]) -> Result<u64, Ambiguous> {
    let is_plain = !line.is_empty() && line.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(line).ok().filter(|_| is_plain).ok_or(Ambiguous)?;
    u64::from_str_radix(text, 16).map_err(|_| Ambiguous)
}

#[cfg(test)]
mod tests;
