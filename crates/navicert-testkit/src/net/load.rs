//! Steady load during a fault: counts right, wrong and missing responses.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::{soak, wait};

/// Requests per second of all workers together.
const REQUESTS_PER_SECOND: u32 = 300;

/// Number of workers, each with its share of the rate. A worker that waited for a response catches up.
const WORKERS: u32 = 6;

/// How long one fault lasts: 0.6 s, and a minute where `NAVICERT_SOAK` is 100.
pub fn period() -> Duration {
    Duration::from_millis(600) * u32::try_from(soak::factor()).expect("a factor that is not absurd")
}

/// Waits for [`period`].
pub async fn sleep_period() {
    let mut interval = tokio::time::interval(period());
    interval.tick().await;
    interval.tick().await;
}

/// Result of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The response of a healthy system.
    Right,
    /// No right response, but none was possible because the target was gone.
    Excused,
    /// A wrong response.
    Wrong(String),
    /// None.
    Lost(String),
}

/// Three hundred requests per second, from start to end.
///
/// ```
/// use navicert_testkit::net::load::{Load, Verdict};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let load = Load::start(|number| async move {
///     if number % 2 == 0 { Verdict::Right } else { Verdict::Excused }
/// });
/// load.more(60).await;
/// assert!(load.end("an example").await.right >= 60);
/// # }
/// ```
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    right: watch::Receiver<usize>,
    workers: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    excused: AtomicUsize,
    wrong: Mutex<Vec<String>>,
    lost: Mutex<Vec<String>>,
}

/// What a load came to.
#[derive(Clone, Copy, Debug)]
pub struct Tally {
    /// Right answers.
    pub right: usize,
    /// Questions that could not have been answered.
    pub excused: usize,
}

impl Load {
    /// Asks from now on; `ask` gets the question's number. Needs a runtime.
    pub fn start<F, A>(ask: F) -> Self
    where
        F: Fn(usize) -> A + Send + Sync + 'static,
        A: Future<Output = Verdict> + Send,
    {
        let (ask, shared) = (Arc::new(ask), Arc::new(Shared::default()));
        let (count, right) = watch::channel(0);
        let mut workers = JoinSet::new();
        for worker in 0..WORKERS {
            let (ask, shared, count) = (Arc::clone(&ask), Arc::clone(&shared), count.clone());
            workers.spawn(async move {
                let mut pace = tokio::time::interval(Duration::from_secs(1) * WORKERS / REQUESTS_PER_SECOND);
                for number in (worker as usize..).step_by(WORKERS as usize) {
                    if shared.is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    pace.tick().await;
                    match Box::pin(ask(number)).await {
                        Verdict::Right => count.send_modify(|count| *count += 1),
                        Verdict::Excused => {
                            shared.excused.fetch_add(1, Ordering::Relaxed);
                        }
                        Verdict::Wrong(what) => lock(&shared.wrong).push(what),
                        Verdict::Lost(what) => lock(&shared.lost).push(what),
                    }
                }
            });
        }
        Load { shared, right, workers }
    }

    /// Right answers so far.
    pub fn right(&self) -> usize {
        *self.right.borrow()
    }

    /// Waits for so many right answers more.
    ///
    /// # Panics
    /// If they do not come within [`wait::LIMIT`].
    pub async fn more(&self, count: usize) {
        let wanted = self.right() + count;
        let what = format!("{count} right answers more");
        wait::until(&what, self.right.clone(), |right| *right >= wanted, ToString::to_string).await;
    }

    /// Ends it, and says on one line what it came to.
    ///
    /// # Panics
    /// If an answer was wrong or is missing, or if hardly any came.
    pub async fn end(mut self, what: &str) -> Tally {
        self.shared.is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.workers.join_next().await {
            ended.unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        let tally = Tally { right: self.right(), excused: self.shared.excused.load(Ordering::Relaxed) };
        let (wrong, lost) = (lock(&self.shared.wrong), lock(&self.shared.lost));
        let Tally { right, excused } = tally;
        say(&format!("{what}: {right} right, {excused} excused, {} wrong, {} lost", wrong.len(), lost.len()));
        let some: Vec<&String> = wrong.iter().take(3).chain(lost.iter().take(3)).collect();
        assert!(some.is_empty(), "{what}: {} wrong, {} lost: {some:#?}", wrong.len(), lost.len());
        assert!(right >= 50, "{what}: only {right} right answers");
        tally
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::print_stdout, reason = "figures of a long run, shown with --nocapture")]
fn say(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    #[should_panic(expected = "a fault: 1 wrong, 1 lost")]
    async fn a_wrong_answer_and_a_missing_one_fail_the_test() {
        let load = Load::start(|number| async move {
            match number {
                7 => Verdict::Wrong("seven".to_owned()),
                8 => Verdict::Lost("eight".to_owned()),
                _ => Verdict::Right,
            }
        });
        load.more(60).await;
        load.end("a fault").await;
    }
}
