//! A crowd at a server's door, in a process of its own: thousands of connections that say nothing, or say it slowly, or ask and
//! take back.
//!
//! The process is the test's own program, started once more for one test alone: the one that calls [`play`].

mod member;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::sync::{Semaphore, watch};

use crate::ca::Ca;
use crate::program::Running;
use crate::{Program, environment, wait};
use member::Member;

/// Tells the process what it is.
const PLAN: &str = "NAVICERT_TEST_CROWD";

/// Those who are let in at a time: the server gives everybody a while to agree on TLS.
const AT_THE_DOOR: usize = 100;

/// The last bytes of source addresses 127.0.0.*: with one alone, ports would run short.
const SOURCES: [u8; 8] = [2, 3, 4, 5, 6, 7, 8, 9];

/// Most that so many idle connections may add to a server's memory, in KiB: 64 each (docs/serve.md), and what a flood of
/// requests may take besides.
pub fn most_kib(connections: usize) -> u64 {
    64 * connections as u64 + 48 * 1024
}

/// What the crowd does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// At whose door.
    pub address: SocketAddr,
    /// Connections that stand there, in five ways by turns: not a byte; TLS and not a byte; a head whose lines come byte by
    /// byte; one request, then nothing; HTTP/2 and no request. Whoever is sent away comes back.
    pub standing: usize,
    /// Connections of HTTP/2 that ask and take back at once, over and over (CVE-2023-44487).
    pub resetting: usize,
    /// What they ask for.
    pub path: String,
    /// With which token.
    pub token: String,
}

/// A crowd at work; it goes when dropped.
#[derive(Debug)]
pub struct Crowd {
    running: Running,
}

/// What a crowd met.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Met {
    /// Connections that were closed by the server.
    pub sent_away: usize,
    /// Requests that were taken back.
    pub resets: usize,
    /// Connections that were told to go for it.
    pub goaways: usize,
}

impl Crowd {
    /// Gathers a crowd and waits until all of it stands. `test` is the full name of the test that calls [`play`].
    ///
    /// # Panics
    /// If it cannot be gathered.
    pub async fn gather(test: &str, ca: &Ca, plan: &Plan) -> Self {
        let told = json!({
            "address": plan.address.to_string(), "ca": ca.pem(), "standing": plan.standing, "resetting": plan.resetting,
            "path": plan.path, "token": plan.token,
        });
        let own = std::env::current_exe().expect("the path of this program");
        let running = Program::new(own)
            .arguments([test, "--exact", "--nocapture", "--test-threads=1"])
            .variable(PLAN, told.to_string())
            .stdin("\n")
            .start_running()
            .expect("this program can be started again");
        running.wait_for_output_within(&format!("{STANDS}\n"), wait::LIMIT * 4).await;
        Crowd { running }
    }

    /// Sends it home, and hears what it met.
    ///
    /// # Panics
    /// If it does not say.
    pub async fn leave(self) -> Met {
        self.running.close_input();
        let outcome = self.running.wait().await;
        let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let met = said.lines().find_map(|line| line.strip_prefix(MET));
        let met: Value =
            met.and_then(|met| serde_json::from_str(met).ok()).unwrap_or_else(|| panic!("{said}"));
        let figure =
            |name: &str| met[name].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
        Met { sent_away: figure("sentAway"), resets: figure("resets"), goaways: figure("goaways") }
    }
}

const STANDS: &str = "the crowd stands";
const MET: &str = "the crowd met ";

/// Is the crowd, if this process was started as one; `false` if not. The body of a test that does nothing else.
///
/// # Panics
/// If the crowd cannot be gathered.
pub fn play() -> bool {
    let Some(plan) = environment::variable(PLAN) else { return false };
    let plan: Value = serde_json::from_str(&plan.to_string_lossy()).expect("a plan");
    let had = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: had.maximum, maximum: had.maximum })
        .expect("as many open files as the system lets us have");
    wait::blocking(gather(&plan));
    true
}

/// What every member knows.
struct Square {
    member: Member,
    door: Semaphore,
    standing: watch::Sender<usize>,
    sent_away: AtomicUsize,
    resets: AtomicUsize,
    goaways: AtomicUsize,
}

async fn gather(plan: &Value) {
    let text = |name: &str| plan[name].as_str().expect("a text").to_owned();
    let count =
        |name: &str| plan[name].as_u64().and_then(|count| usize::try_from(count).ok()).expect("a number");
    let square = Arc::new(Square {
        member: Member::new(
            text("address").parse().expect("an address"),
            &text("ca"),
            text("path"),
            text("token"),
        ),
        door: Semaphore::new(AT_THE_DOOR),
        standing: watch::Sender::new(0),
        sent_away: AtomicUsize::new(0),
        resets: AtomicUsize::new(0),
        goaways: AtomicUsize::new(0),
    });
    let (standing, resetting) = (count("standing"), count("resetting"));
    for number in 0..standing {
        tokio::spawn(Arc::clone(&square).stand(number));
    }
    for number in 0..resetting {
        tokio::spawn(Arc::clone(&square).ask_and_take_back(number));
    }
    let mut all = square.standing.subscribe();
    let _ = all.wait_for(|stand| *stand >= standing + resetting).await;
    say(STANDS);
    // Until nobody wants it any more.
    let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    let figure = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    let met = json!({
        "sentAway": figure(&square.sent_away), "resets": figure(&square.resets), "goaways": figure(&square.goaways),
    });
    say(&format!("{MET}{met}"));
}

impl Square {
    /// Stands there, and comes back whenever it is sent away.
    async fn stand(self: Arc<Self>, number: usize) {
        let mut is_first = true;
        loop {
            let entry = self.door.acquire().await;
            let stood = self.member.stand(number).await;
            drop(entry);
            // The server may be busy with others; then the next try may be luckier.
            let Ok(mut stood) = stood else { continue };
            if std::mem::take(&mut is_first) {
                self.standing.send_modify(|count| *count += 1);
            }
            stood.until_sent_away().await;
            self.sent_away.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Asks and takes back until it is sent away, and comes back.
    async fn ask_and_take_back(self: Arc<Self>, number: usize) {
        let mut is_first = true;
        loop {
            let Ok((resets, was_told)) = self.member.ask_and_take_back(number).await else { continue };
            self.resets.fetch_add(resets, Ordering::Relaxed);
            self.goaways.fetch_add(usize::from(was_told), Ordering::Relaxed);
            if std::mem::take(&mut is_first) {
                self.standing.send_modify(|count| *count += 1);
            }
        }
    }
}

#[expect(clippy::print_stdout, reason = "how the crowd's process speaks to the test")]
fn say(text: &str) {
    println!("{text}");
}
