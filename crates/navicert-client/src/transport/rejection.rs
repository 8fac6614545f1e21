//! Detects that a server rejected the credential: a 401 response, or a TLS alert about the client certificate.
// C430–C435

use std::sync::Arc;

use http::StatusCode;
use rustls::AlertDescription;

use super::error::TransportError;
use super::pool::{BoxedResponse, SendFailure};
use crate::credential::{Credential, RejectedResponse, Rejection};

/// How an outcome rejects this credential; `None` if it does not.
pub(super) fn rejection_in(
    outcome: &Result<BoxedResponse, Box<SendFailure>>,
    credential: &Credential,
) -> Option<Rejection> {
    match outcome.as_ref().map_err(|failure| &failure.error) {
        Ok(response) if response.status() == StatusCode::UNAUTHORIZED => {
            let response_head =
                RejectedResponse { status: response.status(), headers: response.headers().clone() };
            Some(Rejection::Unauthorized(Some(Arc::new(response_head))))
        }
        Err(TransportError::CertificateRejected { alert }) => {
            let is_refreshed = REFRESHING_ALERTS.iter().any(|known| format!("{known:?}") == *alert);
            (is_refreshed && credential.identity.is_some()).then_some(Rejection::TlsAlert)
        }
        // The certificate's key is gone: there may be another pair now (C821).
        #[cfg(feature = "signer")]
        Err(TransportError::Signer(error)) if error.is_key_gone() => Some(Rejection::TlsAlert),
        _ => None,
    }
}

/// The alerts after which another certificate is fetched.
// C435
const REFRESHING_ALERTS: [AlertDescription; 5] = [
    AlertDescription::BadCertificate,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateUnknown,
    AlertDescription::AccessDenied,
];

/// The fatal alerts that concern the client certificate: also those for which another one of the same issuer is no remedy.
pub(super) fn is_client_certificate_alert(alert: AlertDescription) -> bool {
    REFRESHING_ALERTS.contains(&alert)
        || matches!(alert, AlertDescription::UnknownCA | AlertDescription::UnsupportedCertificate)
}
