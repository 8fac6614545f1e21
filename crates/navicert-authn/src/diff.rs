//! Compares two configurations, or one configuration under two Kubernetes versions: which file is valid, which tokens are decided
//! differently, which users change, what is logged. The tokens are found by a search: claims that the rules of either side name,
//! changed at their boundaries, signed with a key of the search and decided by both sides.
//!
//! ```text
//! configurations ──constants, solve──▶ values of claims ──candidates──▶ tokens ──decide──▶ findings ──shrink──▶ DiffReport
//! ```

mod candidates;
mod constants;
mod finding;
mod places;
mod replay;
mod shrink;
mod side_authenticator;
mod solve;
mod tokens;

use std::collections::BTreeMap;

use navicert_types::Timestamp;

use crate::config::{CompiledConfig, ConfigError, NavicertConfiguration};
use crate::profile::AuthnProfile;
use crate::report::{Change, ChangeKind, DiffReport, DiffSideReport};
use candidates::Candidate;
use finding::{Finding, FindingKey};
pub use replay::{replay_suite, replay_tokens};
use side_authenticator::{ComparableDecision, SideAuthenticator};
use tokens::TokenSigner;

/// Maximum number of tokens that a search tries.
const MAX_TOKENS: usize = 20_000;
/// Maximum number of changes that a report lists.
const MAX_CHANGES: usize = 40;
/// The default time of decisions: the first second of 2027.
pub const DEFAULT_NOW: i64 = 1_798_761_600;

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct DiffSide<'s> {
    /// The name of the file, for the report.
    pub file: &'s str,
    /// The AuthenticationConfiguration.
    pub config: &'s [u8],
    /// The profile, with the Kubernetes version.
    pub profile: AuthnProfile,
    /// Settings of issuers.
    pub navicert_config: &'s NavicertConfiguration,
}

/// Why a comparison is not possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiffError {
    /// Key generation failed.
    #[error("failed to generate a signing key")]
    Key,
    /// A suite or a token cannot be replayed.
    #[error("{0}")]
    Replay(String),
}

/// Compares two sides at a time.
///
/// The search is deterministic and bounded. That it finds nothing does not prove that the sides are equivalent.
///
/// ```
/// use navicert_authn::config::NavicertConfiguration;
/// use navicert_authn::diff::{DEFAULT_NOW, DiffSide, diff};
/// use navicert_authn::{AuthnProfile, KubeVersion, Timestamp};
///
/// let config = b"
/// apiVersion: apiserver.config.k8s.io/v1
/// kind: AuthenticationConfiguration
/// jwt:
/// - issuer: {url: 'https://login.example.com', audiences: [kubernetes]}
///   claimMappings: {username: {claim: sub, prefix: ''}}
/// ";
/// let navicert_config = NavicertConfiguration::default();
/// let side = |version| DiffSide {
///     file: "auth.yaml",
///     config,
///     profile: AuthnProfile::kube(version),
///     navicert_config: &navicert_config,
/// };
/// let now = Timestamp::from_second(DEFAULT_NOW)?;
/// let report = diff(&side(KubeVersion::V1_37), &side(KubeVersion::V1_38), now)?;
/// assert!(report.changed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`DiffError::Key`]
pub fn diff(from: &DiffSide<'_>, to: &DiffSide<'_>, now: Timestamp) -> Result<DiffReport, DiffError> {
    let loaded = [SideAuthenticator::load(from), SideAuthenticator::load(to)];
    let [from_report, to_report] = [(from, &loaded[0]), (to, &loaded[1])].map(|(side, loaded)| {
        let errors = loaded.as_ref().err().map(errors).unwrap_or_default();
        DiffSideReport {
            file: side.file.to_owned(),
            kube_version: side.profile.version.to_string(),
            valid: errors.is_empty(),
            errors,
        }
    });
    let mut report = DiffReport {
        changed: false,
        changes: configuration_change(&from_report, &to_report).into_iter().collect(),
        from: from_report,
        to: to_report,
        tokens_tried: 0,
        is_truncated: false,
        replayed: Vec::new(),
    };
    if let [Ok(first), Ok(second)] = loaded {
        search((from, first.compiled), (to, second.compiled), now, &mut report)?;
    }
    report.changed = !report.changes.is_empty();
    Ok(report)
}

/// Tries every candidate on both sides, and adds what differs to the report.
fn search(
    (from, first): (&DiffSide<'_>, CompiledConfig),
    (to, second): (&DiffSide<'_>, CompiledConfig),
    now: Timestamp,
    report: &mut DiffReport,
) -> Result<(), DiffError> {
    let signer = TokenSigner::new().ok_or(DiffError::Key)?;
    let searches = candidates::searches(&first, &second, now.as_second());
    let sides = Sides {
        from: SideAuthenticator::new(first, from, &signer),
        to: SideAuthenticator::new(second, to, &signer),
        signer,
        now,
    };
    let mut found = Found::default();
    for search in &searches {
        found.try_all(search.first(), &sides);
        for accepted in std::mem::take(&mut found.accepted).into_iter().flatten() {
            found.try_all(search.around(&accepted), &sides);
        }
        found.accepted = Default::default();
    }
    (report.tokens_tried, report.is_truncated) = (found.tried, found.is_truncated);
    let names = [report.from.name(&report.to), report.to.name(&report.from)];
    for finding in found.findings.into_values() {
        let finding = shrink::shrink(finding, &sides, &mut report.tokens_tried);
        report.changes.push(finding.into_change(&sides, &names));
    }
    Ok(())
}

/// What a search has found so far.
#[derive(Default)]
struct Found {
    findings: BTreeMap<FindingKey, Finding>,
    /// The first token that each side accepts.
    accepted: [Option<Candidate>; 2],
    tried: usize,
    is_truncated: bool,
}

impl Found {
    /// Tries these tokens, within the limits of a search.
    fn try_all(&mut self, candidates: Vec<Candidate>, sides: &Sides) {
        for candidate in candidates {
            if self.tried >= MAX_TOKENS {
                self.is_truncated = true;
                return;
            }
            self.tried += 1;
            let Some(decided) = sides.decide(candidate) else { continue };
            for (accepted, decision) in self.accepted.iter_mut().zip([&decided.from, &decided.to]) {
                if accepted.is_none() && decision.user().is_some() {
                    *accepted = Some(decided.candidate.clone());
                }
            }
            let Some(finding) = decided.finding() else { continue };
            if self.findings.len() == MAX_CHANGES && !self.findings.contains_key(&finding.key) {
                self.is_truncated = true;
            } else {
                self.findings.entry(finding.key.clone()).or_insert(finding);
            }
        }
    }
}

/// Both sides, ready to decide.
struct Sides {
    from: SideAuthenticator,
    to: SideAuthenticator,
    signer: TokenSigner,
    now: Timestamp,
}

impl Sides {
    /// The decisions on a token.
    fn decide(&self, candidate: Candidate) -> Option<Decided> {
        let token = self.signer.token(&candidate.claims, candidate.header)?;
        let from = self.from.decide_with(&token, candidate.keys, self.now);
        let to = self.to.decide_with(&token, candidate.keys, self.now);
        Some(Decided { candidate, token, from, to })
    }

    /// What differs in the decisions on a token.
    fn compare(&self, candidate: Candidate) -> Option<Finding> {
        self.decide(candidate)?.finding()
    }
}

/// A token and the decisions on it.
struct Decided {
    candidate: Candidate,
    token: String,
    from: ComparableDecision,
    to: ComparableDecision,
}

impl Decided {
    fn finding(self) -> Option<Finding> {
        let Decided { candidate, token, from, to } = self;
        let key = FindingKey::new(&from, &to)?;
        Some(Finding { key, candidate, token, from, to })
    }
}

/// Why a configuration is rejected.
fn errors(error: &ConfigError) -> Vec<String> {
    match error {
        ConfigError::Invalid { violations, .. } => violations.iter().map(ToString::to_string).collect(),
        ConfigError::Decode(diagnostics) => diagnostics.iter().map(ToString::to_string).collect(),
        ConfigError::Empty => vec![error.to_string()],
    }
}

fn configuration_change(from: &DiffSideReport, to: &DiffSideReport) -> Option<Change> {
    let (first, second) = (from.name(to), to.name(from));
    let reasons = |side: &DiffSideReport| side.errors.join("; ");
    let summary = match (from.valid, to.valid) {
        (true, true) => return None,
        (true, false) => {
            format!(
                "the configuration becomes invalid: {first} accepts it, {second} does not: {}",
                reasons(to)
            )
        }
        (false, true) => {
            format!(
                "the configuration becomes valid: {first} rejects it, {second} does not: {}",
                reasons(from)
            )
        }
        (false, false) if from.errors == to.errors => return None,
        (false, false) => {
            format!("the configuration is invalid for another reason: {}, now {}", reasons(from), reasons(to))
        }
    };
    Some(Change { kind: ChangeKind::Configuration, summary, example: None })
}

#[cfg(test)]
mod tests;
