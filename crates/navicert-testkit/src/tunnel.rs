//! What follows a `101 Switching Protocols`: a raw stream that greets, echoes and remembers what it was sent.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

use crate::answer::Answer;
use crate::spdy::{self, Play};
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

    /// A port as `kubectl port-forward` reaches one over SPDY/3.1: it answers in capitals, once per connection.
    pub fn spdy_port_forward() -> Self {
        Tunnel::new(Bytes::new(), Some(Play::PortForward))
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

/// Counts the end of a tunnel, also when its task is dropped.
struct Closing<'a>(&'a Tunnel);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.0.log.send_modify(|log| log.closed += 1);
    }
}
