//! The response: the authenticated user, or that the token was not authenticated. Only read here: the webhook server writes
//! its responses itself, from a user that it does not copy.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// A response, decoded as kube-apiserver decodes it: unknown fields are ignored, field names are case-sensitive.
// S212
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TokenReviewResponse {
    /// Empty if the server omitted it.
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    /// Empty if the server omitted it.
    #[serde(deserialize_with = "nullable")]
    pub api_version: String,
    /// The result.
    #[serde(deserialize_with = "nullable")]
    pub status: TokenReviewStatus,
}

/// The result of a token review.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TokenReviewStatus {
    /// Whether the token was authenticated.
    #[serde(deserialize_with = "nullable")]
    pub authenticated: bool,
    /// The user; empty unless authenticated.
    #[serde(deserialize_with = "nullable")]
    pub user: UserInfo,
    /// The requested audiences the token is valid for; empty if the server does not report them.
    #[serde(deserialize_with = "nullable")]
    pub audiences: Vec<String>,
    /// Why the token could not be reviewed; empty if it was.
    #[serde(deserialize_with = "nullable")]
    pub error: String,
}

/// User name, UID, groups and extra attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UserInfo {
    /// The name.
    #[serde(deserialize_with = "nullable")]
    pub username: String,
    /// The UID.
    #[serde(deserialize_with = "nullable")]
    pub uid: String,
    /// The groups.
    #[serde(deserialize_with = "nullable")]
    pub groups: Vec<String>,
    /// Extra attributes.
    #[serde(deserialize_with = "nullable")]
    pub extra: BTreeMap<String, Vec<String>>,
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
    fn response_decodes_leniently() {
        let text = r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{"creationTimestamp":null},
            "spec":{},"status":{"authenticated":true,"user":{"username":"ann","groups":null,"extra":{"a":["b"]}},"audiences":null,
            "Error":"x"}}"#;
        let response: TokenReviewResponse = serde_json::from_str(text).unwrap();
        assert!(response.status.authenticated && response.status.error.is_empty());
        assert_eq!(response.status.user.extra["a"], ["b"]);
    }
}
