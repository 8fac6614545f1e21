//! The table of all situations, and what has to hold in each row.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use crate::issuers::Issuer;
use crate::sides::{Accepted, POLL_INTERVAL};

/// Difference between two sides that counts as none, beyond the interval between two attempts: retries that `hardened` limits,
/// and a machine that runs everything at once.
const TOLERANCE: Duration = Duration::from_millis(500);

/// One situation with one issuer.
pub(crate) struct Row {
    situation: &'static str,
    provider: &'static str,
    accepted: Accepted,
}

impl Row {
    pub(crate) fn new(situation: &'static str, issuer: &Issuer, accepted: Accepted) -> Self {
        Row { situation, provider: issuer.name(), accepted }
    }

    /// `kube` accepts when kube-apiserver does; `hardened` then or earlier.
    fn violation(&self) -> Option<String> {
        let Accepted { kube_apiserver, kube, hardened } = self.accepted;
        let tolerance = POLL_INTERVAL + TOLERANCE;
        let is_later = |one: Duration, other: Duration| one > other + tolerance;
        let violation = if is_later(kube, kube_apiserver) {
            "profile kube is later than kube-apiserver"
        } else if is_later(kube_apiserver, kube) {
            "profile kube accepts what kube-apiserver rejects"
        } else if is_later(hardened, kube_apiserver) {
            "profile hardened is later than kube-apiserver"
        } else {
            return None;
        };
        Some(format!("{}, {}: {violation}", self.situation, self.provider))
    }
}

/// All rows.
#[derive(Default)]
pub(crate) struct Table(Vec<Row>);

impl Table {
    pub(crate) fn extend(&mut self, rows: Vec<Row>) {
        self.0.extend(rows);
    }

    /// Prints the table as docs/authentication-over-time.md has it, also if the test passes.
    pub(crate) fn print(&mut self) {
        // The rows of one situation side by side, in the order in which situations appeared.
        let situations: Vec<&str> = self.0.iter().map(|row| row.situation).collect();
        self.0.sort_by_key(|row| {
            let position = situations.iter().position(|situation| *situation == row.situation);
            (position, std::cmp::Reverse(row.provider))
        });
        let mut text = String::from(
            "| situation | provider | kube-apiserver | `kube` | `hardened` |\n| --- | --- | --- | --- | --- |\n",
        );
        for Row { situation, provider, accepted } in &self.0 {
            let [theirs, kube, hardened] = [accepted.kube_apiserver, accepted.kube, accepted.hardened]
                .map(|time| format!("{:.1} s", time.as_secs_f64()));
            writeln!(text, "| {situation} | {provider} | {theirs} | {kube} | {hardened} |").unwrap();
        }
        // Straight to the stream: the test harness captures what the print macros write.
        std::io::stderr().lock().write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn assert_never_later(&self) {
        assert!(!self.0.is_empty(), "nothing was measured");
        let violations: Vec<String> = self.0.iter().filter_map(Row::violation).collect();
        assert!(violations.is_empty(), "{violations:#?}");
    }
}
