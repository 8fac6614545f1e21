//! A watch stream whose events the test pushes, one JSON document per line as Kubernetes sends them.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::net::answer::Answer;
use crate::wait;

/// A source of events for every stream opened on it. Clones are the same source.
///
/// ```
/// use navicert_testkit::{Ca, HttpClient, HttpServer, Watch};
/// use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let ca = Ca::new("watch example");
/// let server = HttpServer::start(&ca);
/// let pods = Watch::new();
/// server.answer("/api/v1/pods", pods.answer());
///
/// let url = server.url_of("/api/v1/pods?watch=true");
/// let client = HttpClient::trusting(&ca);
/// let stream = tokio::spawn(async move { client.get(&url).await });
/// pods.wait_for_opened(1).await;
/// pods.event(&json!({"type": "ADDED", "object": {"kind": "Pod"}}));
/// pods.finish();
/// assert!(stream.await.unwrap().unwrap().text().contains("ADDED"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Watch(Arc<State>);

#[derive(Debug)]
struct State {
    streams: Mutex<Vec<mpsc::UnboundedSender<io::Result<Bytes>>>>,
    counts: watch::Sender<Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    opened: usize,
    closed: usize,
}

impl Watch {
    /// A source without watchers.
    #[expect(
        clippy::new_without_default,
        reason = "`Watch::new()` says in a test what `default()` would hide"
    )]
    pub fn new() -> Self {
        Watch(Arc::new(State { streams: Mutex::default(), counts: watch::Sender::new(Counts::default()) }))
    }

    /// The answer that opens a stream on this source.
    pub fn answer(&self) -> Answer {
        Answer::watch(self)
    }

    /// Sends one event to every open stream.
    ///
    /// # Panics
    /// If no stream is open, because the event would be lost.
    pub fn event(&self, event: &Value) {
        self.bytes(format!("{event}\n"));
    }

    /// Sends these bytes, whatever they are, to every open stream.
    ///
    /// # Panics
    /// If no stream is open.
    pub fn bytes(&self, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        let reached = self.each(|stream| stream.send(Ok(bytes.clone())).is_ok());
        assert!(reached > 0, "no watch stream is open; wait for it with `wait_for_opened`");
    }

    /// Ends every open stream properly.
    pub fn finish(&self) {
        self.each(|_| false);
    }

    /// Breaks every open stream off: the response never ends properly.
    pub fn abort(&self) {
        self.each(|stream| {
            let _ = stream.send(Err(io::Error::other("cut off by the test")));
            false
        });
    }

    /// How many streams are open now.
    pub fn open_streams(&self) -> usize {
        let counts = self.0.counts.borrow();
        counts.opened - counts.closed
    }

    /// Waits until so many streams have been opened in all.
    ///
    /// # Panics
    /// If that does not happen within [`wait::LIMIT`].
    pub async fn wait_for_opened(&self, count: usize) {
        self.wait(&format!("{count} watch streams to open"), move |counts| counts.opened >= count).await;
    }

    /// Waits until so many streams have ended in total, by either side.
    ///
    /// # Panics
    /// If that does not happen within [`wait::LIMIT`].
    pub async fn wait_for_closed(&self, count: usize) {
        self.wait(&format!("{count} watch streams to close"), move |counts| counts.closed >= count).await;
    }

    async fn wait(&self, what: &str, done: impl Fn(&Counts) -> bool) {
        wait::until(what, self.0.counts.subscribe(), done, |counts| format!("{counts:?}")).await;
    }

    /// Calls `keep` for each open stream, drops those it gives up, and says how many it kept.
    fn each(&self, keep: impl Fn(&mpsc::UnboundedSender<io::Result<Bytes>>) -> bool) -> usize {
        let mut streams = self.0.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(keep);
        streams.len()
    }

    pub(crate) fn subscribe(&self) -> Subscription {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.0.streams.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        self.0.counts.send_modify(|counts| counts.opened += 1);
        Subscription { receiver, watch: self.clone() }
    }
}

/// One open stream; dropping it is the sign that the client or the connection is gone.
pub(crate) struct Subscription {
    receiver: mpsc::UnboundedReceiver<io::Result<Bytes>>,
    watch: Watch,
}

impl Subscription {
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        self.receiver.poll_recv(context)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.receiver.close();
        self.watch.0.counts.send_modify(|counts| counts.closed += 1);
    }
}
