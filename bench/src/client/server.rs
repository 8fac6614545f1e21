//! A minimal blocking HTTPS server and client: one thread per connection and a fixed response.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use navicert_testkit::Ca;
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection, StreamOwned};

use crate::race::Fault;

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 22\r\n\r\n{\"gitVersion\":\"v1.34\"}";

/// A server that sends the same response to every request.
pub(super) struct BareServer {
    address: SocketAddr,
}

impl BareServer {
    pub(super) fn start(ca: &Ca) -> Result<Self, Fault> {
        let identity = ca.server().issue();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(identity.chain().to_vec(), identity.rustls_key())?;
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let config = Arc::clone(&config);
                std::thread::spawn(move || drop(serve(stream, config)));
            }
        });
        Ok(BareServer { address })
    }

    pub(super) fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}

/// Until the client is gone.
fn serve(stream: TcpStream, config: Arc<ServerConfig>) -> Result<(), Fault> {
    stream.set_nodelay(true)?;
    let mut stream = StreamOwned::new(ServerConnection::new(config)?, stream);
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        request.extend_from_slice(buffer.get(..read).unwrap_or_default());
        if request.ends_with(b"\r\n\r\n") {
            request.clear();
            stream.write_all(ANSWER)?;
            stream.flush()?;
        }
    }
}

/// A client that connects, sends one request and disconnects.
pub(super) struct BareClient {
    config: Arc<ClientConfig>,
}

impl BareClient {
    pub(super) fn new(ca: &Ca) -> Result<Self, Fault> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(ca.root_store())
            .with_no_client_auth();
        // A first request resumes nothing.
        config.resumption = Resumption::disabled();
        Ok(BareClient { config: Arc::new(config) })
    }

    pub(super) fn ask_once(&self, server: &BareServer) -> Result<(), Fault> {
        let stream = TcpStream::connect(server.address)?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(server.address.ip().into());
        let mut stream = StreamOwned::new(ClientConnection::new(Arc::clone(&self.config), name)?, stream);
        let host = server.address;
        let head = format!(
            "GET /version HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer a-token-of-some-length\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        let mut response = vec![0; ANSWER.len()];
        stream.read_exact(&mut response)?;
        if response == ANSWER { Ok(()) } else { Err("another answer".into()) }
    }
}
