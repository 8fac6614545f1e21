//! The user that the server sees, as a report.

use std::collections::BTreeMap;
use std::fmt;

use navicert_types::redact;
use serde::Serialize;

use crate::whoami::{SelfSubjectReview, UserInfo};

/// The result of `whoami`: a `SelfSubjectReview` as `kubectl auth whoami -o json` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WhoamiReport {
    /// The API version that the server answered in, such as `authentication.k8s.io/v1`.
    pub api_version: String,
    /// `SelfSubjectReview`.
    pub kind: &'static str,
    /// Empty, as in the server's response.
    pub metadata: BTreeMap<String, String>,
    /// The server's answer.
    pub status: ReportedStatus,
}

/// The server's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReportedStatus {
    /// The user.
    pub user_info: ReportedUserInfo,
}

/// A user as the server identifies it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportedUserInfo {
    /// The user name.
    pub username: String,
    /// The unique identifier.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The groups, in the server's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The extra attributes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl From<&SelfSubjectReview> for WhoamiReport {
    fn from(review: &SelfSubjectReview) -> Self {
        WhoamiReport {
            api_version: review.api_version.clone(),
            kind: "SelfSubjectReview",
            metadata: BTreeMap::new(),
            status: ReportedStatus { user_info: (&review.user).into() },
        }
    }
}

impl From<&UserInfo> for ReportedUserInfo {
    fn from(user: &UserInfo) -> Self {
        ReportedUserInfo {
            username: user.username.clone(),
            uid: user.uid.clone(),
            groups: user.groups.clone(),
            extra: user.extra.iter().cloned().collect(),
        }
    }
}

/// The user's attributes, one to a line.
impl fmt::Display for UserInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |texts: &[String]| redact::line(&texts.join(", ")).into_owned();
        writeln!(f, "username  {}", redact::line(&self.username))?;
        if !self.uid.is_empty() {
            writeln!(f, "uid       {}", redact::line(&self.uid))?;
        }
        if !self.groups.is_empty() {
            writeln!(f, "groups    {}", list(&self.groups))?;
        }
        for (index, (key, values)) in self.extra.iter().enumerate() {
            let label = if index == 0 { "extra" } else { "" };
            writeln!(f, "{label:<10}{}: {}", redact::line(key), list(values))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_a_line_per_attribute_and_no_control_character() {
        let user = UserInfo {
            username: "ann\nx".to_owned(),
            uid: String::new(),
            groups: vec!["a".to_owned(), "b".to_owned()],
            extra: vec![("k".to_owned(), vec!["v".to_owned()]), ("l".to_owned(), vec!["w".to_owned()])],
        };
        let text = user.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert_eq!(lines[1..], ["groups    a, b", "extra     k: v", "          l: w"]);
        let report = WhoamiReport::from(&SelfSubjectReview { api_version: "v".to_owned(), user });
        let json = serde_json::to_value(report).unwrap();
        assert_eq!(json["status"]["userInfo"]["extra"]["l"][0], "w");
        assert_eq!(json["status"]["userInfo"].get("uid"), None);
    }
}
