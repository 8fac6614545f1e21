//! What a client and an external TLS signer say to each other (KEP-20200507; client-credentials.md §8.3, §8.8): what both
//! versions share, and one file per version.

pub mod v1;
pub mod v1alpha1;

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The variable a request is in (C821).
pub const CONFIG_VARIABLE: &str = "EXTERNAL_SIGNER_PLUGIN_CONFIG";
/// The variable that says on which descriptor a request of the second version is (C881).
pub const REQUEST_FD_VARIABLE: &str = "EXTERNAL_SIGNER_REQUEST_FD";
/// The name of the auth provider in a kubeconfig (C810).
pub const PROVIDER: &str = "externalSigner";

/// The flat map of a kubeconfig's `auth-provider.config`. A `pin` may be in it, so `Debug` shows only names.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Configuration(pub BTreeMap<String, String>);

impl Configuration {
    /// A setting that is there and not empty.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The same without a PIN (X2).
    #[must_use]
    pub fn without_pin(&self) -> Self {
        Configuration(
            self.0.iter().filter(|(name, _)| *name != "pin").map(|(n, v)| (n.clone(), v.clone())).collect(),
        )
    }

    /// The names of the settings that are the signer's to read: not those that only say how to talk to it.
    pub fn names_for_the_signer(&self) -> Vec<String> {
        const OURS: [&str; 4] = ["pathExec", "signerApiVersion", "signerProtocol", "pin"];
        self.0.keys().filter(|name| !OURS.contains(&name.as_str())).cloned().collect()
    }

    /// What makes two configurations the same signer: their sorted JSON without the PIN (C841).
    pub fn identity(&self) -> String {
        serde_json::to_string(&self.without_pin()).unwrap_or_default()
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Why a message cannot be used. It never says what was in it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageError {
    /// No JSON, or JSON of another shape.
    #[error("it is not a message of the external signer protocol")]
    Malformed,
    /// Another version.
    #[error("its apiVersion is `{0}`, not `{1}`")]
    Version(String, &'static str),
    /// Another kind.
    #[error("its kind is `{0}`, not `{1}`")]
    Kind(String, String),
    /// Something that should be base64.
    #[error("`{0}` is not base64")]
    Base64(&'static str),
    /// Nothing where something should be.
    #[error("`{0}` is empty")]
    Empty(&'static str),
}

/// The version of a message, before anything else is looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
}

/// `apiVersion` and `kind` of a message.
///
/// # Errors
/// [`MessageError::Malformed`].
pub fn head(message: &[u8]) -> Result<(String, String), MessageError> {
    let head: Head = serde_json::from_slice(message).map_err(|_| MessageError::Malformed)?;
    Ok((head.api_version, head.kind))
}

fn expect(message: &[u8], version: &'static str, kinds: &[&str]) -> Result<(), MessageError> {
    let (found_version, kind) = head(message)?;
    if found_version != version {
        return Err(MessageError::Version(shorten(&found_version), version));
    }
    if !kinds.contains(&kind.as_str()) {
        return Err(MessageError::Kind(shorten(&kind), kinds.join("` or `")));
    }
    Ok(())
}

/// What a stranger wrote, as far as it is worth repeating.
fn shorten(text: &str) -> String {
    crate::redact::terminal(&text.chars().take(80).collect::<String>()).into_owned()
}

fn decode(field: &'static str, text: &str) -> Result<Vec<u8>, MessageError> {
    let bytes = STANDARD.decode(text).map_err(|_| MessageError::Base64(field))?;
    if bytes.is_empty() { Err(MessageError::Empty(field)) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests;
