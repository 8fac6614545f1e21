//! Timer abstraction: the only place where the transport waits for time to pass, so that tests control it.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use crate::credential::BoxFuture;

/// Waits for time to pass.
pub trait Timer: fmt::Debug + Send + Sync {
    /// Completes when this much time has passed since the call (not since the first poll).
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// The tokio runtime's timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioTimer;

impl Timer for TokioTimer {
    #[expect(clippy::disallowed_methods, reason = "the only place where the transport waits for time")]
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// The output of a future, or `None` if it takes longer than `limit`.
pub(super) async fn with_timeout<F: Future>(
    timer: &dyn Timer,
    limit: Duration,
    future: F,
) -> Option<F::Output> {
    let timeout = timer.sleep(limit);
    tokio::select! {
        biased;
        output = future => Some(output),
        () = timeout => None,
    }
}

/// The timer that hyper uses for HTTP/2 keep-alive.
pub(super) fn hyper_timer() -> hyper_util::rt::TokioTimer {
    hyper_util::rt::TokioTimer::new()
}

#[cfg(any(test, feature = "test-util"))]
pub use manual::ManualTimer;

#[cfg(any(test, feature = "test-util"))]
mod manual {
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::Duration;

    use tokio::sync::watch;

    use super::{BoxFuture, Timer};

    /// A timer that only advances on request. Clones share the time.
    #[derive(Clone, Debug)]
    pub struct ManualTimer {
        now: watch::Sender<Duration>,
        sleeps: Arc<Mutex<Vec<Duration>>>,
    }

    impl Default for ManualTimer {
        fn default() -> Self {
            ManualTimer { now: watch::Sender::new(Duration::ZERO), sleeps: Arc::default() }
        }
    }

    impl ManualTimer {
        /// Advances the time and wakes the sleeps that are due.
        pub fn advance(&self, by: Duration) {
            self.now.send_modify(|now| *now = now.saturating_add(by));
        }

        /// Every sleep requested so far.
        pub fn sleeps(&self) -> Vec<Duration> {
            self.sleeps.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    }

    impl Timer for ManualTimer {
        fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
            self.sleeps.lock().unwrap_or_else(PoisonError::into_inner).push(duration);
            let mut time = self.now.subscribe();
            let until = time.borrow().saturating_add(duration);
            Box::pin(async move {
                if time.wait_for(|now| *now >= until).await.is_err() {
                    std::future::pending::<()>().await;
                }
            })
        }
    }
}
