//! Entry functions for fuzz targets, which cannot reach private modules: bytes in, verdict out.

use std::net::SocketAddr;
use std::task::{Context, Poll, Waker};

use http::header::{HeaderName, HeaderValue};
use http::request;

use crate::forward::{ForwardRules, headers};
use crate::listener::{Inspection, RequestFraming, read_proxy_header};
use crate::problem::Problem;

/// The bytes that the HTTP/1.1 parser receives when a client sends `bytes` in pieces of at most `piece_bytes`.
pub fn strict_http1(bytes: &[u8], piece_bytes: usize, max_head_bytes: usize) -> Vec<u8> {
    let mut framing = RequestFraming::default();
    let mut received = Vec::new();
    for piece in bytes.chunks(piece_bytes.max(1)) {
        let start = received.len();
        received.extend_from_slice(piece);
        let Some(piece) = received.get_mut(start..) else { break };
        if framing.inspect(piece, max_head_bytes) == Inspection::HeadTooLarge {
            received.truncate(start);
            break;
        }
    }
    received
}

/// The source address in a PROXY protocol header and the bytes after the header; `None` for an invalid header.
pub fn proxy_header(bytes: &[u8]) -> Option<(Option<SocketAddr>, &[u8])> {
    let mut rest = bytes;
    let mut reading = Box::pin(read_proxy_header(&mut rest));
    let read = match reading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(read) => read.ok()?,
        Poll::Pending => return None,
    };
    drop(reading);
    Some((read, rest))
}

/// Checks a request head and rewrites it as it is sent to the API server, with these identity headers.
///
/// # Errors
/// The response to a rejected request.
pub fn forward_head(
    head: &mut request::Parts,
    rules: &ForwardRules,
    identity: Vec<(HeaderName, HeaderValue)>,
) -> Result<(), Problem> {
    headers::check(head, rules)?;
    head.uri = headers::target(head)?;
    headers::strip_request(&mut head.headers, rules);
    headers::write_identity(&mut head.headers, identity)
}
