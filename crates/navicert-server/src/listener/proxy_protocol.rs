//! The PROXY protocol, versions 1 and 2. Reads exactly the header that a load balancer sends before the connection's
//! data; anything else closes the connection.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Signature of a version 2 header.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Maximum length of a version 1 header, line ending included.
const MAX_V1_HEADER_BYTES: usize = 107;
/// Maximum length of a version 2 address block with its extensions.
const MAX_V2_BODY_BYTES: usize = 4096;

/// Source address of the connection; `None` for a connection of the load balancer itself (health check).
pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<SocketAddr>> {
    let mut start = [0; 12];
    // The shortest header of either version has more than 12 bytes: `PROXY UNKNOWN\r\n`.
    stream.read_exact(&mut start).await?;
    match start {
        SIGNATURE => read_v2(stream).await,
        [b'P', b'R', b'O', b'X', b'Y', b' ', ..] => read_v1(&start, stream).await,
        _ => Err(malformed()),
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "invalid PROXY protocol header")
}

/// `PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n`
async fn read_v1(start: &[u8], stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<SocketAddr>> {
    let mut line = start.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() >= MAX_V1_HEADER_BYTES {
            return Err(malformed());
        }
        line.push(stream.read_u8().await?);
    }
    let line = std::str::from_utf8(&line).map_err(|_| malformed())?.trim_end_matches("\r\n");
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["PROXY", "UNKNOWN", ..] => Ok(None),
        ["PROXY", family @ ("TCP4" | "TCP6"), source, _, port, _] => {
            let address: IpAddr = source.parse().map_err(|_| malformed())?;
            let port = port.parse().map_err(|_| malformed())?;
            let fits = address.is_ipv4() == (*family == "TCP4");
            fits.then_some(Some(SocketAddr::new(address, port))).ok_or_else(malformed)
        }
        _ => Err(malformed()),
    }
}

async fn read_v2(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<SocketAddr>> {
    let (command, family) = (stream.read_u8().await?, stream.read_u8().await?);
    let length = usize::from(stream.read_u16().await?);
    if length > MAX_V2_BODY_BYTES {
        return Err(malformed());
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    match (command, family) {
        (0x20, _) => Ok(None),
        (0x21, 0x11) => {
            address::<4, 8>(&body).map(|(octets, port)| Some((Ipv4Addr::from(octets), port).into()))
        }
        (0x21, 0x21) => {
            address::<16, 32>(&body).map(|(octets, port)| Some((Ipv6Addr::from(octets), port).into()))
        }
        _ => Err(malformed()),
    }
}

/// The source address (`N` bytes) and the source port, which starts at `P`.
fn address<const N: usize, const P: usize>(body: &[u8]) -> io::Result<([u8; N], u16)> {
    let octets = body.first_chunk::<N>().ok_or_else(malformed)?;
    let port = body.get(P..).and_then(<[u8]>::first_chunk::<2>).ok_or_else(malformed)?;
    Ok((*octets, u16::from_be_bytes(*port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn parse(header: &[u8]) -> Option<Option<String>> {
        let mut bytes = [header, b"REST"].concat();
        let mut stream = bytes.as_slice();
        let read = read(&mut stream).await.ok()?;
        assert_eq!(stream, b"REST", "{}", header.escape_ascii());
        bytes.clear();
        Some(read.map(|address| address.to_string()))
    }

    fn v2_header(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, body].concat()
    }

    #[tokio::test]
    async fn reads_exactly_the_header_of_both_versions() {
        let v4 = [192, 0, 2, 1, 10, 0, 0, 1, 0xdc, 0x04, 0x01, 0xbb];
        let v6 = [&Ipv6Addr::LOCALHOST.octets()[..], &[0; 16], &[0, 80, 1, 187], b"more"].concat();
        for (header, expected) in [
            (b"PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\r\n".to_vec(), Some("192.0.2.1:56324")),
            (b"PROXY TCP6 2001:db8::1 ::1 1 2\r\n".to_vec(), Some("[2001:db8::1]:1")),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (v2_header(0x21, 0x11, &v4), Some("192.0.2.1:56324")),
            (v2_header(0x21, 0x21, &v6), Some("[::1]:80")),
            (v2_header(0x20, 0x00, &[]), None),
        ] {
            let read = parse(&header).await.unwrap_or_else(|| panic!("{}", header.escape_ascii()));
            assert_eq!(read.as_deref(), expected);
        }
    }

    #[tokio::test]
    async fn rejects_invalid_headers() {
        for header in [
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.1 10.0.0.1 56324\r\n".to_vec(),
            b"PROXY TCP4 2001:db8::1 ::1 1 2\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.1 10.0.0.1 99999 443\r\n".to_vec(),
            [&b"PROXY TCP4 "[..], &[b'1'; 200], b"\r\n"].concat(),
            v2_header(0x21, 0x11, &[1, 2, 3]),
            v2_header(0x31, 0x11, &[0; 12]),
            v2_header(0x21, 0x12, &[0; 12]),
            v2_header(0x21, 0x11, &[0; 5000]),
            b"PROX".to_vec(),
        ] {
            let mut stream = header.as_slice();
            assert!(read(&mut stream).await.is_err(), "{}", header.escape_ascii());
        }
    }
}
