//! Compares an expectation with an outcome, field by field.

use navicert_types::authentication_test::{Expectation, ExpectedRejection, ExpectedUser};

use crate::model::AuthenticatedUser;
use crate::model::outcome::{AuthnOutcome, Rejection};

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// The field: `outcome`, `username`, `groups`, `extra["example.com/tenant"]`, `reason`…
    pub field: String,
    /// The expected value.
    pub expected: String,
    /// The actual value.
    pub got: String,
}

/// Every difference.
pub(super) fn between(expected: &Expectation, outcome: &AuthnOutcome) -> Vec<Difference> {
    match (expected, outcome) {
        (Expectation::User(expected), AuthnOutcome::Authenticated(user)) => users(expected, user),
        (Expectation::Rejected(expected), AuthnOutcome::Rejected(rejection)) => {
            rejections(expected, rejection)
        }
        (Expectation::NoOpinion, AuthnOutcome::NoOpinion(_)) => Vec::new(),
        _ => vec![Difference {
            field: "outcome".to_owned(),
            expected: describe_expectation(expected),
            got: describe_outcome(outcome),
        }],
    }
}

fn users(expected: &ExpectedUser, user: &AuthenticatedUser) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(&mut found, "username", &expected.username, user.username());
    compare(&mut found, "uid", &expected.uid, user.uid());
    if expected.groups != user.groups() {
        push(&mut found, "groups", list(&expected.groups), list(user.groups()));
    }
    for (key, values) in &expected.extra {
        match user.extra().get(key) {
            Some(got) if got == values => {}
            Some(got) => push(&mut found, &format!("extra[{key:?}]"), list(values), list(got)),
            None => push(&mut found, &format!("extra[{key:?}]"), list(values), "nothing".to_owned()),
        }
    }
    for (key, got) in user.extra().iter().filter(|(key, _)| !expected.extra.contains_key(*key)) {
        push(&mut found, &format!("extra[{key:?}]"), "nothing".to_owned(), list(got));
    }
    found
}

fn rejections(expected: &ExpectedRejection, rejection: &Rejection) -> Vec<Difference> {
    let mut found = Vec::new();
    let refusal = &rejection.refusal;
    let reason = refusal.class().name();
    if let Some(expected) = expected.reason.as_deref().filter(|expected| *expected != reason) {
        push(&mut found, "reason", expected.to_owned(), format!("{reason} ({rejection})"));
    }
    let message = refusal.message();
    if let Some(expected) = expected.message.as_deref().filter(|expected| Some(*expected) != message) {
        let got = message.map_or_else(|| format!("none: {rejection}"), |message| format!("{message:?}"));
        push(&mut found, "message", format!("{expected:?}"), got);
    }
    let at = refusal.path().unwrap_or(&rejection.authenticator).to_string();
    let is_in = |part: &str| {
        at.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    if let Some(expected) = expected.at.as_deref().filter(|expected| !is_in(expected)) {
        push(&mut found, "at", expected.to_owned(), format!("{at} ({rejection})"));
    }
    found
}

fn compare(found: &mut Vec<Difference>, field: &str, expected: &str, got: &str) {
    if expected != got {
        push(found, field, format!("{expected:?}"), format!("{got:?}"));
    }
}

fn push(found: &mut Vec<Difference>, field: &str, expected: String, got: String) {
    found.push(Difference { field: field.to_owned(), expected, got });
}

fn list(items: &[String]) -> String {
    format!("{items:?}")
}

fn describe_expectation(expected: &Expectation) -> String {
    match expected {
        Expectation::User(user) => format!("the user {:?}", user.username),
        Expectation::NoOpinion => "no opinion".to_owned(),
        Expectation::Rejected(rejection) => {
            let parts = [
                rejection.reason.clone(),
                rejection.message.as_ref().map(|message| format!("{message:?}")),
                rejection.at.as_ref().map(|at| format!("at {at}")),
            ];
            format!("rejected: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
        }
    }
}

fn describe_outcome(outcome: &AuthnOutcome) -> String {
    match outcome {
        AuthnOutcome::Authenticated(user) => format!("the user {:?}", user.username()),
        AuthnOutcome::NoOpinion(why) => format!("no opinion: {why}"),
        AuthnOutcome::Rejected(rejection) => format!("rejected: {}, {rejection}", rejection.refusal.class()),
    }
}
