//! When a server turns a credential down: with a 401, or in TLS with an alert about our certificate
//! (client-credentials.md C430–C435).

use std::sync::Arc;

use http::StatusCode;
use navicert_signer::error::Reason;
use rustls::AlertDescription;

use super::error::TransportError;
use super::pool::{Answered, Failure};
use crate::credential::{Answer, Credential, Refused};

/// Whether an outcome says that this credential is not good enough, and how.
pub(super) fn refusal(outcome: &Result<Answered, Box<Failure>>, credential: &Credential) -> Option<Refused> {
    match outcome.as_ref().map_err(|failure| &failure.error) {
        Ok(response) if response.status() == StatusCode::UNAUTHORIZED => {
            let answer = Answer { status: response.status(), headers: response.headers().clone() };
            Some(Refused::Unauthorized(Some(Arc::new(answer))))
        }
        Err(TransportError::CertificateRefused { .. }) => {
            credential.identity.is_some().then_some(Refused::TlsAlert)
        }
        // The key is not where the certificate said: there may be another pair by now (C821).
        Err(TransportError::Signer(error)) if error.reason() == Reason::NoObject => Some(Refused::TlsAlert),
        _ => None,
    }
}

/// The fatal alerts that are about a client certificate (C435).
pub(super) fn is_about_us(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::AccessDenied
    )
}
