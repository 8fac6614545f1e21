//! Waiting without sleeping: every wait in a test has a description, which the panic names when the wait times out.

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;

/// How long any wait of the test kit lasts before it fails the test. Far above what a loaded machine needs.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Awaits `future`, or fails the test with `what` after [`LIMIT`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let answer = navicert_testkit::wait::within("the answer", async { 42 }).await;
/// assert_eq!(answer, 42);
/// # }
/// ```
///
/// # Panics
/// If the limit passes first.
pub async fn within<F: Future>(what: &str, future: F) -> F::Output {
    within_limit(LIMIT, what, future).await
}

pub(crate) async fn within_limit<F: Future>(limit: Duration, what: &str, future: F) -> F::Output {
    match tokio::time::timeout(limit, future).await {
        Ok(output) => output,
        Err(_) => panic!("waited {limit:?} in vain for {what}"),
    }
}

/// Runs one of the kit's async functions from a test that is not async.
///
/// The future gets its own thread and runtime, so this also works where a runtime already runs; it then blocks
/// the caller's thread, as its name says.
///
/// ```
/// assert_eq!(navicert_testkit::wait::blocking(async { 42 }), 42);
/// ```
///
/// # Panics
/// If the future does.
pub fn blocking<F>(future: F) -> F::Output
where
    F: Future + Send,
    F::Output: Send,
{
    let run = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime for the waiting thread")
            .block_on(future)
    };
    std::thread::scope(|scope| scope.spawn(run).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Waits until the value behind `receiver` satisfies `done`; `state` describes the value if it never does.
pub(crate) async fn until<T>(
    what: &str,
    mut receiver: watch::Receiver<T>,
    done: impl FnMut(&T) -> bool,
    state: impl FnOnce(&T) -> String,
) {
    let waited = tokio::time::timeout(LIMIT, receiver.wait_for(done)).await.map(|outcome| outcome.is_ok());
    match waited {
        Ok(true) => {}
        Ok(false) => panic!("{what}: the other side is gone; at the end: {}", state(&receiver.borrow())),
        Err(_) => panic!("waited {LIMIT:?} in vain for {what}; now: {}", state(&receiver.borrow())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    #[should_panic(expected = "waited 1ms in vain for godot")]
    async fn expired_wait_names_what_it_waited_for() {
        within_limit(Duration::from_millis(1), "godot", std::future::pending::<()>()).await;
    }

    #[tokio::test]
    #[should_panic(expected = "three: the other side is gone; at the end: 2")]
    async fn wait_for_a_dropped_sender_fails_at_once_with_the_last_state() {
        let (sender, receiver) = watch::channel(2);
        drop(sender);
        until("three", receiver, |count| *count == 3, ToString::to_string).await;
    }

    #[tokio::test]
    #[should_panic(expected = "from inside")]
    async fn a_panic_comes_out_of_a_blocking_wait_even_inside_a_runtime() {
        blocking(async { panic!("from inside") });
    }
}
