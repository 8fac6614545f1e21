//! SIGINT, SIGTERM and SIGHUP during an attempt: the listener is closed, the terminal restored and the end written down before
//! the process ends.

use std::future::Future;
use std::time::Duration;

use navicert_client::transport::Timer;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Catches the termination signals while it exists.
pub(crate) struct TerminationSignals {
    signals: Vec<(i32, Signal)>,
    received: Option<i32>,
}

impl TerminationSignals {
    /// Registers the signals. Must be called inside a runtime.
    pub(crate) fn register() -> Self {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let signals = kinds.into_iter().filter_map(|kind| Some((kind.as_raw_value(), signal(kind).ok()?)));
        TerminationSignals { signals: signals.collect(), received: None }
    }

    /// The signal that was received.
    pub(crate) fn received(&self) -> Option<i32> {
        self.received
    }

    /// The future's output, or `None` as soon as a signal arrives.
    pub(crate) async fn interrupt<F: Future>(&mut self, future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            number = next(&mut self.signals) => {
                self.received = Some(number);
                None
            }
        }
    }

    /// The future's output, also if it takes a little longer than a signal allows; `None` if it takes longer than that.
    pub(crate) async fn finish_within<F: Future>(
        &mut self,
        future: F,
        grace: Duration,
        timer: &dyn Timer,
    ) -> Option<F::Output> {
        let mut future = std::pin::pin!(future);
        if let Some(output) = self.interrupt(&mut future).await {
            return Some(output);
        }
        tokio::select! {
            biased;
            output = future => Some(output),
            () = timer.sleep(grace) => None,
        }
    }
}

async fn next(signals: &mut [(i32, Signal)]) -> i32 {
    std::future::poll_fn(|context| {
        for (number, signal) in signals.iter_mut() {
            if signal.poll_recv(context).is_ready() {
                return std::task::Poll::Ready(*number);
            }
        }
        std::task::Poll::Pending
    })
    .await
}
