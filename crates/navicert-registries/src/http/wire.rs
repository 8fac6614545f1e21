//! HTTP/1.1 on any stream: writes one request and reads one response with size limits.

use std::io;

use navicert_types::Secret;
use navicert_types::proxy::Proxy;
use zeroize::Zeroizing;

use super::dial::Stream;
use super::{HttpRequest, HttpResponse};

/// Maximum size of a response header.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Maximum number of header fields.
const MAX_HEADERS: usize = 96;
/// Maximum number of interim (1xx) responses to skip.
const MAX_INTERIM_RESPONSES: usize = 8;

/// Why reading a response failed.
#[derive(Debug)]
pub(crate) enum WireError {
    /// An error of the operating system or TLS.
    Io(io::Error),
    /// The response exceeds its size limit.
    TooLarge,
    /// The connection was closed too early.
    Ended(&'static str),
    /// The response is not valid HTTP.
    Malformed(&'static str),
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        WireError::Io(error)
    }
}

/// Encodes a request, for a server or for a proxy that forwards it; `None` if a header value contains a control character.
pub(super) fn encode(request: &HttpRequest, forwarder: Option<&Proxy>) -> Option<Secret<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(1024));
    bytes.extend_from_slice(request.method.as_bytes());
    bytes.push(b' ');
    if forwarder.is_some() {
        bytes.extend_from_slice(b"http://");
        bytes.extend_from_slice(request.url.authority().as_bytes());
    }
    bytes.extend_from_slice(request.url.target.as_bytes());
    bytes.extend_from_slice(b" HTTP/1.1\r\nhost: ");
    bytes.extend_from_slice(request.url.authority().as_bytes());
    bytes.extend_from_slice(b"\r\nconnection: close\r\n");
    let authorization = forwarder.and_then(Proxy::authorization);
    let authorization = authorization.as_ref().map(|value| ("proxy-authorization", value));
    for (name, value) in request.headers.iter().map(|(name, value)| (*name, value)).chain(authorization) {
        // A token from a file may contain anything; a line break would start another header field.
        if value.expose().bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return None;
        }
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.expose().as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    if let Some(body) = &request.body {
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.expose().len()).as_bytes());
        bytes.extend_from_slice(body.expose());
    } else if request.method == "GET" {
        bytes.extend_from_slice(b"\r\n");
    } else {
        bytes.extend_from_slice(b"content-length: 0\r\n\r\n");
    }
    Some(Secret::new(std::mem::take(&mut *bytes)))
}

/// Sends a request and reads the response with a body of at most `max_body_bytes`.
pub(crate) fn exchange(
    stream: &mut dyn Stream,
    request: &[u8],
    max_body_bytes: usize,
) -> Result<HttpResponse, WireError> {
    stream.write_all(request)?;
    stream.flush()?;
    let mut input = ResponseReader {
        stream,
        buffer: Zeroizing::new(Vec::with_capacity(4096)),
        start: 0,
        truncated: false,
    };
    for _ in 0..MAX_INTERIM_RESPONSES {
        let head = input.head()?;
        if (100..200).contains(&head.status) {
            continue;
        }
        let body = input.body(&head, max_body_bytes)?;
        return Ok(HttpResponse { status: head.status, headers: head.headers, body });
    }
    Err(WireError::Malformed("too many interim responses"))
}

/// Status and header fields of a response.
struct Head {
    status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The content length; conflicting values are an error.
    fn length(&self) -> Result<Option<usize>, WireError> {
        let mut length = None;
        for value in self.values("content-length") {
            let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            let read: usize =
                if digits { value.parse().unwrap_or(usize::MAX) } else { return Err(BAD_LENGTH) };
            if length.is_some_and(|known| known != read) {
                return Err(BAD_LENGTH);
            }
            length = Some(read);
        }
        Ok(length)
    }
}

const BAD_LENGTH: WireError = WireError::Malformed("invalid content-length");

/// Buffers the bytes read from the stream.
struct ResponseReader<'a> {
    stream: &'a mut dyn Stream,
    buffer: Zeroizing<Vec<u8>>,
    start: usize,
    /// The peer closed without a TLS close_notify, so the response may have been truncated by an attacker.
    truncated: bool,
}

impl ResponseReader<'_> {
    /// Reads more bytes; returns false at the end of the stream.
    fn fill(&mut self) -> Result<bool, WireError> {
        let mut piece = Zeroizing::new([0; 8192]);
        loop {
            match self.stream.read(&mut piece[..]) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    self.buffer.extend_from_slice(piece.get(..read).unwrap_or_default());
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.truncated = true;
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn unused(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    fn head(&mut self) -> Result<Head, WireError> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut response = httparse::Response::new(&mut headers);
            let parsed = response.parse(self.unused());
            match parsed {
                Ok(httparse::Status::Complete(length)) => {
                    let head = Head {
                        status: response.code.unwrap_or_default(),
                        headers: response.headers.iter().map(text_of).collect(),
                    };
                    self.start += length;
                    return Ok(head);
                }
                Ok(httparse::Status::Partial) if self.unused().len() <= MAX_HEAD_BYTES => {
                    if !self.fill()? {
                        return Err(WireError::Ended("connection closed in the middle of the head"));
                    }
                }
                Ok(httparse::Status::Partial) => return Err(WireError::TooLarge),
                Err(_) => return Err(WireError::Malformed("malformed header")),
            }
        }
    }

    fn body(&mut self, head: &Head, max_body_bytes: usize) -> Result<Secret<Vec<u8>>, WireError> {
        if matches!(head.status, 204 | 304) {
            return Ok(Secret::new(Vec::new()));
        }
        let length = head.length()?;
        let encodings: Vec<&str> = head.values("transfer-encoding").collect();
        match (encodings.as_slice(), length) {
            ([], Some(length)) if length > max_body_bytes => Err(WireError::TooLarge),
            ([], Some(length)) => self.exactly(length).map(Secret::new),
            ([], None) => self.until_end(max_body_bytes).map(Secret::new),
            ([one], None) if one.eq_ignore_ascii_case("chunked") => {
                self.chunks(max_body_bytes).map(Secret::new)
            }
            _ => Err(WireError::Malformed("unsupported transfer-encoding")),
        }
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>, WireError> {
        while self.unused().len() < length {
            if !self.fill()? {
                return Err(WireError::Ended("connection closed in the middle of the body"));
            }
        }
        let body = self.unused().get(..length).unwrap_or_default().to_vec();
        self.start += length;
        Ok(body)
    }

    fn until_end(&mut self, max_body_bytes: usize) -> Result<Vec<u8>, WireError> {
        while self.unused().len() <= max_body_bytes {
            if !self.fill()? {
                let cut = WireError::Ended("connection closed without TLS close_notify");
                return if self.truncated { Err(cut) } else { Ok(self.unused().to_vec()) };
            }
        }
        Err(WireError::TooLarge)
    }

    fn chunks(&mut self, max_body_bytes: usize) -> Result<Vec<u8>, WireError> {
        let mut body = Zeroizing::new(Vec::new());
        loop {
            let size = self.chunk_size()?;
            if size == 0 {
                // Trailers are ignored.
                return Ok(std::mem::take(&mut *body));
            }
            if size > max_body_bytes.saturating_sub(body.len()) {
                return Err(WireError::TooLarge);
            }
            body.extend_from_slice(&Zeroizing::new(self.exactly(size)?));
            if self.exactly(2)? != b"\r\n" {
                return Err(WireError::Malformed("missing chunk terminator"));
            }
        }
    }

    fn chunk_size(&mut self) -> Result<usize, WireError> {
        loop {
            match httparse::parse_chunk_size(self.unused()) {
                Ok(httparse::Status::Complete((length, size))) => {
                    self.start += length;
                    return Ok(usize::try_from(size).unwrap_or(usize::MAX));
                }
                Ok(httparse::Status::Partial) if self.unused().len() < 1024 => {
                    if !self.fill()? {
                        return Err(WireError::Ended("connection closed in the middle of the body"));
                    }
                }
                _ => return Err(WireError::Malformed("invalid chunk size")),
            }
        }
    }
}

fn text_of(header: &httparse::Header<'_>) -> (String, String) {
    (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    /// A peer that sends a fixed text, a few bytes at a time.
    struct ScriptedPeer<'a>(&'a [u8]);

    impl Read for ScriptedPeer<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let size = self.0.len().min(buffer.len()).min(7);
            let (now, later) = self.0.split_at(size);
            buffer[..size].copy_from_slice(now);
            self.0 = later;
            Ok(size)
        }
    }

    impl Write for ScriptedPeer<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn read(answer: &str) -> Result<(u16, String), WireError> {
        let response = exchange(&mut ScriptedPeer(answer.as_bytes()), b"", 20)?;
        Ok((response.status, String::from_utf8(response.body.expose().clone()).unwrap()))
    }

    #[test]
    fn reads_every_framing() {
        for (answer, status, body) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloX", 200, "hello"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello", 200, "hello"),
            ("HTTP/1.0 404 Nope\r\n\r\nto the end", 404, "to the end"),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 None\r\n\r\n", 204, ""),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\na: b\r\n\r\n",
                200,
                "hello",
            ),
        ] {
            let (got, text) = read(answer).unwrap();
            assert_eq!((got, text.as_str()), (status, body), "{answer:?}");
        }
    }

    #[test]
    fn enforces_the_size_limit() {
        for answer in [
            "HTTP/1.1 200 OK\r\ncontent-length: 21\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n123456789012345678901234567890",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n14\r\n12345678901234567890\r\n1\r\n",
        ] {
            assert!(matches!(read(answer), Err(WireError::TooLarge)), "{answer:?}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(2 * MAX_HEAD_BYTES));
        assert!(matches!(read(&endless), Err(WireError::TooLarge)));
    }

    #[test]
    fn rejects_invalid_http_without_panic() {
        for answer in [
            "",
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: \r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        ] {
            assert!(matches!(read(answer), Err(WireError::Malformed(_) | WireError::Ended(_))), "{answer:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            let _ = exchange(&mut ScriptedPeer(&bytes), b"", 64);
            let framed = [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", bytes.as_slice()].concat();
            let _ = exchange(&mut ScriptedPeer(&framed), b"", 64);
        }
    }
}
