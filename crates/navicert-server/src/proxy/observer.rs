//! What an observer such as the audit log learns about requests and streams.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use http::{Method, Uri};
use navicert_authn::metrics::sha256_label;

use crate::audit::{AuditEvent, AuditLog, Decision, EventKind, Reason};
use crate::trace_context::TraceParent;
use crate::user_ref::UserRef;

/// Receives the outcome of every request, for example an audit log.
pub trait RequestObserver: fmt::Debug + Send + Sync {
    /// Whether outcomes are recorded.
    fn is_enabled(&self) -> bool {
        true
    }

    /// Called after the response head is known.
    fn observe(&self, outcome: &RequestOutcome<'_>);

    /// Called when a response or tunnel ends because its user was revoked, its token expired, or it reached its maximum
    /// age.
    fn stream_ended(&self, outcome: &RequestOutcome<'_>);
}

impl RequestObserver for AuditLog {
    fn is_enabled(&self) -> bool {
        self.is_enabled()
    }

    fn observe(&self, outcome: &RequestOutcome<'_>) {
        record(self, EventKind::Request, outcome);
    }

    fn stream_ended(&self, outcome: &RequestOutcome<'_>) {
        record(self, EventKind::Stream, outcome);
    }
}

fn record(log: &AuditLog, event: EventKind, outcome: &RequestOutcome<'_>) {
    let decision = match (outcome.reason, outcome.code) {
        (None, _) => Decision::Allow,
        (Some(_), 500..) => Decision::Error,
        (Some(_), _) => Decision::Deny,
    };
    log.record(&AuditEvent {
        event,
        decision,
        reason: outcome.reason,
        user: outcome.user,
        acting_as: outcome.acting_as,
        issuer_hash: outcome.issuer.map(|url| sha256_label(url.as_bytes())).as_deref(),
        jti_hash: outcome.jti_hash,
        source: outcome.source,
        caller: None,
        audit_id: outcome.audit_id,
        traceparent: outcome.traceparent,
        method: Some(outcome.method.as_str()),
        path: Some(outcome.uri.path()),
        code: outcome.code,
        took_micros: u64::try_from(outcome.took.as_micros()).unwrap_or(u64::MAX),
    });
}

/// Outcome of one request.
#[derive(Debug)]
pub struct RequestOutcome<'s> {
    /// The authenticated user, if known.
    pub user: Option<UserRef<'s>>,
    /// The impersonated user, if any.
    pub acting_as: Option<&'s str>,
    /// URL of the token's issuer, if it is configured.
    pub issuer: Option<&'s str>,
    /// Hash of the token's `jti`, if it has one and its issuer is configured or the API server reviewed it.
    // S224
    pub jti_hash: Option<&'s str>,
    /// Why the request was rejected, or why the stream ended; `None` if the API server answered.
    pub reason: Option<Reason>,
    /// Client address.
    pub source: Option<IpAddr>,
    /// HTTP method.
    pub method: &'s Method,
    /// Request target.
    pub uri: &'s Uri,
    /// `Audit-ID` of the API server's response, if any.
    pub audit_id: Option<&'s str>,
    /// The trace that the request belongs to, if its `traceparent` is valid.
    pub traceparent: Option<TraceParent>,
    /// Status code of the response.
    pub code: u16,
    /// Time until the response head, or until the stream ended.
    pub took: Duration,
}
