//! Opens a tunnel through a proxy: HTTP `CONNECT` (RFC 9110 §9.3.6) and SOCKS5 (RFC 1928, RFC 1929).

use std::io;
use std::net::IpAddr;

use navicert_types::Secret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Proxy, ProxyError, join};
use crate::transport::connection_io::Stream;

/// Limit for the header section of a response to `CONNECT`.
const MAX_HEADER_BYTES: usize = 16 * 1024;

/// Requests a tunnel from an HTTP proxy. Afterwards the stream leads to the server.
pub(in crate::transport) async fn connect(
    stream: &mut dyn Stream,
    proxy: &Proxy,
    host: &str,
    port: u16,
) -> Result<(), ProxyError> {
    let target = join(host, port);
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(authorization) = proxy.authorization() {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(authorization.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await?;
    stream.flush().await?;

    let head = read_head(stream).await?;
    let line = head.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/1."));
    match words.next().and_then(|code| code.parse::<u16>().ok()) {
        Some(200..=299) if is_http => Ok(()),
        Some(407) if is_http => Err(ProxyError::Credentials),
        Some(code) if is_http => {
            let phrase = http::StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason());
            Err(ProxyError::Rejected(format!("{code} {}", phrase.unwrap_or_default()).trim_end().to_owned()))
        }
        _ => Err(ProxyError::Protocol("HTTP")),
    }
}

/// Reads byte by byte: the bytes after the header section belong to the server.
async fn read_head(stream: &mut dyn Stream) -> Result<Vec<u8>, ProxyError> {
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_HEADER_BYTES {
            return Err(ProxyError::Protocol("HTTP"));
        }
        head.push(stream.read_u8().await?);
    }
    Ok(head)
}

/// Requests a connection from a SOCKS5 proxy, which resolves names.
pub(in crate::transport) async fn socks5(
    stream: &mut dyn Stream,
    proxy: &Proxy,
    host: &str,
    port: u16,
) -> Result<(), ProxyError> {
    let offer: &[u8] = if proxy.user.is_some() { &[5, 2, 0, 2] } else { &[5, 1, 0] };
    stream.write_all(offer).await?;
    stream.flush().await?;
    let mut choice = [0; 2];
    stream.read_exact(&mut choice).await?;
    match (choice, &proxy.user) {
        ([5, 0], _) => {}
        ([5, 2], Some((name, password))) => authenticate(stream, name, password).await?,
        ([5, _], _) => return Err(ProxyError::Credentials),
        _ => return Err(ProxyError::Protocol("SOCKS5")),
    }

    let mut request = vec![5, 1, 0];
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => {
            request.push(1);
            request.extend_from_slice(&address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            request.push(4);
            request.extend_from_slice(&address.octets());
        }
        Err(_) => {
            request.push(3);
            request.extend_from_slice(&length_prefixed(host)?);
        }
    }
    request.extend_from_slice(&port.to_be_bytes());
    stream.write_all(&request).await?;
    stream.flush().await?;
    read_reply(stream).await
}

async fn authenticate(
    stream: &mut dyn Stream,
    name: &str,
    password: &Secret<String>,
) -> Result<(), ProxyError> {
    let message = [&[1][..], &length_prefixed(name)?, &length_prefixed(password.expose())?].concat();
    stream.write_all(&message).await?;
    stream.flush().await?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await?;
    if answer == [1, 0] { Ok(()) } else { Err(ProxyError::Credentials) }
}

async fn read_reply(stream: &mut dyn Stream) -> Result<(), ProxyError> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let [5, code, _, kind] = head else { return Err(ProxyError::Protocol("SOCKS5")) };
    if code != 0 {
        let reason = match code {
            2 => "connection not allowed",
            3 => "network unreachable",
            4 => "host unreachable",
            5 => "connection refused",
            _ => "general failure",
        };
        return Err(ProxyError::Rejected(reason.to_owned()));
    }
    // The proxy's own bound address is read and ignored.
    let length = match kind {
        1 => 4,
        4 => 16,
        3 => usize::from(stream.read_u8().await?),
        _ => return Err(ProxyError::Protocol("SOCKS5")),
    };
    let mut rest = vec![0; length + 2];
    stream.read_exact(&mut rest).await?;
    Ok(())
}

/// A text preceded by its length in one byte.
fn length_prefixed(text: &str) -> Result<Vec<u8>, ProxyError> {
    let length = u8::try_from(text.len())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "longer than 255 bytes"))?;
    Ok([&[length], text.as_bytes()].concat())
}
