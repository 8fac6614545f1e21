//! What changes between two configurations or two Kubernetes versions, as a report.

use std::fmt;

use navicert_types::redact::terminal;
use serde::Serialize;
use serde_json::Value;

use super::OutcomeReport;

/// The result of `authn diff`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DiffReport {
    /// Whether a change was found.
    pub changed: bool,
    /// What is compared.
    pub from: DiffSideReport,
    /// With what it is compared.
    pub to: DiffSideReport,
    /// The changes: of the configuration, of decisions, of users, of log lines.
    pub changes: Vec<Change>,
    /// Number of tokens that were tried on both sides by the search.
    pub tokens_tried: usize,
    /// Whether more changes were found than are listed.
    pub is_truncated: bool,
    /// The cases and tokens that were replayed on both sides.
    pub replayed: Vec<Replay>,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DiffSideReport {
    /// The file.
    pub file: String,
    /// The Kubernetes version.
    pub kube_version: String,
    /// Whether the configuration is valid.
    pub valid: bool,
    /// Why it is not.
    pub errors: Vec<String>,
}

/// One change, with an example.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The kind.
    pub kind: ChangeKind,
    /// What changes, one clause.
    pub summary: String,
    /// A token for which it does.
    pub example: Option<ExampleToken>,
}

/// Kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// The configuration becomes valid or invalid, or is invalid for another reason.
    Configuration,
    /// A token that was accepted is no longer accepted.
    Rejected,
    /// A token that was not accepted is accepted.
    Accepted,
    /// A user gets another name, UID, group or extra attribute.
    User,
    /// The line that is logged for a token that is not accepted.
    Log,
}

/// A token that is decided differently.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExampleToken {
    /// Its claims.
    pub claims: Value,
    /// The time of the decision, in seconds since 1970.
    pub now: i64,
    /// What is unusual about its header, signature or the issuer's keys.
    pub notes: Vec<String>,
    /// The decision of the first side.
    pub from: SideDecision,
    /// The decision of the second side.
    pub to: SideDecision,
    /// The token.
    pub token: String,
    /// The key set of its issuer.
    pub jwks: Value,
}

/// The decision of one side.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SideDecision {
    /// The outcome.
    #[serde(flatten)]
    pub outcome: OutcomeReport,
    /// What is logged, if the token is not accepted and the words are known.
    pub log: Option<String>,
}

/// A case of a suite or a token of a folder that was decided on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// The name of the case or the file.
    pub name: String,
    /// What changes; empty: nothing.
    pub summary: String,
    /// The decision of the first side.
    pub from: SideDecision,
    /// The decision of the second side.
    pub to: SideDecision,
}

impl DiffSideReport {
    /// The side in words, as far as it differs from the other: its file, its version, or both.
    pub(crate) fn name(&self, other: &DiffSideReport) -> String {
        match (self.file == other.file, self.kube_version == other.kube_version) {
            (true, _) => format!("Kubernetes {}", self.kube_version),
            (false, true) => self.file.clone(),
            (false, false) => format!("{} in Kubernetes {}", self.file, self.kube_version),
        }
    }
}

impl fmt::Display for DiffReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [self.from.name(&self.to), self.to.name(&self.from)];
        for change in &self.changes {
            write!(f, "{}", ChangeText { change, names: &names })?;
        }
        for replay in self.replayed.iter().filter(|replay| !replay.summary.is_empty()) {
            writeln!(f, "{}: {}", terminal(&replay.name), replay.summary)?;
            decisions(f, &names, [&replay.from, &replay.to])?;
            writeln!(f)?;
        }
        if !self.replayed.is_empty() {
            let changed = self.replayed.iter().filter(|replay| !replay.summary.is_empty()).count();
            writeln!(f, "{changed} of {} replayed tokens are decided differently", self.replayed.len())?;
        }
        let more = if self.is_truncated { ", and more of the same kinds" } else { "" };
        match (self.changes.len(), self.tokens_tried) {
            (0, 0) => writeln!(f, "no difference found; no token was tried"),
            (0, tried) => writeln!(f, "no difference found in {tried} tokens"),
            (1, tried) => writeln!(f, "1 change found{more}; {tried} tokens tried"),
            (count, tried) => writeln!(f, "{count} changes found{more}; {tried} tokens tried"),
        }
    }
}

/// A change as text.
struct ChangeText<'c> {
    change: &'c Change,
    names: &'c [String; 2],
}

impl fmt::Display for ChangeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", terminal(&self.change.summary))?;
        if let Some(example) = &self.change.example {
            writeln!(f, "  example: {}", terminal(&example.claims.to_string()))?;
            for note in times(example).iter().chain(&example.notes) {
                writeln!(f, "    {}", terminal(note))?;
            }
            decisions(f, self.names, [&example.from, &example.to])?;
        }
        writeln!(f)
    }
}

/// Times of the token, relative to that of the decision.
fn times(example: &ExampleToken) -> Vec<String> {
    let relative = |name: &&str| {
        let time = example.claims.get(name)?.as_i64()?;
        let ahead = time.checked_sub(example.now).filter(|ahead| ahead.unsigned_abs() < 1_000_000)?;
        let direction = if ahead < 0 { "before" } else { "after" };
        Some(format!("`{name}` is {} s {direction} the time of the decision", ahead.unsigned_abs()))
    };
    ["nbf", "iat"].iter().filter_map(relative).collect()
}

fn decisions(f: &mut fmt::Formatter<'_>, names: &[String; 2], sides: [&SideDecision; 2]) -> fmt::Result {
    for (name, side) in names.iter().zip(sides) {
        let outcome = side.outcome.to_string();
        let mut lines = outcome.lines();
        writeln!(f, "  {name}: {}", terminal(lines.next().unwrap_or_default()))?;
        lines.try_for_each(|line| writeln!(f, "  {}", terminal(line)))?;
        if let Some(log) = &side.log {
            // The line about a key set repeats the whole set, which is made for the search.
            let (line, rest) =
                log.split_once(" {\"keys\"").map_or((log.as_str(), ""), |(line, _)| (line, " …"));
            let line: String = line.chars().take(MAX_LOG_CHARS).collect();
            writeln!(f, "    logged: {}{rest}", terminal(&line))?;
        }
    }
    Ok(())
}

/// Log lines are shortened to this length.
const MAX_LOG_CHARS: usize = 300;
