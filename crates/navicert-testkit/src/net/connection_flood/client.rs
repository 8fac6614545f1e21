//! One client of a connection flood.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

use super::SOURCE_ADDRESS_BYTES;
use crate::net::raw::{Stream, http2};

/// Interval between two bytes of a slow request head.
const SLOW_BYTE_INTERVAL: Duration = Duration::from_secs(1);

/// Request and reset pairs per write.
const RESETS_PER_WRITE: u32 = 100;

/// Settings shared by all connections.
pub(super) struct FloodClient {
    address: SocketAddr,
    http1: TlsConnector,
    http2: TlsConnector,
    path: String,
    token: String,
}

/// An idle or slow connection.
pub(super) struct IdleConnection {
    stream: Box<dyn Stream>,
    is_slow: bool,
}

impl FloodClient {
    pub(super) fn new(address: SocketAddr, ca: &str, path: String, token: String) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).expect("a certificate")).expect("a root");
        let roots = Arc::new(roots);
        let connector = |protocol: &str| {
            let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .expect("TLS versions the crypto provider has")
                .with_root_certificates(Arc::clone(&roots))
                .with_no_client_auth();
            config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
            TlsConnector::from(Arc::new(config))
        };
        FloodClient { address, http1: connector("http/1.1"), http2: connector("h2"), path, token }
    }

    /// Opens a connection; `number` selects its kind.
    pub(super) async fn open_idle(&self, number: usize) -> io::Result<IdleConnection> {
        let tcp = self.connect(number).await?;
        let way = number % 5;
        if way == 0 {
            return Ok(IdleConnection { stream: Box::new(tcp), is_slow: false });
        }
        let name = ServerName::IpAddress(self.address.ip().into());
        let connector = if way == 4 { &self.http2 } else { &self.http1 };
        let mut stream = connector.connect(name, tcp).await?;
        let head = format!("GET {} HTTP/1.1\r\nHost: {}\r\n", self.path, self.address);
        match way {
            2 => stream.write_all(format!("{head}X-Slow: ").as_bytes()).await?,
            3 => {
                stream.write_all(format!("{head}\r\n").as_bytes()).await?;
                // Any response will do.
                let _ = stream.read(&mut [0; 1024]).await?;
            }
            4 => stream.write_all(&http2::preface()).await?,
            _ => {}
        }
        stream.flush().await?;
        Ok(IdleConnection { stream: Box::new(stream), is_slow: way == 2 })
    }

    /// Sends and resets requests until the server closes the connection. Returns their number and whether GOAWAY was
    /// received.
    pub(super) async fn request_and_reset(&self, number: usize) -> io::Result<(usize, bool)> {
        let name = ServerName::IpAddress(self.address.ip().into());
        let stream = self.http2.connect(name, self.connect(number).await?).await?;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let authority = self.address.to_string();
        writer.write_all(&http2::preface()).await?;
        let asking = async {
            let mut batches = 0u32;
            loop {
                let pairs = (0..RESETS_PER_WRITE).flat_map(|pair| {
                    let stream = 2 * (batches * RESETS_PER_WRITE + pair) + 1;
                    [http2::get(stream, &authority, &self.path, &self.token), http2::reset(stream)].concat()
                });
                if writer.write_all(&pairs.collect::<Vec<u8>>()).await.is_err()
                    || writer.flush().await.is_err()
                {
                    return batches;
                }
                batches += 1;
            }
        };
        let listening = async {
            let mut received = Vec::new();
            // Bounded: the server sends little before GOAWAY.
            while received.len() < 1 << 20 && reader.read_buf(&mut received).await.is_ok_and(|read| read > 0)
            {
            }
            http2::has_goaway(&received)
        };
        let (batches, got_goaway) = tokio::join!(asking, listening);
        Ok(((batches * RESETS_PER_WRITE) as usize, got_goaway))
    }

    async fn connect(&self, number: usize) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        let source = Ipv4Addr::new(127, 0, 0, SOURCE_ADDRESS_BYTES[number % SOURCE_ADDRESS_BYTES.len()]);
        socket.bind(SocketAddrV4::new(source, 0).into())?;
        socket.connect(self.address).await
    }
}

impl IdleConnection {
    /// Holds the connection until the server closes it. A slow connection sends a byte per interval.
    pub(super) async fn hold_until_closed(&mut self) {
        let mut pace = tokio::time::interval(SLOW_BYTE_INTERVAL);
        let mut heard = [0; 256];
        loop {
            tokio::select! {
                read = self.stream.read(&mut heard) => if !matches!(read, Ok(1..)) { return },
                _ = pace.tick(), if self.is_slow => {
                    if self.stream.write_all(b"x").await.is_err() || self.stream.flush().await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}
