//! The response: the authenticated user, or that the token was not authenticated. Written by the webhook server and read
//! by webhook clients.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::{KIND, TokenReviewVersion};

/// A response, decoded as kube-apiserver decodes it: unknown fields are ignored, field names are case-sensitive.
// S212
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TokenReviewResponse {
    /// Empty if the server omitted it.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub kind: String,
    /// Empty if the server omitted it.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub api_version: String,
    /// The result.
    #[serde(deserialize_with = "nullable")]
    pub status: TokenReviewStatus,
}

/// The result of a token review.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TokenReviewStatus {
    /// Whether the token was authenticated.
    #[serde(deserialize_with = "nullable")]
    pub authenticated: bool,
    /// The user; empty unless authenticated.
    #[serde(skip_serializing_if = "UserInfo::is_empty", deserialize_with = "nullable")]
    pub user: UserInfo,
    /// The requested audiences the token is valid for; empty if the server does not report them.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "nullable")]
    pub audiences: Vec<String>,
    /// Why the token could not be reviewed; empty if it was.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub error: String,
}

/// User name, UID, groups and extra attributes.
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
    /// Extra attributes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "nullable")]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// Whether every field is empty.
    pub fn is_empty(&self) -> bool {
        *self == UserInfo::default()
    }
}

impl TokenReviewResponse {
    /// A response in this version.
    pub fn new(version: TokenReviewVersion, status: TokenReviewStatus) -> Self {
        TokenReviewResponse { kind: KIND.to_owned(), api_version: version.api_version().to_owned(), status }
    }
}

/// Decodes null as the default value, as Go does.
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
    fn response_decodes_leniently_and_omits_empty_fields() {
        let text = r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{"creationTimestamp":null},
            "spec":{},"status":{"authenticated":true,"user":{"username":"ann","groups":null,"extra":{"a":["b"]}},"audiences":null,
            "Error":"x"}}"#;
        let response: TokenReviewResponse = serde_json::from_str(text).unwrap();
        assert!(response.status.authenticated && response.status.error.is_empty());
        assert_eq!(response.status.user.extra["a"], ["b"]);
        let unauthenticated = TokenReviewResponse::new(TokenReviewVersion::V1, TokenReviewStatus::default());
        assert_eq!(
            serde_json::to_string(&unauthenticated).unwrap(),
            r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":false}}"#
        );
    }
}
