//! Entry functions for fuzz targets, which cannot reach private modules: bytes in, verdict out.

use std::io::{self, Read, Write};

use crate::http::{HttpResponse, wire};

/// The HTTP response in `bytes`, which arrive in pieces of at most `piece_bytes`; `None` if it is invalid or its body
/// exceeds `max_body_bytes`.
pub fn http_response(bytes: &[u8], piece_bytes: usize, max_body_bytes: usize) -> Option<HttpResponse> {
    wire::exchange(&mut Peer { rest: bytes, size: piece_bytes.max(1) }, b"", max_body_bytes).ok()
}

/// The text of the first element at a path of an XML document.
pub fn xml_text_at(document: &str, path: &[&str]) -> Option<String> {
    crate::ecr::xml::text_at(document, path)
}

/// A peer that sends at most `size` bytes at a time.
struct Peer<'a> {
    rest: &'a [u8],
    size: usize,
}

impl Read for Peer<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.size.min(buffer.len());
        self.rest.read(buffer.get_mut(..length).unwrap_or_default())
    }
}

impl Write for Peer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
