//! The outcome of a token, as a report. Contains no claim values beyond the user's own attributes.

use std::collections::BTreeMap;
use std::fmt;

use navicert_types::FieldPath;
use navicert_types::redact::terminal;
use serde::Serialize;
use serde_json::json;

use crate::model::AuthenticatedUser;
use crate::model::outcome::{AuthnOutcome, RefusalClass};

/// What became of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "outcome", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum OutcomeReport {
    /// The token authenticates a user.
    Authenticated {
        /// The user.
        user: ReportedUser,
    },
    /// No configured issuer issued the token; another authenticator may accept it.
    NoOpinion {
        /// Why.
        reason: String,
    },
    /// The token is rejected.
    Rejected {
        /// The kind of the reason; also a label of the metric.
        class: RefusalClass,
        /// The reason.
        error: String,
        /// Field path of the authenticator that rejected the token.
        authenticator: FieldPath,
    },
}

/// The user that a token maps to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportedUser {
    /// The user name.
    pub username: String,
    /// The UID; empty if there is none.
    pub uid: String,
    /// The groups, without `system:authenticated`.
    pub groups: Vec<String>,
    /// The extra attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl From<&AuthenticatedUser> for ReportedUser {
    fn from(user: &AuthenticatedUser) -> Self {
        ReportedUser {
            username: user.username().to_owned(),
            uid: user.uid().to_owned(),
            groups: user.groups().to_vec(),
            extra: user.extra().clone(),
        }
    }
}

impl From<&AuthnOutcome> for OutcomeReport {
    fn from(outcome: &AuthnOutcome) -> Self {
        match outcome {
            AuthnOutcome::Authenticated(user) => OutcomeReport::Authenticated { user: user.into() },
            AuthnOutcome::NoOpinion(why) => OutcomeReport::NoOpinion { reason: why.to_string() },
            AuthnOutcome::Rejected(rejection) => OutcomeReport::Rejected {
                class: rejection.refusal.class(),
                error: rejection.to_string(),
                authenticator: rejection.authenticator.clone(),
            },
        }
    }
}

/// The outcome in one line, followed by the user's attributes, one to a line.
impl fmt::Display for OutcomeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = match self {
            OutcomeReport::Authenticated { user } => user,
            OutcomeReport::NoOpinion { reason } => return writeln!(f, "no-opinion: {reason}"),
            OutcomeReport::Rejected { error, .. } => return writeln!(f, "rejected: {error}"),
        };
        writeln!(f, "authenticated\n  username  {}", terminal(&user.username))?;
        if !user.uid.is_empty() {
            writeln!(f, "  uid       {}", terminal(&user.uid))?;
        }
        for group in &user.groups {
            writeln!(f, "  group     {}", terminal(group))?;
        }
        for (key, values) in &user.extra {
            writeln!(f, "  extra     {key}: {}", json!(values))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ViolationKind;

    #[test]
    fn serialized_names_are_those_of_the_types() {
        for class in RefusalClass::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.name());
        }
        for kind in [
            ViolationKind::Required,
            ViolationKind::Invalid,
            ViolationKind::Duplicate,
            ViolationKind::TooMany,
            ViolationKind::Forbidden,
            ViolationKind::Internal,
        ] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }

    #[test]
    fn text_names_every_attribute_of_the_user() {
        let user = ReportedUser {
            username: "ann".to_owned(),
            uid: "7".to_owned(),
            groups: vec!["a".to_owned(), "b\u{1b}".to_owned()],
            extra: BTreeMap::from([("k".to_owned(), vec!["v".to_owned()])]),
        };
        let text = OutcomeReport::Authenticated { user }.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 6, "{text}");
        assert_eq!(lines[..4], ["authenticated", "  username  ann", "  uid       7", "  group     a"]);
        assert!(!text.contains('\u{1b}'), "{text}");
        assert_eq!(lines[5], "  extra     k: [\"v\"]");
        let rejected = OutcomeReport::NoOpinion { reason: "no issuer".to_owned() };
        assert_eq!(rejected.to_string(), "no-opinion: no issuer\n");
    }
}
