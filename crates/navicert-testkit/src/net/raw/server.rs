//! A peer that plays a fixed script on every connection and remembers what it read.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::net::background::Background;
use crate::net::gate::Gate;
use crate::pki::ca::Ca;
use crate::wait;

/// One step of the script.
#[derive(Clone, Debug)]
pub enum Step {
    /// Reads until these bytes have come on this connection.
    ReadUntil(Bytes),
    /// Reads until the peer closes.
    ReadToEnd,
    /// Writes these bytes.
    Write(Bytes),
    /// Waits for the test.
    Wait(Gate),
}

impl Step {
    /// Reads to the end of an HTTP/1.1 head.
    pub fn read_head() -> Self {
        Step::ReadUntil(Bytes::from_static(b"\r\n\r\n"))
    }

    /// Writes this text.
    pub fn write(text: &str) -> Self {
        Step::Write(Bytes::from(text.to_owned()))
    }
}

/// A peer that keeps no rules but its script; at the end of the script the connection is closed.
///
/// ```
/// use navicert_testkit::{RawClient, RawServer, Step};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let server = RawServer::start(vec![Step::read_head(), Step::write("HTTP/1.1 200 OK\nbare: line feeds\n\n")]);
/// let mut client = RawClient::connect(server.address()).await;
/// client.write(b"GET / HTTP/1.1\r\n\r\n").await;
/// assert!(client.read_to_end(1_000).await.ends_with(b"feeds\n\n"));
/// assert_eq!(server.received(0), b"GET / HTTP/1.1\r\n\r\n");
/// # }
/// ```
#[derive(Debug)]
pub struct RawServer {
    address: SocketAddr,
    received: watch::Sender<Vec<Vec<u8>>>,
    _background: Background,
}

impl RawServer {
    /// A peer without TLS.
    pub fn start(script: Vec<Step>) -> Self {
        RawServer::run(None, script)
    }

    /// A peer over TLS, with a certificate for loopback from this CA.
    pub fn start_tls(ca: &Ca, script: Vec<Step>) -> Self {
        let config = ca.server().issue().server_config(&["http/1.1"]);
        RawServer::run(Some(TlsAcceptor::from(config)), script)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections there have been.
    pub fn connections(&self) -> usize {
        self.received.borrow().len()
    }

    /// What was read on the connection with this number, counted from 0.
    pub fn received(&self, connection: usize) -> Vec<u8> {
        self.received.borrow().get(connection).cloned().unwrap_or_default()
    }

    /// Waits until so many bytes have been read on that connection.
    ///
    /// # Panics
    /// If that does not happen within [`wait::LIMIT`].
    pub async fn wait_for_bytes(&self, connection: usize, count: usize) {
        let done =
            |received: &Vec<Vec<u8>>| received.get(connection).is_some_and(|bytes| bytes.len() >= count);
        let state = |received: &Vec<Vec<u8>>| {
            format!("{:?} bytes", received.iter().map(Vec::len).collect::<Vec<_>>())
        };
        wait::until(&format!("{count} bytes"), self.received.subscribe(), done, state).await;
    }

    fn run(tls: Option<TlsAcceptor>, script: Vec<Step>) -> Self {
        let background = Background::start("raw test server");
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free loopback port");
        let address = listener.local_addr().expect("a bound socket has an address");
        listener.set_nonblocking(true).expect("a socket of our own");
        let received = watch::Sender::new(Vec::new());
        let log = received.clone();
        background.spawn(async move {
            let listener = TcpListener::from_std(listener).expect("a listening socket inside a runtime");
            while let Ok((stream, _)) = listener.accept().await {
                let player = Player { log: log.clone(), connection: open(&log), position: 0 };
                tokio::spawn(player.connection(stream, tls.clone(), script.clone()));
            }
        });
        RawServer { address, received, _background: background }
    }
}

fn open(log: &watch::Sender<Vec<Vec<u8>>>) -> usize {
    let mut number = 0;
    log.send_modify(|received| {
        number = received.len();
        received.push(Vec::new());
    });
    number
}

/// Plays the script on one connection.
struct Player {
    log: watch::Sender<Vec<Vec<u8>>>,
    connection: usize,
    /// Where the last pattern ended: the next one is looked for behind it.
    position: usize,
}

impl Player {
    async fn connection(self, stream: TcpStream, tls: Option<TlsAcceptor>, script: Vec<Step>) {
        let _ = stream.set_nodelay(true);
        match tls {
            None => self.play(stream, script).await,
            Some(acceptor) => {
                if let Ok(stream) = acceptor.accept(stream).await {
                    self.play(stream, script).await;
                }
            }
        }
    }

    async fn play(mut self, mut stream: impl AsyncRead + AsyncWrite + Unpin, script: Vec<Step>) {
        for step in script {
            let going = match step {
                Step::ReadUntil(pattern) => self.read(&mut stream, Some(&pattern)).await,
                Step::ReadToEnd => {
                    self.read(&mut stream, None).await;
                    true
                }
                Step::Write(bytes) => stream.write_all(&bytes).await.is_ok() && stream.flush().await.is_ok(),
                Step::Wait(gate) => {
                    gate.pass().await;
                    true
                }
            };
            if !going {
                return;
            }
        }
        let _ = stream.shutdown().await;
    }

    /// True if the pattern came; false at the end of the stream.
    async fn read(&mut self, stream: &mut (impl AsyncRead + Unpin), pattern: Option<&[u8]>) -> bool {
        let mut buffer = [0; 4096];
        loop {
            if let Some(end) = pattern.and_then(|pattern| self.end_of(pattern)) {
                self.position = end;
                return true;
            }
            let Ok(read @ 1..) = stream.read(&mut buffer).await else { return false };
            self.log.send_modify(|received| received[self.connection].extend_from_slice(&buffer[..read]));
        }
    }

    fn end_of(&self, pattern: &[u8]) -> Option<usize> {
        let log = self.log.borrow();
        let unread = &log[self.connection][self.position..];
        let start = unread.windows(pattern.len()).position(|window| window == pattern)?;
        Some(self.position + start + pattern.len())
    }
}
