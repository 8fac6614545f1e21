//! Pool of worker threads. An idle worker waits for more work of its kind before it ends: starting a thread costs as much
//! as everything else between a request and its plugin's start.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long an idle worker waits for more work.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

/// A worker that waits for work.
struct IdleWorker {
    number: u64,
    kind: &'static str,
    sender: Sender<Work>,
}

static IDLE: Mutex<Vec<IdleWorker>> = Mutex::new(Vec::new());

/// Runs `work` on a worker of this kind, which is also the thread's name. `work` must not panic.
///
/// # Errors
/// No worker of this kind is idle and no thread can be started.
pub(crate) fn run(kind: &'static str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let work: Work = Box::new(work);
    let idle_worker = {
        let mut idle = idle();
        // The most recently idle worker has the warmest cache.
        let found = idle.iter().rposition(|worker| worker.kind == kind);
        found.map(|index| idle.remove(index))
    };
    let work = match idle_worker {
        // A worker removed from the list waits until it receives work, so this does not fail.
        Some(worker) => match worker.sender.send(work) {
            Ok(()) => return Ok(()),
            Err(mpsc::SendError(work)) => work,
        },
        None => work,
    };
    thread::Builder::new()
        .name(kind.to_owned())
        .spawn(move || worker_loop(kind, work, IDLE_TIMEOUT))
        .map(drop)
}

/// Runs work until the idle timeout expires.
fn worker_loop(kind: &'static str, first: Work, linger: Duration) {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let (sender, receiver) = mpsc::channel();
    let mut work = first;
    loop {
        work();
        idle().push(IdleWorker { number, kind, sender: sender.clone() });
        work = match receiver.recv_timeout(linger) {
            Ok(next) => next,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                if remove_idle(number) {
                    return;
                }
                // `run` has just removed this worker from the list: its work will arrive.
                match receiver.recv() {
                    Ok(next) => next,
                    Err(mpsc::RecvError) => return,
                }
            }
        };
    }
}

/// Removes a worker from the idle list; returns whether it was in the list.
fn remove_idle(number: u64) -> bool {
    let mut idle = idle();
    let before = idle.len();
    idle.retain(|worker| worker.number != number);
    idle.len() < before
}

fn idle() -> MutexGuard<'static, Vec<IdleWorker>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::ThreadId;

    const TEST_TIMEOUT: Duration = Duration::from_secs(30);

    /// The thread that ran the work.
    fn running_thread(kind: &'static str) -> ThreadId {
        let (sender, receiver) = mpsc::channel();
        run(kind, move || sender.send(thread::current().id()).unwrap()).unwrap();
        receiver.recv_timeout(TEST_TIMEOUT).unwrap()
    }

    /// Blocks until a worker of this kind is idle.
    fn until_idle(kind: &str) {
        while !idle().iter().any(|worker| worker.kind == kind) {
            thread::yield_now();
        }
    }

    #[test]
    fn idle_worker_is_reused_for_its_kind() {
        let first = running_thread("kind-a");
        until_idle("kind-a");
        assert_ne!(running_thread("kind-b"), first, "another kind, another thread");
        assert_eq!(running_thread("kind-a"), first);
    }

    #[test]
    fn busy_worker_is_not_waited_for() {
        let (release, held) = mpsc::channel::<()>();
        let (sender, receiver) = mpsc::channel();
        let busy = move || {
            sender.send(thread::current().id()).unwrap();
            held.recv().unwrap();
        };
        run("kind-c", busy).unwrap();
        let busy = receiver.recv_timeout(TEST_TIMEOUT).unwrap();
        assert_ne!(running_thread("kind-c"), busy);
        release.send(()).unwrap();
    }

    #[test]
    fn worker_ends_after_the_idle_timeout() {
        let thread = thread::spawn(|| worker_loop("kind-d", Box::new(|| {}), Duration::ZERO));
        thread.join().unwrap();
        assert!(!idle().iter().any(|worker| worker.kind == "kind-d"));
    }
}
