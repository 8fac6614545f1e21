//! The answer: who it is, or that nobody knows. Written by our webhook, read by whoever asks another server.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::{KIND, Version};

/// An answer, read as kube-apiserver reads it: unknown fields are passed over, names are case-sensitive (S212).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Answer {
    /// Empty where the server did not say.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub kind: String,
    /// Empty where the server did not say.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub api_version: String,
    /// What was found out.
    #[serde(deserialize_with = "nullable")]
    pub status: Status,
}

/// What was found out about a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// It is somebody's.
    #[serde(deserialize_with = "nullable")]
    pub authenticated: bool,
    /// Whose; empty unless it is authenticated.
    #[serde(skip_serializing_if = "UserInfo::is_empty", deserialize_with = "nullable")]
    pub user: UserInfo,
    /// For whom it is, of those that were asked about; empty: the server does not say.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "nullable")]
    pub audiences: Vec<String>,
    /// Why nothing could be found out; empty if something was.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub error: String,
}

/// Who somebody is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserInfo {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub username: String,
    /// The UID.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub uid: String,
    /// The groups.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "nullable")]
    pub groups: Vec<String>,
    /// Further attributes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "nullable")]
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

/// Null is nothing, as in Go.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    // S212
    #[test]
    fn an_answer_is_read_leniently_and_written_plainly() {
        let text = r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{"creationTimestamp":null},
            "spec":{},"status":{"authenticated":true,"user":{"username":"ann","groups":null,"extra":{"a":["b"]}},"audiences":null,
            "Error":"x"}}"#;
        let answer: Answer = serde_json::from_str(text).unwrap();
        assert!(answer.status.authenticated && answer.status.error.is_empty());
        assert_eq!(answer.status.user.extra["a"], ["b"]);
        let nobody = Answer::new(Version::V1, Status::default());
        assert_eq!(
            serde_json::to_string(&nobody).unwrap(),
            r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":false}}"#
        );
    }
}
