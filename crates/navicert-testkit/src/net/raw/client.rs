//! A client that writes exactly the given bytes and reads until a limit, a pattern or the end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::pki::ca::{Ca, Identity};
use crate::wait;

/// A byte stream, with TLS or without.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection with no protocol on it.
///
/// ```
/// use navicert_testkit::{HttpServer, RawClient};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let server = HttpServer::start_plain();
/// let mut client = RawClient::connect(server.address()).await;
/// client.write(b"GET / HTTP/1.1\r\nhOsT: a\r\nConnection: close\r\n\r\n").await;
/// assert!(client.read_to_end(10_000).await.starts_with(b"HTTP/1.1 404"));
/// # }
/// ```
pub struct RawClient {
    stream: Box<dyn Stream>,
    /// Read, but behind the pattern a caller asked for.
    ahead: Vec<u8>,
}

impl RawClient {
    /// Connects without TLS.
    ///
    /// # Panics
    /// If the connection fails.
    pub async fn connect(address: SocketAddr) -> Self {
        RawClient { stream: Box::new(tcp(address).await), ahead: Vec::new() }
    }

    /// Connects with TLS to a server known to `ca`, offering these application protocols.
    ///
    /// # Panics
    /// If the connection or the handshake fails.
    pub async fn connect_tls(
        address: SocketAddr,
        ca: &Ca,
        identity: Option<&Identity>,
        protocols: &[&str],
    ) -> Self {
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("TLS versions the crypto provider has")
            .with_root_certificates(ca.root_store());
        let mut config = match identity {
            Some(identity) => builder
                .with_client_auth_cert(identity.chain().to_vec(), identity.rustls_key())
                .expect("a certificate and its key"),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = ServerName::IpAddress(address.ip().into());
        let handshake = TlsConnector::from(Arc::new(config)).connect(name, tcp(address).await);
        let stream = wait::within("a TLS handshake", handshake).await;
        let stream = stream.unwrap_or_else(|error| panic!("no TLS with {address}: {error}"));
        RawClient { stream: Box::new(stream), ahead: Vec::new() }
    }

    /// Uses an existing connection.
    pub fn over(stream: impl Stream + 'static) -> Self {
        RawClient { stream: Box::new(stream), ahead: Vec::new() }
    }

    /// Writes these bytes.
    ///
    /// # Panics
    /// If the peer is gone; use [`try_write`](Self::try_write) where it may be.
    pub async fn write(&mut self, bytes: &[u8]) {
        self.try_write(bytes).await.unwrap_or_else(|error| panic!("the peer does not take bytes: {error}"));
    }

    /// Writes these bytes if the peer still takes them.
    ///
    /// # Errors
    /// If it does not.
    pub async fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let write = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        wait::within("the peer to take bytes", write).await
    }

    /// Says that nothing more will be written, and keeps reading.
    pub async fn finish_writing(&mut self) {
        let _ = wait::within("the peer to take the end", self.stream.shutdown()).await;
    }

    /// Reads until the peer closes or breaks off.
    ///
    /// # Panics
    /// If more than `limit` bytes come, or the end does not within [`wait::LIMIT`].
    pub async fn read_to_end(&mut self, limit: usize) -> Vec<u8> {
        let mut read = std::mem::take(&mut self.ahead);
        while self.read_more(&mut read).await {
            assert!(read.len() <= limit, "the peer sent more than {limit} bytes");
        }
        read
    }

    /// Reads up to and including `pattern`; what comes behind it stays for the next read.
    ///
    /// # Panics
    /// If the peer closes first, or a mebibyte comes without it.
    pub async fn read_until(&mut self, pattern: &[u8]) -> Vec<u8> {
        let mut read = std::mem::take(&mut self.ahead);
        loop {
            if let Some(position) = read.windows(pattern.len()).position(|window| window == pattern) {
                self.ahead = read.split_off(position + pattern.len());
                return read;
            }
            assert!(read.len() < 1024 * 1024, "a mebibyte without `{}`", pattern.escape_ascii());
            let open = self.read_more(&mut read).await;
            assert!(
                open,
                "the peer closed before `{}`; it said `{}`",
                pattern.escape_ascii(),
                read.escape_ascii()
            );
        }
    }

    /// Reads exactly so many bytes.
    ///
    /// # Panics
    /// If the peer closes first.
    pub async fn read_exactly(&mut self, count: usize) -> Vec<u8> {
        let mut read = std::mem::take(&mut self.ahead);
        while read.len() < count {
            let open = self.read_more(&mut read).await;
            assert!(open, "the peer closed after {} of {count} bytes", read.len());
        }
        self.ahead = read.split_off(count);
        read
    }

    /// The connection itself, for a protocol of the caller's own.
    ///
    /// # Panics
    /// If bytes have been read that no call has given out yet.
    pub fn into_stream(self) -> Box<dyn Stream> {
        assert!(self.ahead.is_empty(), "{} bytes were read ahead and would be lost", self.ahead.len());
        self.stream
    }

    /// False at the end of the stream, however it ended.
    async fn read_more(&mut self, into: &mut Vec<u8>) -> bool {
        matches!(wait::within("the peer to say something", self.stream.read_buf(into)).await, Ok(1..))
    }
}

impl std::fmt::Debug for RawClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("RawClient")
    }
}

async fn tcp(address: SocketAddr) -> TcpStream {
    let stream = wait::within("a connection", TcpStream::connect(address)).await;
    let stream = stream.unwrap_or_else(|error| panic!("failed to connect to {address}: {error}"));
    stream.set_nodelay(true).expect("a connected socket");
    stream
}
