//! What follows a `101 Switching Protocols`: a raw stream that greets, echoes and remembers what it was sent.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

use crate::net::answer::Answer;
use crate::net::http_server::Request;
use crate::net::spdy::{self, Play};
use crate::wait;

/// The far end of an upgraded connection. Clones are the same tunnel.
///
/// A refused upgrade needs none of this: `Answer::status(403)` or `Answer::redirect(302, …)` refuses it.
#[derive(Clone, Debug)]
pub struct Tunnel(Arc<State>);

#[derive(Debug)]
struct State {
    greeting: Bytes,
    spdy: Option<Play>,
    log: watch::Sender<Log>,
}

#[derive(Clone, Debug, Default)]
struct Log {
    opened: usize,
    closed: usize,
    received: Vec<u8>,
}

impl Tunnel {
    /// Sends back what it gets, and closes its half once the peer has closed its own.
    pub fn echo() -> Self {
        Tunnel::echo_after(Bytes::new())
    }

    /// Sends these bytes right behind the 101, then echoes.
    pub fn echo_after(greeting: impl Into<Bytes>) -> Self {
        Tunnel::new(greeting.into(), None)
    }

    /// A command as `kubectl exec` runs one over SPDY/3.1: it prints this (and its standard input, where it has one), and
    /// succeeds.
    pub fn spdy_exec(stdin: bool, stdout: impl Into<Bytes>) -> Self {
        Tunnel::new(Bytes::new(), Some(Play::Exec { stdin, stdout: stdout.into() }))
    }

    /// A port as `kubectl port-forward` reaches one over SPDY/3.1: it echoes in capitals, once per connection.
    pub fn spdy_port_forward() -> Self {
        Tunnel::new(Bytes::new(), Some(Play::PortForward))
    }

    /// A command as clients run one over a WebSocket (`v4.channel.k8s.io`): it prints this and succeeds. Answer with
    /// [`web_socket`](Self::web_socket).
    pub fn web_socket_exec(stdout: &str) -> Self {
        let status = r#"{"metadata":{},"status":"Success"}"#;
        let greeting = [frame(1, stdout.as_bytes()), frame(3, status.as_bytes()), vec![0x88, 2, 0x03, 0xe8]];
        Tunnel::new(greeting.concat().into(), None)
    }

    /// The answer to a WebSocket handshake, in the first protocol that was offered.
    pub fn web_socket(&self, request: &Request) -> Answer {
        let key = request.header("sec-websocket-key").unwrap_or_default();
        let accepted = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
        let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, accepted.as_bytes());
        let offered = request.header("sec-websocket-protocol").unwrap_or_default();
        let protocol =
            offered.split(',').map(str::trim).find(|name| name.starts_with("v4")).unwrap_or_default();
        self.answer()
            .header("sec-websocket-accept", &STANDARD.encode(digest))
            .header("sec-websocket-protocol", protocol)
    }

    fn new(greeting: Bytes, spdy: Option<Play>) -> Self {
        Tunnel(Arc::new(State { greeting, spdy, log: watch::Sender::new(Log::default()) }))
    }

    /// The answer that upgrades to this tunnel: 101 and whatever protocol the request named.
    pub fn answer(&self) -> Answer {
        Answer::upgrade(self)
    }

    /// Everything that came through, of all connections.
    pub fn received(&self) -> Vec<u8> {
        self.0.log.borrow().received.clone()
    }

    /// Waits until so many bytes have come through.
    ///
    /// # Panics
    /// If that does not happen within [`wait::LIMIT`].
    pub async fn wait_for_bytes(&self, count: usize) {
        self.wait(&format!("{count} bytes in the tunnel"), move |log| log.received.len() >= count).await;
    }

    /// Waits until so many upgraded connections have been opened.
    ///
    /// # Panics
    /// If that does not happen within [`wait::LIMIT`].
    pub async fn wait_for_opened(&self, count: usize) {
        self.wait(&format!("{count} tunnels to open"), move |log| log.opened >= count).await;
    }

    /// Waits until so many upgraded connections have ended.
    ///
    /// # Panics
    /// If that does not happen within [`wait::LIMIT`].
    pub async fn wait_for_closed(&self, count: usize) {
        self.wait(&format!("{count} tunnels to close"), move |log| log.closed >= count).await;
    }

    async fn wait(&self, what: &str, done: impl Fn(&Log) -> bool) {
        let state =
            |log: &Log| format!("{} opened, {} closed, {} bytes", log.opened, log.closed, log.received.len());
        wait::until(what, self.0.log.subscribe(), done, state).await;
    }

    /// Plays the far end until either side has had enough.
    pub(crate) async fn run(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        self.0.log.send_modify(|log| log.opened += 1);
        let _closing = Closing(self);
        if let Some(play) = self.0.spdy.clone() {
            let seen = |bytes: &[u8]| self.0.log.send_modify(|log| log.received.extend_from_slice(bytes));
            let _ = spdy::play(stream, play, seen).await; // its end shows in the log
            return;
        }
        if stream.write_all(&self.0.greeting).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let read = match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(read) => &buffer[..read],
            };
            self.0.log.send_modify(|log| log.received.extend_from_slice(read));
            if stream.write_all(read).await.is_err() || stream.flush().await.is_err() {
                break;
            }
        }
        let _ = stream.shutdown().await;
    }
}

/// A short binary frame of a server, on one of the protocol's channels.
fn frame(channel: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len() + 1).ok().filter(|length| *length < 126).expect("a short frame");
    [&[0x82, length, channel], bytes].concat()
}

/// Counts the end of a tunnel, also when its task is dropped.
struct Closing<'a>(&'a Tunnel);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.0.log.send_modify(|log| log.closed += 1);
    }
}
