//! One of a crowd: how it comes, how it stands there, how it asks and takes back.

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

use super::SOURCES;
use crate::raw::{Stream, http2};

/// Between two bytes of a head that is not in a hurry.
const SLOW: Duration = Duration::from_secs(1);

/// Asks that are taken back in one piece.
const BATCH: u32 = 100;

/// What all members have in common.
pub(super) struct Member {
    address: SocketAddr,
    http1: TlsConnector,
    http2: TlsConnector,
    path: String,
    token: String,
}

/// A connection that stands there.
pub(super) struct Standing {
    stream: Box<dyn Stream>,
    is_slow: bool,
}

impl Member {
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
        Member { address, http1: connector("http/1.1"), http2: connector("h2"), path, token }
    }

    /// Comes to stand in the way of its number.
    pub(super) async fn stand(&self, number: usize) -> io::Result<Standing> {
        let tcp = self.connect(number).await?;
        let way = number % 5;
        if way == 0 {
            return Ok(Standing { stream: Box::new(tcp), is_slow: false });
        }
        let name = ServerName::IpAddress(self.address.ip().into());
        let connector = if way == 4 { &self.http2 } else { &self.http1 };
        let mut stream = connector.connect(name, tcp).await?;
        let head = format!("GET {} HTTP/1.1\r\nHost: {}\r\n", self.path, self.address);
        match way {
            2 => stream.write_all(format!("{head}X-Slow: ").as_bytes()).await?,
            3 => {
                stream.write_all(format!("{head}\r\n").as_bytes()).await?;
                // Some answer, whichever.
                let _ = stream.read(&mut [0; 1024]).await?;
            }
            4 => stream.write_all(&http2::preface()).await?,
            _ => {}
        }
        stream.flush().await?;
        Ok(Standing { stream: Box::new(stream), is_slow: way == 2 })
    }

    /// How many requests were taken back until the server had enough, and whether it said so.
    pub(super) async fn ask_and_take_back(&self, number: usize) -> io::Result<(usize, bool)> {
        let name = ServerName::IpAddress(self.address.ip().into());
        let stream = self.http2.connect(name, self.connect(number).await?).await?;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let authority = self.address.to_string();
        writer.write_all(&http2::preface()).await?;
        let asking = async {
            let mut batches = 0u32;
            loop {
                let pairs = (0..BATCH).flat_map(|pair| {
                    let stream = 2 * (batches * BATCH + pair) + 1;
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
            let mut told = Vec::new();
            // What is read is bounded: whoever says goodbye does not say much before.
            while told.len() < 1 << 20 && reader.read_buf(&mut told).await.is_ok_and(|read| read > 0) {}
            http2::has_goaway(&told)
        };
        let (batches, was_told) = tokio::join!(asking, listening);
        Ok(((batches * BATCH) as usize, was_told))
    }

    async fn connect(&self, number: usize) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        let source = Ipv4Addr::new(127, 0, 0, SOURCES[number % SOURCES.len()]);
        socket.bind(SocketAddrV4::new(source, 0).into())?;
        socket.connect(self.address).await
    }
}

impl Standing {
    /// Stands there until the server has had enough. A slow one says a byte now and then.
    pub(super) async fn until_sent_away(&mut self) {
        let mut pace = tokio::time::interval(SLOW);
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
