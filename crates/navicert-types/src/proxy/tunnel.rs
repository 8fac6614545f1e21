//! The dialogue that opens a tunnel through a proxy: HTTP `CONNECT` (RFC 9110 §9.3.6) and SOCKS5 (RFC 1928, RFC 1929).
//!
//! It does no I/O: the caller sends and receives what [`Tunnel::advance`] says, blocking or not.

use std::io;
use std::net::IpAddr;

use navicert_go::host_port;

use super::{Proxy, ProxyError, ProxyScheme};
use crate::Secret;

/// Limit for the header section of a response to `CONNECT`.
const MAX_HEADER_BYTES: usize = 16 * 1024;

/// What to do next on the connection to the proxy.
#[derive(Debug)]
pub enum TunnelStep {
    /// Send these bytes, then advance with nothing.
    Send(Secret<Vec<u8>>),
    /// Receive exactly this many bytes, then advance with them.
    Receive(usize),
    /// Nothing: the connection leads to the server.
    Done,
}

/// A tunnel that is being opened.
#[derive(Debug)]
pub struct Tunnel<'p> {
    proxy: &'p Proxy,
    host: &'p str,
    port: u16,
    state: TunnelState,
}

#[derive(Debug)]
enum TunnelState {
    Start,
    /// The header section of the response to `CONNECT`, as far as it has been received.
    ConnectResponse(Vec<u8>),
    SocksMethod,
    SocksAuthentication,
    SocksReply,
    SocksNameLength,
    /// The proxy's own address, which is received and ignored.
    SocksAddress,
}

impl<'p> Tunnel<'p> {
    /// A tunnel through a proxy to a server, whose name the proxy resolves.
    pub fn new(proxy: &'p Proxy, host: &'p str, port: u16) -> Self {
        Tunnel { proxy, host, port, state: TunnelState::Start }
    }

    /// The next step, given the bytes that the last one received.
    ///
    /// # Errors
    /// [`ProxyError`]: the proxy rejects the tunnel, or is no proxy.
    pub fn advance(&mut self, received: &[u8]) -> Result<TunnelStep, ProxyError> {
        match (&mut self.state, received) {
            (TunnelState::Start, _) if self.proxy.scheme == ProxyScheme::Socks5 => {
                let offer: &[u8] = if self.proxy.user.is_some() { &[5, 2, 0, 2] } else { &[5, 1, 0] };
                self.send(offer.to_vec(), TunnelState::SocksMethod)
            }
            (TunnelState::Start, _) => {
                let request = self.connect_request();
                self.send(request, TunnelState::ConnectResponse(Vec::with_capacity(256)))
            }
            // Byte by byte: the bytes after the header section belong to the server.
            (TunnelState::ConnectResponse(head), received) => {
                head.extend_from_slice(received);
                if head.ends_with(b"\r\n\r\n") {
                    return check_connect_response(head).map(|()| TunnelStep::Done);
                }
                if head.len() >= MAX_HEADER_BYTES {
                    return Err(ProxyError::Protocol("HTTP"));
                }
                Ok(TunnelStep::Receive(1))
            }
            (TunnelState::SocksMethod | TunnelState::SocksAuthentication, []) => Ok(TunnelStep::Receive(2)),
            (TunnelState::SocksMethod, [5, 0]) | (TunnelState::SocksAuthentication, [1, 0]) => {
                let request = self.socks_request()?;
                self.send(request, TunnelState::SocksReply)
            }
            (TunnelState::SocksMethod, [5, 2]) => {
                let (name, password) = self.proxy.user.as_ref().ok_or(ProxyError::Credentials)?;
                let message =
                    [&[1][..], &length_prefixed(name)?, &length_prefixed(password.expose())?].concat();
                self.send(message, TunnelState::SocksAuthentication)
            }
            (TunnelState::SocksMethod, [5, _]) | (TunnelState::SocksAuthentication, _) => {
                Err(ProxyError::Credentials)
            }
            (TunnelState::SocksReply, []) => Ok(TunnelStep::Receive(4)),
            (TunnelState::SocksReply, [5, 0, _, 1]) => Ok(self.receive_address(4)),
            (TunnelState::SocksReply, [5, 0, _, 4]) => Ok(self.receive_address(16)),
            (TunnelState::SocksReply, [5, 0, _, 3]) => {
                self.state = TunnelState::SocksNameLength;
                Ok(TunnelStep::Receive(1))
            }
            (TunnelState::SocksNameLength, [length]) => Ok(self.receive_address(usize::from(*length))),
            (TunnelState::SocksReply, [5, code @ 1..=u8::MAX, _, _]) => Err(socks_rejection(*code)),
            (TunnelState::SocksAddress, _) => Ok(TunnelStep::Done),
            _ => Err(ProxyError::Protocol("SOCKS5")),
        }
    }

    fn send(&mut self, bytes: Vec<u8>, next: TunnelState) -> Result<TunnelStep, ProxyError> {
        self.state = next;
        Ok(TunnelStep::Send(Secret::new(bytes)))
    }

    /// An address of this length, and a port.
    fn receive_address(&mut self, length: usize) -> TunnelStep {
        self.state = TunnelState::SocksAddress;
        TunnelStep::Receive(length + 2)
    }

    fn connect_request(&self) -> Vec<u8> {
        let target = host_port::join(self.host, self.port);
        let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
        if let Some(authorization) = self.proxy.authorization() {
            request.extend_from_slice(b"Proxy-Authorization: ");
            request.extend_from_slice(authorization.expose().as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        request
    }

    fn socks_request(&self) -> Result<Vec<u8>, ProxyError> {
        let mut request = vec![5, 1, 0];
        match self.host.parse::<IpAddr>() {
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
                request.extend_from_slice(&length_prefixed(self.host)?);
            }
        }
        request.extend_from_slice(&self.port.to_be_bytes());
        Ok(request)
    }
}

fn check_connect_response(head: &[u8]) -> Result<(), ProxyError> {
    let line = head.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/1."));
    match words.next().and_then(|code| code.parse::<u16>().ok()) {
        Some(200..=299) if is_http => Ok(()),
        Some(407) if is_http => Err(ProxyError::Credentials),
        Some(code) if is_http => {
            Err(ProxyError::Rejected(format!("{code} {}", reason_phrase(code)).trim_end().to_owned()))
        }
        _ => Err(ProxyError::Protocol("HTTP")),
    }
}

/// The phrases of RFC 9110 for what proxies answer. The proxy's own may repeat its password.
fn reason_phrase(code: u16) -> &'static str {
    match code {
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

fn socks_rejection(code: u8) -> ProxyError {
    let reason = match code {
        2 => "connection not allowed",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        _ => "general failure",
    };
    ProxyError::Rejected(reason.to_owned())
}

/// A text preceded by its length in one byte.
fn length_prefixed(text: &str) -> Result<Vec<u8>, ProxyError> {
    let length = u8::try_from(text.len())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "longer than 255 bytes"))?;
    Ok([&[length], text.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays the proxy: it has these bytes to give. Returns what it was sent.
    fn open(proxy: &str, host: &str, mut answer: &[u8]) -> Result<Vec<u8>, ProxyError> {
        let proxy = Proxy::parse(proxy).unwrap();
        let mut tunnel = Tunnel::new(&proxy, host, 443);
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        loop {
            match tunnel.advance(&received)? {
                TunnelStep::Send(bytes) => {
                    sent.extend_from_slice(bytes.expose());
                    received.clear();
                }
                TunnelStep::Receive(count) => {
                    let (now, later) = answer.split_at_checked(count).ok_or(ProxyError::Protocol("end"))?;
                    received = now.to_vec();
                    answer = later;
                }
                TunnelStep::Done => {
                    assert_eq!(answer, b"server", "reads nothing of the server's");
                    return Ok(sent);
                }
            }
        }
    }

    #[test]
    fn connect_sends_the_target_and_the_credentials() {
        let sent = open("http://ann:s%40fe@p", "h", b"HTTP/1.1 200 fine\r\nx: y\r\n\r\nserver").unwrap();
        let expected =
            "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\nProxy-Authorization: Basic YW5uOnNAZmU=\r\n\r\n";
        assert_eq!(String::from_utf8(sent).unwrap(), expected);
        let sent = open("https://p", "::1", b"HTTP/1.0 204\r\n\r\nserver").unwrap();
        assert_eq!(String::from_utf8(sent).unwrap(), "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n");
    }

    #[test]
    fn socks5_sends_names_addresses_and_credentials() {
        let name = b"\x05\x02\0\x02\x01\x03ann\x04safe\x05\x01\0\x03\x01h\x01\xbb";
        let bound = b"\x05\x02\x01\0\x05\0\0\x01\x7f\0\0\x01\0\0server";
        assert_eq!(open("socks5://ann:safe@p", "h", bound).unwrap(), name);
        let address = b"\x05\x01\0\x05\x01\0\x01\x0a\0\0\x01\x01\xbb";
        let bound = b"\x05\0\x05\0\0\x03\x02ab\0\0server";
        assert_eq!(open("socks5h://p", "10.0.0.1", bound).unwrap(), address);
        let bound = [b"\x05\0\x05\0\0\x04", [0; 18].as_slice(), b"server"].concat();
        assert!(open("socks5://p", "::1", &bound).unwrap().ends_with(b"\0\x01\x01\xbb"));
    }

    #[test]
    fn rejections_have_a_reason_without_the_proxys_words() {
        for (proxy, answer, expected) in [
            ("http://p", &b"HTTP/1.1 403 canary\r\n\r\n"[..], "proxy rejected the connection: 403 Forbidden"),
            ("http://p", b"HTTP/1.1 299 x\r\n\r", "invalid response from the proxy: not end"),
            ("http://p", b"HTTP/1.1 599 canary\r\n\r\n", "proxy rejected the connection: 599"),
            (
                "http://p",
                b"HTTP/1.1 407 x\r\n\r\n",
                "proxy rejected the credentials in the proxy address, or requires some",
            ),
            ("http://p", b"SSH-2.0-x\r\n\r\n", "invalid response from the proxy: not HTTP"),
            ("socks5://p", b"HTTP", "invalid response from the proxy: not SOCKS5"),
            ("socks5://p", b"\x05\0\x04\0\0\x01", "invalid response from the proxy: not SOCKS5"),
            ("socks5://p", b"\x05\0\x05\x05\0\x01", "proxy rejected the connection: connection refused"),
            (
                "socks5://p",
                b"\x05\xff",
                "proxy rejected the credentials in the proxy address, or requires some",
            ),
            (
                "socks5://a:b@p",
                b"\x05\x02\x01\x01",
                "proxy rejected the credentials in the proxy address, or requires some",
            ),
        ] {
            assert_eq!(open(proxy, "h", answer).unwrap_err().to_string(), expected);
        }
        let endless = [b"HTTP/1.1 200 x\r\n", vec![b'x'; 2 * MAX_HEADER_BYTES].as_slice()].concat();
        assert!(matches!(open("http://p", "h", &endless), Err(ProxyError::Protocol("HTTP"))));
        assert!(matches!(open("socks5://p", &"h".repeat(256), b"\x05\0"), Err(ProxyError::Io(_))));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(answer in proptest::collection::vec(proptest::num::u8::ANY, 0..40)) {
            let ended = [answer.as_slice(), b"\r\n\r\n"].concat();
            for proxy in ["http://p", "socks5://a:b@p"] {
                let proxy = Proxy::parse(proxy).unwrap();
                let mut tunnel = Tunnel::new(&proxy, "h", 1);
                let (mut rest, mut received) = (ended.as_slice(), Vec::new());
                while let Ok(step) = tunnel.advance(&received) {
                    received.clear();
                    match step {
                        TunnelStep::Send(_) => {}
                        TunnelStep::Receive(count) if count <= rest.len() => {
                            let (now, later) = rest.split_at(count);
                            received.extend_from_slice(now);
                            rest = later;
                        }
                        _ => break,
                    }
                }
            }
        }
    }
}
