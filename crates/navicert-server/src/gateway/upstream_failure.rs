//! Reports why requests through the gateway fail: every distinct cause once, however many requests fail for it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_client::credential::CredentialError;
use navicert_client::exec::ExecError;
use navicert_client::transport::TransportError;
use navicert_types::{Clock, error_chain};

use crate::forward::UpstreamObserver;

/// A cause that has not occurred for this long, while other requests succeeded, is reported again.
const REPORT_AGAIN_AFTER: Duration = Duration::from_secs(5 * 60);
/// Maximum number of distinct causes remembered. Further causes are not reported.
const MAX_REPORTED_CAUSES: usize = 64;

/// Which part of a request to the API server failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureClass {
    /// The plugin policy does not allow the credential plugin or the signer.
    PolicyDenied,
    /// The credential plugin is missing or failed.
    Plugin,
    /// The external signer failed, for example because of an incorrect PIN.
    Signer,
    /// The external signer took longer than the server waits.
    SlowSigner,
    /// Another source of credentials failed, such as a token file.
    Credential,
    /// The API server rejected the client certificate or the token.
    CredentialRejected,
    /// The API server is unreachable, or cannot be verified.
    Unreachable,
}

/// Why requests fail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpstreamFailure {
    /// What failed.
    pub class: FailureClass,
    /// The cause, with install hints and without the time until the next attempt. Never contains a secret.
    pub message: String,
}

impl UpstreamFailure {
    /// Classifies an error; `None` for errors that the next request fixes or that the request itself caused.
    pub fn from_transport(error: &TransportError) -> Option<Self> {
        let class = match error {
            TransportError::Retired
            | TransportError::Path(_)
            | TransportError::OtherServer { .. }
            | TransportError::Decompress(_) => return None,
            TransportError::Credentials(error) if error.is_denied() => FailureClass::PolicyDenied,
            TransportError::Credentials(CredentialError::Exec(_)) => FailureClass::Plugin,
            TransportError::Credentials(CredentialError::Signer(_)) | TransportError::Signer(_) => {
                FailureClass::Signer
            }
            TransportError::SlowSigner { .. } => FailureClass::SlowSigner,
            TransportError::Credentials(_) | TransportError::Identity(_) => FailureClass::Credential,
            TransportError::CertificateRejected { .. } => FailureClass::CredentialRejected,
            _ => FailureClass::Unreachable,
        };
        let message = match error {
            TransportError::Credentials(error) => format!("failed to get credentials: {}", cause(error)),
            error => error_chain(error),
        };
        Some(UpstreamFailure { class, message })
    }

    /// The API server responded with 401.
    pub fn unauthorized() -> Self {
        UpstreamFailure {
            class: FailureClass::CredentialRejected,
            message: "the API server rejected the credential (401 Unauthorized)".to_owned(),
        }
    }
}

impl fmt::Display for UpstreamFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Whether the error is a consequence: the connection closed while the request waited for it.
fn is_consequence(error: &TransportError) -> bool {
    matches!(error, TransportError::Http(error) if error.is_canceled())
}

/// The failure behind a back-off: its text is the same for every request.
fn cause(error: &CredentialError) -> String {
    match error {
        CredentialError::Exec(ExecError::BackingOff { failure, .. }) => error_chain(&**failure),
        error => error_chain(error),
    }
}

/// Whether two failures have one cause. Install hints are left out after a while, so only what precedes them counts.
fn is_same_cause(one: &UpstreamFailure, other: &UpstreamFailure) -> bool {
    fn paragraph(failure: &UpstreamFailure) -> Option<&str> {
        failure.message.split("\n\n").next()
    }
    one.class == other.class && paragraph(one) == paragraph(other)
}

/// Receives failures. Called on a thread of the gateway.
#[derive(Clone)]
pub struct FailureReceiver(Arc<dyn Fn(&UpstreamFailure) + Send + Sync>);

impl FailureReceiver {
    /// Calls this function for every distinct cause.
    pub fn new(receive: impl Fn(&UpstreamFailure) + Send + Sync + 'static) -> Self {
        FailureReceiver(Arc::new(receive))
    }
}

impl fmt::Debug for FailureReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FailureReceiver")
    }
}

/// Passes every distinct cause to a receiver once.
#[derive(Debug)]
pub(super) struct DistinctFailures {
    receiver: FailureReceiver,
    clock: Arc<dyn Clock>,
    reported: Mutex<Vec<ReportedCause>>,
    /// Whether a request has failed since the last accepted one.
    is_failing: AtomicBool,
}

#[derive(Debug)]
struct ReportedCause {
    failure: UpstreamFailure,
    last_seen: Duration,
    /// Whether a request has succeeded since.
    is_over: bool,
}

impl DistinctFailures {
    pub(super) fn new(receiver: FailureReceiver, clock: Arc<dyn Clock>) -> Self {
        DistinctFailures { receiver, clock, reported: Mutex::default(), is_failing: AtomicBool::new(false) }
    }

    fn report(&self, failure: &UpstreamFailure) {
        self.is_failing.store(true, Ordering::Release);
        if self.is_new(failure) {
            (self.receiver.0)(failure);
        }
    }

    fn is_new(&self, failure: &UpstreamFailure) -> bool {
        let now = self.clock.monotonic();
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = reported.iter_mut().find(|known| is_same_cause(&known.failure, failure)) {
            let is_new = known.is_over && now.saturating_sub(known.last_seen) >= REPORT_AGAIN_AFTER;
            (known.last_seen, known.is_over) = (now, false);
            return is_new;
        }
        let has_room = reported.len() < MAX_REPORTED_CAUSES;
        if has_room {
            reported.push(ReportedCause { failure: failure.clone(), last_seen: now, is_over: false });
        }
        has_room
    }
}

impl UpstreamObserver for DistinctFailures {
    fn failed(&self, error: &TransportError) {
        // Another request on the same connection has reported why it closed.
        let is_explained = is_consequence(error) && self.is_failing.load(Ordering::Acquire);
        if let Some(failure) = UpstreamFailure::from_transport(error).filter(|_| !is_explained) {
            self.report(&failure);
        }
    }

    fn rejected(&self) {
        self.report(&UpstreamFailure::unauthorized());
    }

    fn accepted(&self) {
        if self.is_failing.swap(false, Ordering::AcqRel) {
            let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            reported.iter_mut().for_each(|known| known.is_over = true);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use navicert_types::clock::ManualClock;

    use super::*;

    fn not_found(help: Option<&str>) -> ExecError {
        ExecError::NotFound { command: "corp-login".to_owned(), help: help.map(str::to_owned) }
    }

    fn exec(error: ExecError) -> TransportError {
        TransportError::Credentials(CredentialError::Exec(error))
    }

    fn refused() -> TransportError {
        let source = io::ErrorKind::ConnectionRefused.into();
        TransportError::Connect { address: "127.0.0.1:1".to_owned(), source }
    }

    fn observer() -> (DistinctFailures, Arc<Mutex<Vec<UpstreamFailure>>>, Arc<ManualClock>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (sink, clock) = (Arc::clone(&seen), Arc::new(ManualClock::at(0)));
        let receiver = FailureReceiver::new(move |failure| sink.lock().unwrap().push(failure.clone()));
        (DistinctFailures::new(receiver, Arc::clone(&clock) as Arc<dyn Clock>), seen, clock)
    }

    #[test]
    fn reports_a_cause_once_also_from_back_off_and_without_its_hint() {
        let (observer, seen, _) = observer();
        observer.failed(&exec(not_found(Some("brew install corp-login"))));
        let wait = Duration::from_secs(1);
        for help in [Some("brew install corp-login"), None] {
            observer.failed(&exec(ExecError::BackingOff { failure: Arc::new(not_found(help)), wait }));
        }
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!(seen[0].class, FailureClass::Plugin);
        let expected =
            "failed to get credentials: exec: executable corp-login not found\n\nbrew install corp-login";
        assert_eq!(seen[0].message, expected);
    }

    #[test]
    fn reports_distinct_causes_with_their_classes() {
        let (observer, seen, _) = observer();
        for _ in 0..2 {
            observer.failed(&exec(not_found(None)));
            observer.failed(&refused());
            observer.failed(&TransportError::CertificateRejected { alert: "UnknownCA".to_owned() });
            observer.rejected();
            observer.failed(&TransportError::Retired);
        }
        let classes: Vec<FailureClass> = seen.lock().unwrap().iter().map(|failure| failure.class).collect();
        let expected = [
            FailureClass::Plugin,
            FailureClass::Unreachable,
            FailureClass::CredentialRejected,
            FailureClass::CredentialRejected,
        ];
        assert_eq!(classes, expected);
    }

    #[test]
    fn reports_again_only_after_recovery_and_some_time() {
        let (observer, seen, clock) = observer();
        let count = || seen.lock().unwrap().len();
        observer.failed(&refused());
        observer.accepted();
        observer.failed(&refused());
        assert_eq!(count(), 1, "too early");
        clock.advance(REPORT_AGAIN_AFTER);
        observer.failed(&refused());
        assert_eq!(count(), 1, "no request has succeeded meanwhile");
        observer.accepted();
        clock.advance(REPORT_AGAIN_AFTER);
        observer.failed(&refused());
        assert_eq!(count(), 2);
    }

    #[test]
    fn number_of_reported_causes_is_bounded() {
        let (observer, seen, _) = observer();
        for port in 0..2 * MAX_REPORTED_CAUSES {
            let source = io::ErrorKind::ConnectionRefused.into();
            observer.failed(&TransportError::Connect { address: port.to_string(), source });
        }
        assert_eq!(seen.lock().unwrap().len(), MAX_REPORTED_CAUSES);
    }
}
