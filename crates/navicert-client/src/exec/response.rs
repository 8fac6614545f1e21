//! The second half of a run: from what the plugin printed to a credential, checks in upstream's order and words
//! (client-credentials.md §3.4).

use std::sync::Arc;

use http::HeaderValue;
use navicert_types::exec_credential::{self, DecodeError, Version};
use navicert_types::time::Time;
use navicert_types::tree::{Syntax, parse};
use navicert_types::{Secret, Timestamp, redact};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::credential::{Identity, IdentityError};

/// What a plugin gave.
#[derive(Clone, Debug)]
pub struct Output {
    /// The bearer token, empty if there is none.
    pub token: Secret<String>,
    /// The header it makes, marked sensitive.
    pub authorization: Option<HeaderValue>,
    /// The certificate and its key, if there are any.
    pub identity: Option<Arc<Identity>>,
    /// When both expire; `None` is never.
    pub expires: Option<Time>,
}

/// Why what a plugin printed is no credential.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResponseError {
    /// No `ExecCredential` at all.
    #[error("decoding stdout: {0}")]
    Undecodable(#[source] Box<DecodeError>),
    /// Nothing says which version it is; upstream calls this version `__internal` (C331).
    #[error("exec plugin returned no apiVersion (empty output?)")]
    NoVersion,
    /// Another version than the kubeconfig asks for.
    #[error("exec plugin is configured to use API version {configured}, plugin returned version {returned}")]
    OtherVersion {
        /// The kubeconfig's.
        configured: Version,
        /// The plugin's.
        returned: Version,
    },
    /// No answer in it.
    #[error("exec plugin didn't return a status field")]
    NoStatus,
    /// An answer with nothing in it.
    #[error("exec plugin didn't return a token or cert/key pair")]
    NoCredential,
    /// Half a pair.
    #[error("exec plugin returned only certificate or key, not both")]
    HalfAPair,
    /// A pair that is none.
    #[error("failed parsing client key/certificate: {0}")]
    Identity(#[from] IdentityError),
    /// A token that no header can carry (C336).
    #[error("exec plugin returned a token with control characters in it")]
    TokenCharacters,
    /// A token that begins or ends with white space: which of the two is meant cannot be known (C336).
    #[error("exec plugin returned a token with white space around it")]
    TokenSpace,
}

/// Reads what a plugin printed before it exited successfully.
///
/// # Errors
/// The first rule that it breaks (C332).
pub fn read(stdout: &[u8], configured: Version) -> Result<Output, ResponseError> {
    let (returned, credential) = exec_credential::decode(stdout).map_err(|error| match error {
        DecodeError::NoVersion => ResponseError::NoVersion,
        other => ResponseError::Undecodable(Box::new(other)),
    })?;
    if returned != configured {
        return Err(ResponseError::OtherVersion { configured, returned });
    }
    let status = credential.status.ok_or(ResponseError::NoStatus)?;
    let (certificate, key) = (&status.client_certificate_data, &status.client_key_data);
    if status.token.is_empty() && certificate.is_empty() && key.is_empty() {
        return Err(ResponseError::NoCredential);
    }
    if certificate.is_empty() != key.is_empty() {
        return Err(ResponseError::HalfAPair);
    }
    let identity = if certificate.is_empty() {
        None
    } else {
        Some(Arc::new(Identity::from_pem(certificate.as_bytes(), key.expose().as_bytes())?))
    };
    let authorization = (!status.token.is_empty()).then(|| bearer(&status.token)).transpose()?;
    Ok(Output { token: status.token, authorization, identity, expires: status.expiration_timestamp })
}

impl Output {
    /// What is worth a warning although it is used: the certificate is not valid yet, or not any more (C334).
    pub fn certificate_warning(&self, now: Timestamp) -> Option<&'static str> {
        /// Clocks differ.
        const TOLERANCE: std::time::Duration = std::time::Duration::from_secs(5 * 60);
        let validity = self.identity.as_ref()?.validity();
        let valid_from = validity.not_before.saturating_sub(TOLERANCE).unwrap_or(Timestamp::MIN);
        if now < valid_from {
            Some("the plugin's certificate is not valid yet")
        } else if now > validity.not_after {
            Some("the plugin's certificate has expired")
        } else {
            None
        }
    }
}

/// `Bearer` and the token, if a header can carry it: nothing is trimmed, nothing is echoed (C336).
pub(crate) fn bearer(token: &Secret<String>) -> Result<HeaderValue, ResponseError> {
    let text = token.expose();
    if text.trim_matches(|c: char| c.is_ascii_whitespace()).len() != text.len() {
        return Err(ResponseError::TokenSpace);
    }
    let value = Zeroizing::new(format!("Bearer {text}"));
    let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| ResponseError::TokenCharacters)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The message of a `Status` object that a failed plugin printed: the one thing of its output that is shown, cleaned
/// and at most a kilobyte (C327).
pub(super) fn status_message(stdout: &[u8]) -> Option<String> {
    const LONGEST: usize = 1024;
    let node = parse(stdout, Syntax::Json).ok()?;
    let text = |name: &str| node.as_mapping().and_then(|mapping| mapping.last(name)?.value.as_str());
    let is_status = text("kind") == Some("Status") && text("apiVersion") == Some("v1");
    let message = text("message").filter(|message| is_status && !message.trim().is_empty())?;
    let cleaned = redact::terminal(message);
    let end = cleaned.floor_char_boundary(LONGEST);
    Some(cleaned.split_at_checked(end).map_or("", |(start, _)| start).to_owned())
}
