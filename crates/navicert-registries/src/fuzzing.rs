//! Entry functions for fuzz targets, which cannot reach private modules: bytes in, verdict out.

use std::io::{self, Read, Write};

use crate::http::{HttpUrl, UrlScheme, wire};

/// The HTTP response in `bytes`, which arrive in pieces of at most `piece_bytes`; `None` if it is invalid or its body
/// exceeds `max_body_bytes`.
pub fn http_response(bytes: &[u8], piece_bytes: usize, max_body_bytes: usize) -> Option<FuzzedResponse> {
    let mut peer = Peer { rest: bytes, size: piece_bytes.max(1) };
    let response = wire::exchange(&mut peer, b"", max_body_bytes).ok()?;
    Some((response.status, response.headers, response.body.expose().clone()))
}

/// Status, headers and body.
pub type FuzzedResponse = (u16, Vec<(String, String)>, Vec<u8>);

/// The parts of an endpoint's URL; `None` if it is invalid.
pub fn endpoint_url(text: &str) -> Option<FuzzedUrl> {
    let url = HttpUrl::parse(text).ok()?;
    let scheme = if url.scheme == UrlScheme::Https { "https" } else { "http" };
    Some(FuzzedUrl {
        written: format!("{scheme}://{}{}", url.authority(), url.target),
        shown: url.to_string(),
        joined: url.join("/x").to_string(),
        host: url.host,
        port: url.port,
        target: url.target,
    })
}

/// The parts of an endpoint's URL, and its written forms.
#[derive(Debug, PartialEq, Eq)]
pub struct FuzzedUrl {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query.
    pub target: String,
    /// The whole URL.
    pub written: String,
    /// What errors show.
    pub shown: String,
    /// With another path.
    pub joined: String,
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
