//! The credentials of a lookup, as a report.

use std::fmt;

use navicert_types::error_chain;
use navicert_types::redact;
use navicert_types::report::ReportedSecret;
use serde::Serialize;

use crate::provider::{Attempt, Lookup};

/// The result of `image get`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GetReport {
    /// The image, as a kubelet spells it.
    pub image: String,
    /// The credentials, in the order they are tried; empty: the pull is anonymous.
    pub credentials: Vec<AttemptReport>,
    /// Why providers failed.
    pub errors: Vec<String>,
}

/// One credential to try. A credential that occurs again names the attempt it repeats: an unsalted hash, even a few digits of
/// it, would let a reader test guesses of a short password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AttemptReport {
    /// The key that matches the image.
    pub key: String,
    /// The provider, or the node's file, that it came from.
    pub provider: String,
    /// The user name.
    pub username: String,
    /// The password; redacted without `--show-secrets`.
    pub password: ReportedSecret,
    /// The number of an earlier attempt with the same credential, from 1.
    pub same_as_attempt: Option<usize>,
    /// The service account whose pods alone may use it, as `NAMESPACE/NAME`.
    pub service_account: Option<String>,
}

/// The result of `image auth-file`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuthFileReport {
    /// The file that was written.
    pub file: String,
    /// The keys in it.
    pub keys: Vec<String>,
}

/// The result of `image invalidate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InvalidateReport {
    /// The image.
    pub image: String,
    /// How many cached responses were removed.
    #[serde(rename = "forgotten")]
    pub removed: u64,
}

impl AttemptReport {
    /// The attempts in order, with or without passwords.
    pub fn list(attempts: &[Attempt<'_>], show_secrets: bool) -> Vec<Self> {
        let report = |(number, attempt): (usize, &Attempt<'_>)| {
            let mut earlier = attempts.iter().take(number);
            let first = earlier.position(|other| other.credential == attempt.credential);
            AttemptReport {
                key: String::from_utf8_lossy(attempt.key).into_owned(),
                provider: attempt.provider.to_owned(),
                username: attempt.credential.username.clone(),
                password: ReportedSecret::new(&attempt.credential.password, show_secrets),
                same_as_attempt: first.map(|at| at + 1),
                service_account: attempt.source.map(|source| format!("{}/{}", source.namespace, source.name)),
            }
        };
        attempts.iter().enumerate().map(report).collect()
    }
}

impl GetReport {
    /// The report of a lookup and the credentials to try.
    pub fn new(lookup: &Lookup, attempts: &[Attempt<'_>], show_secrets: bool) -> Self {
        GetReport {
            image: lookup.image().to_owned(),
            credentials: AttemptReport::list(attempts, show_secrets),
            errors: lookup.errors().map(|error| error_chain(error)).collect(),
        }
    }
}

/// The credentials, one to a line.
impl fmt::Display for GetReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.credentials.iter().try_for_each(|AttemptReport { key, provider, username, password, .. }| {
            writeln!(f, "{}\t{}\t{key} ({provider})", redact::terminal(username), password.shown())
        })
    }
}

/// The keys, one to a line.
impl fmt::Display for AuthFileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.keys.iter().try_for_each(|key| writeln!(f, "{key}"))
    }
}

impl fmt::Display for InvalidateReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let responses = if self.removed == 1 { "cached response" } else { "cached responses" };
        writeln!(f, "{}: {} {responses} removed", self.image, self.removed)
    }
}
