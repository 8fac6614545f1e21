//! Why the proxy rejects a request, for its log and for the client.

use navicert_types::error_chain;

use super::identity_headers::IdentityError;
use super::impersonation::ImpersonationError;
use crate::audit::Reason;
use crate::fairness::Overloaded;
use crate::problem::Problem;

/// A request was rejected.
#[derive(Debug)]
pub(super) enum Rejected {
    /// Authentication failed; the reason is only logged.
    // S271
    Unauthenticated(Reason),
    /// The user cannot be encoded in headers.
    Identity(IdentityError),
    /// Impersonation was rejected.
    Impersonation(ImpersonationError),
    /// The TokenReview failed.
    ReviewFailed,
    /// Too many requests of this client address wait for authentication.
    Overloaded,
    /// The user has too many connections.
    TooManyConnections,
}

impl From<Overloaded> for Rejected {
    fn from(_: Overloaded) -> Self {
        Rejected::Overloaded
    }
}

impl From<IdentityError> for Rejected {
    fn from(error: IdentityError) -> Self {
        Rejected::Identity(error)
    }
}

impl From<ImpersonationError> for Rejected {
    fn from(error: ImpersonationError) -> Self {
        Rejected::Impersonation(error)
    }
}

impl Rejected {
    /// The reason for logs.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Rejected::Unauthenticated(reason) => *reason,
            Rejected::Identity(error) => error.reason(),
            Rejected::Impersonation(_) => Reason::Impersonation,
            Rejected::ReviewFailed => Reason::NotReviewed,
            Rejected::Overloaded | Rejected::TooManyConnections => Reason::TooManyRequests,
        }
    }

    /// What the client receives.
    pub(super) fn problem(self) -> Problem {
        match self {
            Rejected::Unauthenticated(_) => Problem::Unauthorized,
            Rejected::Identity(error) => {
                tracing::warn!(
                    event = "identity_rejected",
                    reason = error.reason().name(),
                    %error,
                    "rejected a valid token: its user cannot be forwarded"
                );
                Problem::Unauthorized
            }
            Rejected::Impersonation(ImpersonationError::Review(error)) => {
                tracing::warn!(
                    event = "impersonation_review_failed",
                    error = error_chain(&error),
                    "failed to authorize impersonation"
                );
                Problem::UpstreamUnreachable(None)
            }
            Rejected::Impersonation(error) => Problem::Forbidden(error.to_string()),
            Rejected::ReviewFailed => Problem::UpstreamUnreachable(None),
            Rejected::Overloaded => Problem::TooManyRequests,
            Rejected::TooManyConnections => Problem::TooManyConnections,
        }
    }
}
