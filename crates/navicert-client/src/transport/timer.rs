//! The one room where the transport waits for time to pass, so that a test can decide when it does.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use crate::credential::BoxFuture;

/// Something that can wait.
pub trait Timer: fmt::Debug + Send + Sync {
    /// Done once this much time has passed since the call (not since the first poll).
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// The runtime's timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioTimer;

impl Timer for TokioTimer {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one room of the transport that waits for time"
    )]
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// What a future gives, or `None` if it takes longer than this.
pub(super) async fn within<F: Future>(timer: &dyn Timer, limit: Duration, future: F) -> Option<F::Output> {
    let late = timer.sleep(limit);
    tokio::select! {
        biased;
        output = future => Some(output),
        () = late => None,
    }
}

/// hyper keeps HTTP/2 connections alive with a timer of its own kind.
pub(super) fn for_hyper() -> hyper_util::rt::TokioTimer {
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

    /// A timer that moves only when told to. Clones are the same timer.
    #[derive(Clone, Debug)]
    pub struct ManualTimer {
        now: watch::Sender<Duration>,
        asked: Arc<Mutex<Vec<Duration>>>,
    }

    impl Default for ManualTimer {
        fn default() -> Self {
            ManualTimer { now: watch::Sender::new(Duration::ZERO), asked: Arc::default() }
        }
    }

    impl ManualTimer {
        /// Lets time pass: whoever waits long enough is woken.
        pub fn advance(&self, by: Duration) {
            self.now.send_modify(|now| *now = now.saturating_add(by));
        }

        /// Every wait that was asked for so far.
        pub fn asked(&self) -> Vec<Duration> {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    }

    impl Timer for ManualTimer {
        fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(duration);
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
