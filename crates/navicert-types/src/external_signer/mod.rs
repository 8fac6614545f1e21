//! The protocol between a client and an external TLS signer (KEP-20200507): types common to both versions, and one
//! module per version.

pub mod v1;
pub mod v1alpha1;

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use navicert_go::base64::STANDARD;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The environment variable that carries a v1alpha1 request.
// C821
pub const CONFIG_VARIABLE: &str = "EXTERNAL_SIGNER_PLUGIN_CONFIG";
/// The environment variable with the file descriptor of a v1 request.
// C881
pub const REQUEST_FD_VARIABLE: &str = "EXTERNAL_SIGNER_REQUEST_FD";
/// The name of the auth provider in a kubeconfig.
// C810
pub const PROVIDER: &str = "externalSigner";

/// The settings of a kubeconfig's `auth-provider.config`. They may contain a `pin`, so `Debug` shows only names.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SignerConfiguration(pub BTreeMap<String, String>);

impl SignerConfiguration {
    /// A setting that is present and not empty.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The settings without the PIN.
    // X2
    #[must_use]
    pub fn without_pin(&self) -> Self {
        SignerConfiguration(
            self.0.iter().filter(|(name, _)| *name != "pin").map(|(n, v)| (n.clone(), v.clone())).collect(),
        )
    }

    /// Names of the settings meant for the signer, without those that configure the protocol.
    pub fn signer_setting_names(&self) -> Vec<String> {
        const PROTOCOL_SETTINGS: [&str; 4] = ["pathExec", "signerApiVersion", "signerProtocol", "pin"];
        self.0.keys().filter(|name| !PROTOCOL_SETTINGS.contains(&name.as_str())).cloned().collect()
    }

    /// Identifies the signer: the sorted settings as JSON, without the PIN.
    // C841
    pub fn identity(&self) -> String {
        serde_json::to_string(&self.without_pin()).unwrap_or_default()
    }
}

impl fmt::Debug for SignerConfiguration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Why a message is invalid. Never contains message content other than its version and kind.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageError {
    /// Not JSON, or a field has the wrong type.
    #[error("not a message of the external signer protocol")]
    Malformed,
    /// An unexpected version.
    #[error("unexpected apiVersion `{0}` in message, expected `{1}`")]
    Version(String, &'static str),
    /// An unexpected kind.
    #[error("unexpected kind `{0}` in message, expected `{1}`")]
    Kind(String, String),
    /// A field is not base64.
    #[error("invalid base64 in `{0}`")]
    Base64(&'static str),
    /// A required field is empty.
    #[error("`{0}` is empty")]
    Empty(&'static str),
}

/// Version and kind of a message.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeMeta {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
}

/// `apiVersion` and `kind` of a message.
///
/// # Errors
/// [`MessageError::Malformed`].
pub fn type_meta(message: &[u8]) -> Result<(String, String), MessageError> {
    let head: TypeMeta = serde_json::from_slice(message).map_err(|_| MessageError::Malformed)?;
    Ok((head.api_version, head.kind))
}

fn expect_type(message: &[u8], version: &'static str, kinds: &[&str]) -> Result<(), MessageError> {
    let (found_version, kind) = type_meta(message)?;
    if found_version != version {
        return Err(MessageError::Version(truncated(&found_version), version));
    }
    if !kinds.contains(&kind.as_str()) {
        return Err(MessageError::Kind(truncated(&kind), kinds.join("` or `")));
    }
    Ok(())
}

/// An untrusted text, truncated and escaped for messages.
fn truncated(text: &str) -> String {
    crate::redact::terminal(&text.chars().take(80).collect::<String>()).into_owned()
}

fn decode(field: &'static str, text: &str) -> Result<Vec<u8>, MessageError> {
    let bytes = STANDARD.decode(text).map_err(|_| MessageError::Base64(field))?;
    if bytes.is_empty() { Err(MessageError::Empty(field)) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests;
