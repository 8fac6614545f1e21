//! Audit log: one JSON object per line for every decision, with the real user and the reason, never a token.
//!
//! A separate thread writes the lines, so that a slow disk does not delay requests. If it cannot keep up, lines are
//! dropped and counted instead of using unbounded memory.

mod reason;

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
use navicert_types::exposition::MetricKind::Counter;
use serde::Serialize;

use crate::metrics::{Collector, Exposition};
use crate::trace_context::TraceParent;
use crate::user_ref::UserRef;

pub use reason::Reason;

/// Maximum size of lines waiting to be written.
const MAX_PENDING_BYTES: usize = 16 << 20;

/// One decision.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent<'e> {
    /// What was decided on.
    pub event: EventKind,
    /// The decision.
    pub decision: Decision,
    /// Why; absent for allowed requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The authenticated user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserRef<'e>>,
    /// The impersonated user, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acting_as: Option<&'e str>,
    /// Hash of the issuer's URL, as in metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer_hash: Option<&'e str>,
    /// Hash of the token's `jti`. The value is unverified if the token was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jti_hash: Option<&'e str>,
    /// Source address.
    pub source: Option<IpAddr>,
    /// Name in the certificate of the webhook's client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<&'e str>,
    /// The `Audit-ID` of the request, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_id: Option<&'e str>,
    /// The trace that the request belongs to, if its `traceparent` is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<TraceParent>,
    /// HTTP method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<&'e str>,
    /// Path without the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'e str>,
    /// Status code of the response.
    pub code: u16,
    /// Duration in microseconds.
    pub took_micros: u64,
}

/// What a decision is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// A token review by the webhook.
    TokenReview,
    /// A request to the webhook's `/auth`.
    Auth,
    /// A request to the proxy, or one to the webhook that is neither of the above.
    Request,
    /// A running response or tunnel of the proxy, which ended early.
    Stream,
}

impl EventKind {
    /// The name in logs.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::TokenReview => "tokenreview",
            EventKind::Auth => "auth",
            EventKind::Request => "request",
            EventKind::Stream => "stream",
        }
    }
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// The request was allowed.
    Allow,
    /// The request was denied.
    Deny,
    /// No decision was possible.
    Error,
}

/// The audit log. Clones share it.
#[derive(Clone, Default)]
pub struct AuditLog(Option<Arc<LogHandle>>);

struct LogHandle {
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    writer: Mutex<Writer>,
}

/// The thread that writes.
enum Writer {
    /// Not started yet: the opened destination, and how to open it again.
    Opened(Box<dyn Write + Send>, AuditTarget),
    Started(JoinHandle<()>),
    Ended,
}

struct Shared {
    pending: Mutex<Vec<u8>>,
    wake_writer: Condvar,
    is_shutting_down: AtomicBool,
    reopen_requested: AtomicBool,
    written: AtomicU64,
    dropped: AtomicU64,
}

/// Destination of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTarget {
    /// Standard output.
    Stdout,
    /// Appends to this file.
    File(PathBuf),
}

impl AuditTarget {
    /// `-` means standard output.
    pub fn from_path(path: &Path) -> Self {
        if path == Path::new("-") { AuditTarget::Stdout } else { AuditTarget::File(path.to_owned()) }
    }

    fn open(&self) -> io::Result<Box<dyn Write + Send>> {
        Ok(match self {
            AuditTarget::Stdout => Box::new(io::stdout()),
            AuditTarget::File(path) => Box::new(append(path)?),
        })
    }
}

/// Readable only by the owner, because it shows the activity of users.
fn append(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

impl AuditLog {
    /// Writes nothing.
    pub fn disabled() -> Self {
        AuditLog(None)
    }

    /// Opens the log. Events wait until [`AuditLog::start`] or [`AuditLog::close`], so that a server can confine itself
    /// before the writer's thread exists.
    ///
    /// # Errors
    /// The destination cannot be opened.
    pub fn open(target: AuditTarget, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let out = target.open()?;
        let shared = Arc::new(Shared {
            pending: Mutex::default(),
            wake_writer: Condvar::new(),
            is_shutting_down: AtomicBool::new(false),
            reopen_requested: AtomicBool::new(false),
            written: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        });
        let writer = Mutex::new(Writer::Opened(out, target));
        Ok(AuditLog(Some(Arc::new(LogHandle { shared, clock, writer }))))
    }

    /// Starts the writer's thread, unless it has started.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub fn start(&self) -> io::Result<()> {
        let Some(log) = &self.0 else { return Ok(()) };
        let mut writer = log.writer();
        let (out, target) = match mem::replace(&mut *writer, Writer::Ended) {
            Writer::Opened(out, target) => (out, target),
            other => {
                *writer = other;
                return Ok(());
            }
        };
        let shared = Arc::clone(&log.shared);
        let thread =
            thread::Builder::new().name("audit".to_owned()).spawn(move || shared.write_all(out, &target))?;
        *writer = Writer::Started(thread);
        Ok(())
    }

    /// Whether events are written. Skip collecting details of an event otherwise.
    pub(crate) fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Queues one event.
    pub fn record(&self, event: &AuditEvent<'_>) {
        let Some(log) = &self.0 else { return };
        let mut pending = log.shared.pending();
        if pending.len() >= MAX_PENDING_BYTES {
            log.shared.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let before = pending.len();
        let _ = write!(pending, "{{\"time\":\"{:.6}\",", log.clock.now());
        let start = pending.len();
        // The opening brace of the object has been written already.
        if serde_json::to_writer(&mut *pending, event).is_err() {
            return pending.truncate(before);
        }
        pending.remove(start);
        pending.push(b'\n');
        let is_first = before == 0;
        drop(pending);
        if is_first {
            log.shared.wake_writer.notify_one();
        }
    }

    /// Writes pending lines and closes the log. Later events are lost.
    pub fn close(&self) {
        if let Some(log) = &self.0 {
            log.close();
        }
    }

    /// Reopens the file after log rotation (SIGHUP).
    pub fn reopen(&self) {
        if let Some(log) = &self.0 {
            log.shared.reopen_requested.store(true, Ordering::Release);
            log.shared.wake_writer.notify_one();
        }
    }
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Vec<u8>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes until the log is dropped.
    fn write_all(&self, mut out: Box<dyn Write + Send>, target: &AuditTarget) {
        let mut batch = Vec::new();
        loop {
            let is_ending = {
                let pending = self.pending();
                let is_idle = |pending: &mut Vec<u8>| {
                    pending.is_empty()
                        && !self.is_shutting_down.load(Ordering::Acquire)
                        && !self.reopen_requested.load(Ordering::Acquire)
                };
                // A notification between the check and the wait is lost; the timeout bounds the delay.
                let waited = self.wake_writer.wait_timeout_while(pending, Duration::from_secs(1), is_idle);
                let (mut pending, _) = waited.unwrap_or_else(PoisonError::into_inner);
                mem::swap(&mut *pending, &mut batch);
                self.is_shutting_down.load(Ordering::Acquire)
            };
            if self.reopen_requested.swap(false, Ordering::AcqRel) {
                match target.open() {
                    Ok(opened) => out = opened,
                    Err(error) => {
                        tracing::error!(event = "audit_reopen_failed", %error, "failed to reopen the audit log");
                    }
                }
            }
            let lines = batch.iter().filter(|byte| **byte == b'\n').count() as u64;
            match out.write_all(&batch).and_then(|()| out.flush()) {
                Ok(()) => self.written.fetch_add(lines, Ordering::Relaxed),
                Err(error) => {
                    tracing::error!(event = "audit_write_failed", %error, lines, "failed to write audit log, lines are lost");
                    self.dropped.fetch_add(lines, Ordering::Relaxed)
                }
            };
            batch.clear();
            if is_ending {
                return;
            }
        }
    }
}

impl LogHandle {
    fn close(&self) {
        self.shared.is_shutting_down.store(true, Ordering::Release);
        self.shared.wake_writer.notify_one();
        let writer = mem::replace(&mut *self.writer(), Writer::Ended);
        match writer {
            Writer::Started(thread) => {
                let _ = thread.join();
            }
            // What has been recorded is written now, and that is all.
            Writer::Opened(out, target) => self.shared.write_all(out, &target),
            Writer::Ended => {}
        }
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes pending lines before the process ends.
impl Drop for LogHandle {
    fn drop(&mut self) {
        self.close();
    }
}

impl Collector for AuditLog {
    fn collect(&self, exposition: &mut Exposition) {
        let Some(log) = &self.0 else { return };
        let name = "navicert_audit_lines_total";
        exposition.describe(name, Counter, "Audit log lines by result");
        exposition.sample(name, &[("result", "dropped")], log.shared.dropped.load(Ordering::Relaxed));
        exposition.sample(name, &[("result", "written")], log.shared.written.load(Ordering::Relaxed));
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Audit").field(&self.is_enabled()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use navicert_authn::outcome::RefusalClass;
    use navicert_testkit::wait;
    use navicert_types::clock::ManualClock;

    use super::*;

    fn event(reason: Reason) -> AuditEvent<'static> {
        AuditEvent {
            event: EventKind::TokenReview,
            decision: Decision::Deny,
            reason: Some(reason),
            user: None,
            acting_as: None,
            issuer_hash: None,
            jti_hash: None,
            source: Some(IpAddr::from([127, 0, 0, 1])),
            caller: Some("kube-apiserver\u{1b}[2J\n"),
            audit_id: None,
            traceparent: None,
            method: None,
            path: None,
            code: 200,
            took_micros: 7,
        }
    }

    #[test]
    fn writes_one_json_line_per_decision_including_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let audit = AuditLog::open(AuditTarget::from_path(&path), Arc::new(ManualClock::at(1_000))).unwrap();
        for class in [RefusalClass::Expired, RefusalClass::Signature] {
            audit.record(&event(Reason::Refused(class)));
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
    fn reopen_creates_a_rotated_file_again() {
        let dir = tempfile::tempdir().unwrap();
        let (path, moved) = (dir.path().join("audit.log"), dir.path().join("audit.log.1"));
        let audit = AuditLog::open(AuditTarget::from_path(&path), Arc::new(ManualClock::at(0))).unwrap();
        audit.start().unwrap();
        audit.record(&event(Reason::Refused(RefusalClass::Expired)));
        fs::rename(&path, &moved).unwrap();
        audit.reopen();
        let made = async {
            while !path.exists() {
                tokio::task::yield_now().await;
            }
        };
        wait::blocking(wait::within("a new file", made));
        audit.record(&event(Reason::Refused(RefusalClass::Signature)));
        drop(audit);
        assert!(fs::read_to_string(&path).unwrap().contains("signature"));
    }
}
