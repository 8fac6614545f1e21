//! The audit log: one JSON object per line for every decision, with who it really was and why, and never a token.
//!
//! Lines are collected in memory and written by a thread of their own, so that a slow disk slows nobody down. If it
//! cannot keep up, lines are dropped and counted rather than memory eaten without end.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use navicert_types::Clock;
use serde::Serialize;

use crate::metrics::{Figures, Page};
use crate::who::Told;

/// More than this is not kept in memory.
const MOST: usize = 16 << 20;

/// One decision.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry<'e> {
    /// What was asked: `tokenreview`, `auth` or `request`.
    pub event: &'static str,
    /// What was decided.
    pub decision: Decision,
    /// Why, from a closed set; absent for what was allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'e str>,
    /// Who it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Told<'e>>,
    /// Whom that user acts as, if as somebody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acting_as: Option<&'e str>,
    /// Whose token it was: the hash of the issuer's URL, as in metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer_hash: Option<&'e str>,
    /// Which token it was: the hash of its `jti`, as it says itself. What was refused may say anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jti_hash: Option<&'e str>,
    /// Where the connection comes from.
    pub source: Option<IpAddr>,
    /// Who asked, where that is somebody else: the name in its certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<&'e str>,
    /// The request's `Audit-ID`, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_id: Option<&'e str>,
    /// What was to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<&'e str>,
    /// Where; without the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'e str>,
    /// The code it was answered with.
    pub code: u16,
    /// How long it took, in microseconds.
    pub took_micros: u64,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It may pass.
    Allow,
    /// It may not.
    Deny,
    /// It cannot be said now.
    Error,
}

/// Where entries go. Copies share it.
#[derive(Clone, Default)]
pub struct Audit(Option<Arc<Log>>);

struct Log {
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    pending: Mutex<Vec<u8>>,
    news: Condvar,
    is_ending: AtomicBool,
    wants_reopening: AtomicBool,
    written: AtomicU64,
    dropped: AtomicU64,
}

/// Where lines are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// This file, appended to.
    File(PathBuf),
}

impl Target {
    /// `-` is standard output.
    pub fn of(path: &Path) -> Self {
        if path == Path::new("-") { Target::Stdout } else { Target::File(path.to_owned()) }
    }

    fn open(&self) -> io::Result<Box<dyn Write + Send>> {
        Ok(match self {
            Target::Stdout => Box::new(io::stdout()),
            Target::File(path) => Box::new(append(path)?),
        })
    }
}

/// Readable by its owner alone: it says who does what.
fn append(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

impl Audit {
    /// Nothing is written.
    pub fn off() -> Self {
        Audit(None)
    }

    /// Entries go there.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn to(target: Target, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let out = target.open()?;
        let shared = Arc::new(Shared {
            pending: Mutex::default(),
            news: Condvar::new(),
            is_ending: AtomicBool::new(false),
            wants_reopening: AtomicBool::new(false),
            written: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        });
        let of_writer = Arc::clone(&shared);
        let writer = thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || of_writer.write_all(out, &target))?;
        Ok(Audit(Some(Arc::new(Log { shared, clock, writer: Mutex::new(Some(writer)) }))))
    }

    /// Whether anybody writes anything: what an entry needs may be costly to find out.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// One more decision.
    pub fn record(&self, entry: &Entry<'_>) {
        let Some(log) = &self.0 else { return };
        let mut pending = log.shared.pending();
        if pending.len() >= MOST {
            log.shared.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let before = pending.len();
        let _ = write!(pending, "{{\"time\":\"{:.6}\",", log.clock.now());
        let start = pending.len();
        // An object; its opening brace is written already.
        if serde_json::to_writer(&mut *pending, entry).is_err() {
            return pending.truncate(before);
        }
        pending.remove(start);
        pending.push(b'\n');
        let is_first = before == 0;
        drop(pending);
        if is_first {
            log.shared.news.notify_one();
        }
    }

    /// Opens the file again: somebody has moved it away (SIGHUP).
    pub fn reopen(&self) {
        if let Some(log) = &self.0 {
            log.shared.wants_reopening.store(true, Ordering::Release);
            log.shared.news.notify_one();
        }
    }
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Vec<u8>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until the log is dropped.
    fn write_all(&self, mut out: Box<dyn Write + Send>, target: &Target) {
        let mut taken = Vec::new();
        loop {
            let is_ending = {
                let pending = self.pending();
                let is_idle = |pending: &mut Vec<u8>| {
                    pending.is_empty()
                        && !self.is_ending.load(Ordering::Acquire)
                        && !self.wants_reopening.load(Ordering::Acquire)
                };
                // A word that comes between the look and the wait is heard a little later.
                let waited = self.news.wait_timeout_while(pending, Duration::from_secs(1), is_idle);
                let (mut pending, _) = waited.unwrap_or_else(PoisonError::into_inner);
                mem::swap(&mut *pending, &mut taken);
                self.is_ending.load(Ordering::Acquire)
            };
            if self.wants_reopening.swap(false, Ordering::AcqRel) {
                match target.open() {
                    Ok(opened) => out = opened,
                    Err(error) => tracing::error!(%error, "the audit log cannot be opened again"),
                }
            }
            let lines = taken.iter().filter(|byte| **byte == b'\n').count() as u64;
            match out.write_all(&taken).and_then(|()| out.flush()) {
                Ok(()) => self.written.fetch_add(lines, Ordering::Relaxed),
                Err(error) => {
                    tracing::error!(%error, lines, "audit lines are lost");
                    self.dropped.fetch_add(lines, Ordering::Relaxed)
                }
            };
            taken.clear();
            if is_ending {
                return;
            }
        }
    }
}

/// What is pending is written before it ends.
impl Drop for Log {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Release);
        self.shared.news.notify_one();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            let _ = writer.join();
        }
    }
}

impl Figures for Audit {
    fn write(&self, page: &mut Page) {
        let Some(log) = &self.0 else { return };
        let name = "navicert_audit_lines_total";
        page.head(name, "counter", "Lines of the audit log by what became of them");
        page.line(name, &[("result", "dropped")], log.shared.dropped.load(Ordering::Relaxed));
        page.line(name, &[("result", "written")], log.shared.written.load(Ordering::Relaxed));
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Audit").field(&self.is_on()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use navicert_testkit::wait;
    use navicert_types::clock::ManualClock;

    use super::*;

    fn entry(reason: &str) -> Entry<'_> {
        Entry {
            event: "tokenreview",
            decision: Decision::Deny,
            reason: Some(reason),
            user: None,
            acting_as: None,
            issuer_hash: None,
            jti_hash: None,
            source: Some(IpAddr::from([127, 0, 0, 1])),
            caller: Some("kube-apiserver\u{1b}[2J\n"),
            audit_id: None,
            method: None,
            path: None,
            code: 200,
            took_micros: 7,
        }
    }

    #[test]
    fn every_decision_is_one_line_of_json_and_the_last_one_is_written_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let audit = Audit::to(Target::of(&path), Arc::new(ManualClock::at(1_000))).unwrap();
        for reason in ["expired", "signature"] {
            audit.record(&entry(reason));
        }
        drop(audit);
        let text = fs::read_to_string(&path).unwrap();
        let expected = "{\"time\":\"1970-01-01T00:16:40.000000Z\",\"event\":\"tokenreview\",\"decision\":\"deny\",\
                        \"reason\":\"expired\",\"source\":\"127.0.0.1\",\"caller\":\"kube-apiserver\\u001b[2J\\n\",\
                        \"code\":200,\"tookMicros\":7}";
        assert_eq!(text.lines().next().unwrap(), expected);
        assert_eq!(text.lines().count(), 2);
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_was_moved_away_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("audit.log"), folder.path().join("audit.log.1"));
        let audit = Audit::to(Target::of(&path), Arc::new(ManualClock::at(0))).unwrap();
        audit.record(&entry("expired"));
        fs::rename(&path, &moved).unwrap();
        audit.reopen();
        let made = async {
            while !path.exists() {
                tokio::task::yield_now().await;
            }
        };
        wait::blocking(wait::within("a new file", made));
        audit.record(&entry("signature"));
        drop(audit);
        assert!(fs::read_to_string(&path).unwrap().contains("signature"));
    }
}
