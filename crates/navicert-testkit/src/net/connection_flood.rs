//! A connection flood from a separate process: thousands of idle or slow connections, and HTTP/2 rapid resets.
//!
//! The process is the test binary itself, started again for the one test that calls [`run_if_child`].

mod client;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::sync::{Semaphore, watch};

use crate::cli::program::{self, Program, Running};
use crate::pki::ca::Ca;
use crate::wait;
use client::FloodClient;

/// Concurrent handshakes: more would exceed the server's handshake timeout.
const MAX_CONCURRENT_HANDSHAKES: usize = 100;

/// Last bytes of the source addresses 127.0.0.*: a single address would run out of ports.
const SOURCE_ADDRESS_BYTES: [u8; 8] = [2, 3, 4, 5, 6, 7, 8, 9];

/// Maximum memory that `connections` idle connections may add to a server, in KiB: 64 each (docs/serve.md), plus a fixed
/// allowance for the requests of the flood.
pub fn max_memory_kib(connections: usize) -> u64 {
    64 * connections as u64 + 48 * 1024
}

/// What the flood does.
#[derive(Clone, Debug)]
pub struct FloodPlan {
    /// Address of the server.
    pub address: SocketAddr,
    /// Number of idle connections, of five kinds in turn: no byte sent; TLS handshake only; a request head sent byte by
    /// byte; one request, then idle; HTTP/2 without a request. A connection that the server closes is reopened.
    pub idle: usize,
    /// Number of HTTP/2 connections that send and reset requests continuously (CVE-2023-44487).
    pub resetting: usize,
    /// Path to request.
    pub path: String,
    /// Bearer token to send.
    pub token: String,
}

/// A running flood; dropping it ends it.
#[derive(Debug)]
pub struct ConnectionFlood {
    running: Running,
}

/// Result of a flood.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FloodReport {
    /// Connections closed by the server.
    pub closed_by_server: usize,
    /// Requests that were reset.
    pub resets: usize,
    /// Connections that received GOAWAY.
    pub goaways: usize,
}

impl ConnectionFlood {
    /// Starts a flood and waits until all connections are open. `test` is the full name of the test that calls
    /// [`run_if_child`].
    ///
    /// # Panics
    /// If the flood cannot be started.
    pub async fn start(test: &str, ca: &Ca, plan: &FloodPlan) -> Self {
        let plan_json = json!({
            "address": plan.address.to_string(), "ca": ca.pem(), "standing": plan.idle, "resetting": plan.resetting,
            "path": plan.path, "token": plan.token,
        });
        let running = Program::this_test(test, plan_json.to_string())
            .stdin("\n")
            .start_running()
            .expect("this program can be started again");
        running.wait_for_output_within(&format!("{READY_LINE}\n"), wait::LIMIT * 4).await;
        ConnectionFlood { running }
    }

    /// Stops the flood and returns its report.
    ///
    /// # Panics
    /// If the process does not print a report.
    pub async fn stop(self) -> FloodReport {
        self.running.close_input();
        let outcome = self.running.wait().await;
        let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let report = said.lines().find_map(|line| line.strip_prefix(REPORT_PREFIX));
        let report: Value =
            report.and_then(|report| serde_json::from_str(report).ok()).unwrap_or_else(|| panic!("{said}"));
        let figure =
            |name: &str| report[name].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
        FloodReport {
            closed_by_server: figure("sentAway"),
            resets: figure("resets"),
            goaways: figure("goaways"),
        }
    }
}

const READY_LINE: &str = "flood ready";
const REPORT_PREFIX: &str = "flood report ";

/// Runs the flood if this process was started for it; returns `false` otherwise. The whole body of a test.
///
/// # Panics
/// If the connections cannot be opened.
pub fn run_if_child() -> bool {
    let Some(plan) = program::child_input() else { return false };
    let plan: Value = serde_json::from_str(&plan).expect("a plan");
    let had = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: had.maximum, maximum: had.maximum })
        .expect("as many open files as the system lets us have");
    wait::blocking(run_flood(&plan));
    true
}

/// State shared by all connections.
struct FloodState {
    client: FloodClient,
    handshakes: Semaphore,
    established: watch::Sender<usize>,
    closed_by_server: AtomicUsize,
    resets: AtomicUsize,
    goaways: AtomicUsize,
}

async fn run_flood(plan: &Value) {
    let text = |name: &str| plan[name].as_str().expect("a text").to_owned();
    let count =
        |name: &str| plan[name].as_u64().and_then(|count| usize::try_from(count).ok()).expect("a number");
    let state = Arc::new(FloodState {
        client: FloodClient::new(
            text("address").parse().expect("an address"),
            &text("ca"),
            text("path"),
            text("token"),
        ),
        handshakes: Semaphore::new(MAX_CONCURRENT_HANDSHAKES),
        established: watch::Sender::new(0),
        closed_by_server: AtomicUsize::new(0),
        resets: AtomicUsize::new(0),
        goaways: AtomicUsize::new(0),
    });
    let (standing, resetting) = (count("standing"), count("resetting"));
    for number in 0..standing {
        tokio::spawn(Arc::clone(&state).keep_idle_connection(number));
    }
    for number in 0..resetting {
        tokio::spawn(Arc::clone(&state).keep_resetting(number));
    }
    let mut all = state.established.subscribe();
    let _ = all.wait_for(|stand| *stand >= standing + resetting).await;
    say(READY_LINE);
    // Until the parent closes standard input.
    let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    let figure = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    let report = json!({
        "sentAway": figure(&state.closed_by_server), "resets": figure(&state.resets), "goaways": figure(&state.goaways),
    });
    say(&format!("{REPORT_PREFIX}{report}"));
}

impl FloodState {
    /// Keeps one idle connection open, and reopens it whenever the server closes it.
    async fn keep_idle_connection(self: Arc<Self>, number: usize) {
        let mut is_first = true;
        loop {
            let entry = self.handshakes.acquire().await;
            let connection = self.client.open_idle(number).await;
            drop(entry);
            // The server may be at its connection limit: try again.
            let Ok(mut connection) = connection else { continue };
            if std::mem::take(&mut is_first) {
                self.established.send_modify(|count| *count += 1);
            }
            connection.hold_until_closed().await;
            self.closed_by_server.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends and resets requests until the server closes the connection, and reconnects.
    async fn keep_resetting(self: Arc<Self>, number: usize) {
        let mut is_first = true;
        loop {
            let Ok((resets, got_goaway)) = self.client.request_and_reset(number).await else { continue };
            self.resets.fetch_add(resets, Ordering::Relaxed);
            self.goaways.fetch_add(usize::from(got_goaway), Ordering::Relaxed);
            if std::mem::take(&mut is_first) {
                self.established.send_modify(|count| *count += 1);
            }
        }
    }
}

#[expect(clippy::print_stdout, reason = "how the flooding process reports to the test")]
fn say(text: &str) {
    println!("{text}");
}
