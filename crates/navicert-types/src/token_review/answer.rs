//! The answer: who it is, or that nobody knows. Written by our webhook, read by whoever asks another server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{KIND, Version};

/// An answer, read as kube-apiserver reads it: unknown fields are passed over, names are case-sensitive (S212).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Answer {
    /// Empty where the server did not say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Empty where the server did not say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// What was found out.
    pub status: Status,
}

/// What was found out about a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// It is somebody's.
    pub authenticated: bool,
    /// Whose; empty unless it is authenticated.
    #[serde(skip_serializing_if = "UserInfo::is_empty")]
    pub user: UserInfo,
    /// For whom it is, of those that were asked about; empty: the server does not say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audiences: Vec<String>,
    /// Why nothing could be found out; empty if something was.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// Who somebody is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserInfo {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// The UID.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Further attributes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// Whether it says nothing at all.
    pub fn is_empty(&self) -> bool {
        *self == UserInfo::default()
    }
}

impl Answer {
    /// An answer in this version.
    pub fn new(version: Version, status: Status) -> Self {
        Answer { kind: KIND.to_owned(), api_version: version.api_version().to_owned(), status }
    }
}
