//! Incremental check of the framing of HTTP/1.1 requests: bytes in, verdict out. Keeps no copy of a request: the state
//! between two reads is a position and, inside a line that decides about the framing, the first bytes of that line.

use memchr::{memchr, memchr2};

/// Position in the byte stream of requests.
#[derive(Default)]
pub(crate) struct RequestFraming {
    position: FramePosition,
    head: HeadScan,
    /// The part of the current line received so far, where the whole line matters.
    partial: Vec<u8>,
}

/// What an inspection found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inspection {
    /// The bytes may be passed on; those of a violation have been overwritten.
    Passed,
    /// A request head is larger than the limit.
    HeadTooLarge,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FramePosition {
    #[default]
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

/// Why the bytes are not passed on.
#[derive(Debug, PartialEq, Eq)]
enum Violation {
    /// A message that parsers may frame differently.
    Ambiguous,
    /// A head above the limit.
    HeadTooLarge,
}

use Violation::Ambiguous;

/// What the head received so far says about the framing.
#[derive(Default)]
struct HeadScan {
    /// Bytes of this head.
    bytes: usize,
    line: LineScan,
    /// The last byte was a carriage return.
    after_return: bool,
    length: Option<u64>,
    is_chunked: bool,
    is_upgrade: bool,
}

/// Position in a line of a head that is not complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LineScan {
    /// At the start of the head.
    #[default]
    HeadStart,
    /// In the request line; its first bytes are in `partial`.
    Request,
    /// At the start of a later line.
    LineStart,
    /// In a field name; its first bytes are in `partial`.
    Name,
    /// In a field that decides about the framing; all of it is in `partial`.
    FramingField,
    /// In the value of another field.
    Value,
}

/// Maximum length of a line in a chunked body, and of a field that decides about the framing of a request.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// Length of the longest field name that decides about the framing: `transfer-encoding`.
const MAX_FRAMING_NAME_BYTES: usize = 17;

/// Capacity that is kept for the next request.
const MAX_KEPT_BYTES: usize = 32;

const CONNECT: &[u8] = b"CONNECT ";

impl RequestFraming {
    /// Scans the next bytes. Overwrites everything from the first violation on with NULs.
    pub(crate) fn inspect(&mut self, mut bytes: &mut [u8], max_head: usize) -> Inspection {
        while !bytes.is_empty() {
            match self.advance(bytes, max_head) {
                Ok(used) => bytes = bytes.get_mut(used..).unwrap_or_default(),
                Err(violation) => {
                    *self = RequestFraming { position: FramePosition::Rejected, ..RequestFraming::default() };
                    bytes.fill(0);
                    return match violation {
                        Ambiguous => Inspection::Passed,
                        Violation::HeadTooLarge => Inspection::HeadTooLarge,
                    };
                }
            }
        }
        Inspection::Passed
    }

    /// Bytes of a head that is not complete; 0 between requests and inside bodies.
    pub(super) fn unfinished_bytes(&self) -> usize {
        self.head.bytes
    }

    /// Consumes one element, or what has arrived of it, and returns its length.
    fn advance(&mut self, bytes: &[u8], max_head: usize) -> Result<usize, Violation> {
        match self.position {
            FramePosition::Upgraded => Ok(bytes.len()),
            FramePosition::Rejected => Err(Ambiguous),
            FramePosition::Head => self.head(bytes, max_head),
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

    /// A request head, line by line. A violation concerns all of it that is in `bytes`.
    fn head(&mut self, bytes: &[u8], max_head: usize) -> Result<usize, Violation> {
        let mut used = 0usize;
        while let Some(rest) = bytes.get(used..).filter(|rest| !rest.is_empty()) {
            let end = memchr(b'\n', rest);
            let part = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            let consumed = end.map_or(rest.len(), |end| end.saturating_add(1));
            used = used.saturating_add(consumed);
            self.head.bytes = self.head.bytes.saturating_add(consumed);
            if self.head.bytes > max_head {
                return Err(Violation::HeadTooLarge);
            }
            if end.is_none() {
                self.head.continue_line(part, &mut self.partial)?;
            } else if self.head.end_line(part, &mut self.partial)? {
                self.position = self.head.finish()?;
                self.head = HeadScan::default();
                self.partial.shrink_to(MAX_KEPT_BYTES);
                break;
            }
        }
        Ok(used)
    }

    /// A line of a chunked body.
    fn line(
        &mut self,
        bytes: &[u8],
        next: impl FnOnce(&[u8]) -> Result<FramePosition, Violation>,
    ) -> Result<usize, Violation> {
        let Some(end) = memchr(b'\n', bytes) else {
            self.partial.extend_from_slice(bytes);
            return if self.partial.len() > MAX_LINE_BYTES { Err(Ambiguous) } else { Ok(bytes.len()) };
        };
        let mut line = std::mem::take(&mut self.partial);
        line.extend_from_slice(bytes.get(..end).unwrap_or_default());
        let line = line.strip_suffix(b"\r").filter(|line| !line.contains(&b'\r')).ok_or(Ambiguous)?;
        self.position = next(line)?;
        Ok(end.saturating_add(1))
    }
}

impl HeadScan {
    /// A part of a line that ends with the data. Carriage return and line feed are allowed only as a pair, NUL not at
    /// all.
    fn continue_line(&mut self, part: &[u8], partial: &mut Vec<u8>) -> Result<(), Violation> {
        if self.after_return {
            return Err(Ambiguous);
        }
        let (text, has_return) = match part.strip_suffix(b"\r") {
            Some(text) => (text, true),
            None => (part, false),
        };
        self.after_return = has_return;
        self.text(text, partial)
    }

    /// The last part of a line, before its line feed. Returns whether it ends the head.
    fn end_line(&mut self, part: &[u8], partial: &mut Vec<u8>) -> Result<bool, Violation> {
        let text = match (self.after_return, part) {
            (true, []) => part,
            (true, _) => return Err(Ambiguous),
            (false, part) => part.strip_suffix(b"\r").ok_or(Ambiguous)?,
        };
        self.after_return = false;
        match self.line {
            LineScan::LineStart if text.is_empty() => return Ok(true),
            LineScan::LineStart => self.whole_field(text)?,
            _ => {
                self.text(text, partial)?;
                match self.line {
                    // An empty line before a request, which hyper skips, or a field without a colon.
                    LineScan::HeadStart | LineScan::LineStart | LineScan::Name => return Err(Ambiguous),
                    LineScan::Request => self.is_upgrade = partial.starts_with(CONNECT),
                    LineScan::FramingField => self.framing_field(partial)?,
                    LineScan::Value => {}
                }
                partial.clear();
            }
        }
        self.line = LineScan::LineStart;
        Ok(false)
    }

    /// A field that arrived in one piece.
    fn whole_field(&mut self, line: &[u8]) -> Result<(), Violation> {
        if memchr2(b'\r', 0, line).is_some() {
            return Err(Ambiguous);
        }
        let (name, _) = parse_field(line)?;
        match is_framing_name(name) {
            true if line.len() > MAX_LINE_BYTES => Err(Ambiguous),
            true => self.framing_field(line),
            false => Ok(()),
        }
    }

    /// Text of the current line.
    fn text(&mut self, text: &[u8], partial: &mut Vec<u8>) -> Result<(), Violation> {
        if text.is_empty() {
            return Ok(());
        }
        if memchr2(b'\r', 0, text).is_some() {
            return Err(Ambiguous);
        }
        match self.line {
            LineScan::HeadStart | LineScan::Request => {
                self.line = LineScan::Request;
                let missing = CONNECT.len().saturating_sub(partial.len()).min(text.len());
                partial.extend_from_slice(text.get(..missing).unwrap_or_default());
                // A fragment, which a client must not send and hyper drops (S258).
                memchr2(b'#', b'\t', text).map_or(Ok(()), |_| Err(Ambiguous))
            }
            LineScan::LineStart | LineScan::Name => self.name(text, partial),
            LineScan::FramingField => {
                partial.extend_from_slice(text);
                if partial.len() > MAX_LINE_BYTES { Err(Ambiguous) } else { Ok(()) }
            }
            LineScan::Value => Ok(()),
        }
    }

    /// Text that begins or continues a field name.
    fn name(&mut self, text: &[u8], partial: &mut Vec<u8>) -> Result<(), Violation> {
        self.line = LineScan::Name;
        let end = text.iter().position(|byte| !is_token_byte(*byte));
        let name = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
        // One more than needed, so that a longer name is not mistaken for its prefix.
        let missing = MAX_FRAMING_NAME_BYTES.saturating_add(1).saturating_sub(partial.len()).min(name.len());
        partial.extend_from_slice(name.get(..missing).unwrap_or_default());
        let Some(end) = end else { return Ok(()) };
        // White space before the colon or at the start of a line (obsolete line folding) is ambiguous.
        if partial.is_empty() || text.get(end) != Some(&b':') {
            return Err(Ambiguous);
        }
        if !is_framing_name(partial) {
            self.line = LineScan::Value;
            partial.clear();
            return Ok(());
        }
        self.line = LineScan::FramingField;
        partial.extend_from_slice(text.get(end..).unwrap_or_default());
        if partial.len() > MAX_LINE_BYTES { Err(Ambiguous) } else { Ok(()) }
    }

    /// A complete field that decides about the framing.
    fn framing_field(&mut self, line: &[u8]) -> Result<(), Violation> {
        let (name, value) = parse_field(line)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            let digits = Some(value).filter(|value| value.iter().all(u8::is_ascii_digit));
            let number = digits.and_then(|value| std::str::from_utf8(value).ok()?.parse::<u64>().ok());
            if self.length.replace(number.ok_or(Ambiguous)?).is_some() {
                return Err(Ambiguous);
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Ambiguous);
            }
            self.is_chunked = true;
        } else {
            self.is_upgrade = true;
        }
        Ok(())
    }

    /// What follows this complete head.
    fn finish(&self) -> Result<FramePosition, Violation> {
        match (self.length, self.is_chunked) {
            (Some(_), true) => Err(Ambiguous),
            _ if self.is_upgrade => Ok(FramePosition::Upgraded),
            (_, true) => Ok(FramePosition::ChunkSize),
            (None | Some(0), false) => Ok(FramePosition::Head),
            (Some(length), false) => Ok(FramePosition::Body(length)),
        }
    }
}

fn is_framing_name(name: &[u8]) -> bool {
    let names: [&[u8]; 3] = [b"content-length", b"transfer-encoding", b"upgrade"];
    names.iter().any(|framing| framing.eq_ignore_ascii_case(name))
}

/// Name and value of a header field. Rejects leading white space (obsolete line folding) and white space before the
/// colon.
fn parse_field(line: &[u8]) -> Result<(&[u8], &[u8]), Violation> {
    let end = line.iter().position(|byte| !is_token_byte(*byte)).ok_or(Ambiguous)?;
    let (name, value) = line.split_at_checked(end).ok_or(Ambiguous)?;
    let value = value.strip_prefix(b":").filter(|_| !name.is_empty()).ok_or(Ambiguous)?;
    Ok((name, value.trim_ascii()))
}

/// Whether the byte is a `tchar` (RFC 9110). Looked up, because it is called for each byte of each name.
fn is_token_byte(byte: u8) -> bool {
    const LOWER: u64 = token_bits(0);
    const UPPER: u64 = token_bits(64);
    let bits = if byte < 64 { LOWER } else { UPPER };
    byte.is_ascii() && bits >> (byte & 63) & 1 == 1
}

/// One bit for each of the 64 bytes from `first` on: whether it is a `tchar`.
const fn token_bits(first: u8) -> u64 {
    let (mut bits, mut offset) = (0, 0);
    while offset < 64 {
        if let b'a'..=b'z'
        | b'A'..=b'Z'
        | b'0'..=b'9'
        | b'!'
        | b'#'..=b'\''
        | b'*'
        | b'+'
        | b'-'
        | b'.'
        | b'^'..=b'`'
        | b'|'
        | b'~' = first + offset
        {
            bits |= 1 << offset;
        }
        offset += 1;
    }
    bits
}

/// Accepts hexadecimal digits only. Chunk extensions are unused in practice and have been abused for smuggling.
fn parse_chunk_size(line: &[u8]) -> Result<u64, Violation> {
    let is_plain = !line.is_empty() && line.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(line).ok().filter(|_| is_plain).ok_or(Ambiguous)?;
    u64::from_str_radix(text, 16).map_err(|_| Ambiguous)
}

#[cfg(test)]
mod tests;
