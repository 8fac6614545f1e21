//! Threads for work that goes on by itself. One that has finished waits a while for more of its kind before it ends:
//! making and ending a thread costs as much as everything else between a request and its plugin's start.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a thread waits for more.
const LINGER: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

/// A thread that waits for work.
struct Idle {
    number: u64,
    kind: &'static str,
    desk: Sender<Work>,
}

static IDLE: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

/// Does the work on a thread of this kind, which is also the thread's name. The work has to catch its own panics.
///
/// # Errors
/// There is no such thread waiting, and none can be started.
pub(crate) fn run(kind: &'static str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let work: Work = Box::new(work);
    let waiting = {
        let mut idle = idle();
        // The last to come is the one whose memory is still near.
        let found = idle.iter().rposition(|worker| worker.kind == kind);
        found.map(|index| idle.remove(index))
    };
    let work = match waiting {
        // Whoever is taken off the list waits until something comes, so that this does not fail.
        Some(worker) => match worker.desk.send(work) {
            Ok(()) => return Ok(()),
            Err(mpsc::SendError(work)) => work,
        },
        None => work,
    };
    thread::Builder::new().name(kind.to_owned()).spawn(move || attend(kind, work, LINGER)).map(drop)
}

/// A thread's whole life.
fn attend(kind: &'static str, first: Work, linger: Duration) {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let (desk, arriving) = mpsc::channel();
    let mut work = first;
    loop {
        work();
        idle().push(Idle { number, kind, desk: desk.clone() });
        work = match arriving.recv_timeout(linger) {
            Ok(next) => next,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                if take_off_the_list(number) {
                    return;
                }
                // Somebody has chosen this thread at the last moment: the work is on its way.
                match arriving.recv() {
                    Ok(next) => next,
                    Err(mpsc::RecvError) => return,
                }
            }
        };
    }
}

/// Whether it was still there.
fn take_off_the_list(number: u64) -> bool {
    let mut idle = idle();
    let before = idle.len();
    idle.retain(|worker| worker.number != number);
    idle.len() < before
}

fn idle() -> MutexGuard<'static, Vec<Idle>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::ThreadId;

    const SOON: Duration = Duration::from_secs(30);

    /// Which thread did it.
    fn who(kind: &'static str) -> ThreadId {
        let (say, said) = mpsc::channel();
        run(kind, move || say.send(thread::current().id()).unwrap()).unwrap();
        said.recv_timeout(SOON).unwrap()
    }

    /// Until a thread of this kind waits for work.
    fn until_idle(kind: &str) {
        while !idle().iter().any(|worker| worker.kind == kind) {
            thread::yield_now();
        }
    }

    #[test]
    fn a_thread_that_is_done_does_the_next_work_of_its_kind() {
        let first = who("kind-a");
        until_idle("kind-a");
        assert_ne!(who("kind-b"), first, "another kind, another thread");
        assert_eq!(who("kind-a"), first);
    }

    #[test]
    fn a_thread_at_work_is_not_waited_for() {
        let (release, held) = mpsc::channel::<()>();
        let (say, said) = mpsc::channel();
        let busy = move || {
            say.send(thread::current().id()).unwrap();
            held.recv().unwrap();
        };
        run("kind-c", busy).unwrap();
        let busy = said.recv_timeout(SOON).unwrap();
        assert_ne!(who("kind-c"), busy);
        release.send(()).unwrap();
    }

    #[test]
    fn a_thread_that_waited_in_vain_ends_and_is_forgotten() {
        let thread = thread::spawn(|| attend("kind-d", Box::new(|| {}), Duration::ZERO));
        thread.join().unwrap();
        assert!(!idle().iter().any(|worker| worker.kind == "kind-d"));
    }
}
