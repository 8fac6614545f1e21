//! Decodes plugin output into a credential, with client-go's order of checks and messages.
// §3.4

use std::sync::Arc;

use http::HeaderValue;
use navicert_types::exec_credential::{self, DecodeError, ExecVersion};
use navicert_types::time::Time;
use navicert_types::tree::{Syntax, parse};
use navicert_types::{Secret, Timestamp, redact};
use thiserror::Error;

use crate::credential::{BearerError, ClientIdentity, IdentityError, bearer};

/// The credential of a plugin's output.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PluginOutput {
    /// The bearer token; empty if absent.
    pub token: Secret<String>,
    /// The `Authorization` header, marked sensitive.
    pub authorization: Option<HeaderValue>,
    /// The certificate and its key, if present.
    pub identity: Option<Arc<ClientIdentity>>,
    /// When both expire; `None` means never.
    pub expires: Option<Time>,
}

/// Why plugin output is not a credential.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginOutputError {
    /// Not an `ExecCredential`.
    #[error("decoding stdout")]
    Undecodable(#[source] Box<DecodeError>),
    /// `apiVersion` is missing; client-go calls this version `__internal`.
    // C331
    #[error("exec plugin returned no apiVersion (empty output?)")]
    NoVersion,
    /// Not the version configured in the kubeconfig.
    #[error("exec plugin is configured to use API version {configured}, plugin returned version {returned}")]
    OtherVersion {
        /// The kubeconfig's.
        configured: ExecVersion,
        /// The plugin's.
        returned: ExecVersion,
    },
    /// `status` is missing.
    #[error("exec plugin didn't return a status field")]
    NoStatus,
    /// `status` has no credential.
    #[error("exec plugin didn't return a token or cert/key pair")]
    NoCredential,
    /// A certificate without a key, or a key without a certificate.
    #[error("exec plugin returned only certificate or key, not both")]
    IncompleteKeyPair,
    /// Certificate and key cannot be parsed or do not match.
    #[error("failed parsing client key/certificate")]
    Identity(#[from] IdentityError),
    /// A token that is not a valid header value.
    // C336
    #[error("exec plugin returned a token with control characters")]
    TokenCharacters,
    /// A token with leading or trailing white space: whether it belongs to the token is ambiguous.
    // C336
    #[error("exec plugin returned a token with leading or trailing white space")]
    TokenWhitespace,
}

/// Decodes the output of a plugin that exited successfully.
///
/// # Errors
/// The first check that fails.
// C332
pub fn read(stdout: &[u8], configured: ExecVersion) -> Result<PluginOutput, PluginOutputError> {
    let (returned, credential) = exec_credential::decode(stdout).map_err(|error| match error {
        DecodeError::NoVersion => PluginOutputError::NoVersion,
        other => PluginOutputError::Undecodable(Box::new(other)),
    })?;
    if returned != configured {
        return Err(PluginOutputError::OtherVersion { configured, returned });
    }
    let status = credential.status.ok_or(PluginOutputError::NoStatus)?;
    let (certificate, key) = (&status.client_certificate_data, &status.client_key_data);
    if status.token.is_empty() && certificate.is_empty() && key.is_empty() {
        return Err(PluginOutputError::NoCredential);
    }
    if certificate.is_empty() != key.is_empty() {
        return Err(PluginOutputError::IncompleteKeyPair);
    }
    let identity = if certificate.is_empty() {
        None
    } else {
        Some(Arc::new(ClientIdentity::from_pem(certificate.as_bytes(), key.expose().as_bytes())?))
    };
    let authorization = (!status.token.is_empty()).then(|| bearer(&status.token)).transpose()?;
    Ok(PluginOutput { token: status.token, authorization, identity, expires: status.expiration_timestamp })
}

impl PluginOutput {
    /// Warns if the certificate, which is used nevertheless, is not valid yet or has expired.
    // C334
    pub(crate) fn certificate_warning(&self, now: Timestamp) -> Option<&'static str> {
        /// Tolerated clock skew.
        const TOLERANCE: std::time::Duration = std::time::Duration::from_secs(5 * 60);
        let validity = self.identity.as_ref()?.validity();
        let valid_from = validity.not_before.saturating_sub(TOLERANCE).unwrap_or(Timestamp::MIN);
        if now < valid_from {
            Some("certificate of exec plugin is not valid yet")
        } else if now > validity.not_after {
            Some("certificate of exec plugin has expired")
        } else {
            None
        }
    }
}

impl From<BearerError> for PluginOutputError {
    fn from(error: BearerError) -> Self {
        match error {
            BearerError::Characters => PluginOutputError::TokenCharacters,
            BearerError::Whitespace => PluginOutputError::TokenWhitespace,
        }
    }
}

/// The message of a `Status` object printed by a failed plugin: the only part of its output that is shown, escaped and at
/// most one kilobyte.
// C327
pub(super) fn status_message(stdout: &[u8]) -> Option<String> {
    const MAX_MESSAGE_BYTES: usize = 1024;
    let node = parse(stdout, Syntax::Json).ok()?;
    let text = |name: &str| node.as_mapping().and_then(|mapping| mapping.last(name)?.value.as_str());
    let is_status = text("kind") == Some("Status") && text("apiVersion") == Some("v1");
    let message = text("message").filter(|message| is_status && !message.trim().is_empty())?;
    let cleaned = redact::terminal(message);
    let end = cleaned.floor_char_boundary(MAX_MESSAGE_BYTES);
    Some(cleaned.split_at_checked(end).map_or("", |(start, _)| start).to_owned())
}
