//! What the last requests say about the API server: whether it answers, and whether it accepts the proxy's credential.
// S246

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use http::StatusCode;
use navicert_client::transport::TransportError;
use navicert_types::error_chain;
use tokio::sync::Notify;

const ACCEPTED: u8 = 0;
const REJECTED: u8 = 1;
const UNREACHABLE: u8 = 2;

/// The outcome of the last request that was sent with the proxy's credential.
#[derive(Debug, Default)]
pub(crate) struct UpstreamState {
    /// One of the constants; requests read it without a lock.
    outcome: AtomicU8,
    /// Why the API server did not answer.
    reason: Mutex<String>,
    failed: Notify,
}

impl UpstreamState {
    /// Whether the API server answered last time and accepted the credential.
    ///
    /// # Errors
    /// It rejected the credential, or did not answer.
    pub(crate) fn outcome(&self) -> Result<(), String> {
        match self.outcome.load(Ordering::Acquire) {
            ACCEPTED => Ok(()),
            REJECTED => Err("the API server rejected the proxy's credential (401)".to_owned()),
            _ => {
                let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
                Err(format!("no answer from the API server: {reason}"))
            }
        }
    }

    /// Waits until forwarded requests begin to fail.
    pub(crate) async fn failed(&self) {
        self.failed.notified().await;
    }

    /// Records the response to a forwarded request.
    pub(super) fn observe_response(&self, status: StatusCode) {
        if self.record_response(status) {
            self.failed.notify_one();
        }
    }

    /// Records a forwarded request without a response, unless the client may have caused that.
    pub(super) fn observe_failure(&self, error: &TransportError) {
        let may_be_the_clients = matches!(
            error,
            TransportError::OtherServer { .. }
                | TransportError::Path(_)
                | TransportError::Http(_)
                | TransportError::Retired
                | TransportError::Decompress(_)
        );
        if !may_be_the_clients && self.record_failure(error) {
            self.failed.notify_one();
        }
    }

    /// Records a response, and returns whether requests begin to fail with it.
    pub(crate) fn record_response(&self, status: StatusCode) -> bool {
        let outcome = if status == StatusCode::UNAUTHORIZED { REJECTED } else { ACCEPTED };
        if self.outcome.load(Ordering::Relaxed) == outcome {
            return false;
        }
        match (self.outcome.swap(outcome, Ordering::AcqRel), outcome) {
            (before, now) if before == now => return false,
            (_, REJECTED) => {
                tracing::error!(
                    event = "upstream_credential_rejected",
                    "the API server rejected the proxy's credential"
                );
                return true;
            }
            (REJECTED, _) => tracing::info!(
                event = "upstream_credential_accepted",
                "the API server accepts the proxy's credential again"
            ),
            _ => tracing::info!(event = "upstream_reachable", "the API server answers again"),
        }
        false
    }

    /// Records a request without a response, and returns whether requests begin to fail with it.
    pub(crate) fn record_failure(&self, error: &TransportError) -> bool {
        let text = error_chain(error);
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&text);
        let begins = self.outcome.swap(UNREACHABLE, Ordering::AcqRel) != UNREACHABLE;
        if begins {
            tracing::error!(event = "upstream_unreachable", error = text, "no answer from the API server");
        }
        begins
    }
}
