//! What differs between two decisions, and what makes two differences the same.

use serde_json::Value;

use super::Sides;
use super::candidates::Candidate;
use super::side_authenticator::ComparableDecision;
use crate::report::{Change, ChangeKind, ExampleToken, ReportedUser, SideDecision};

/// A token that the sides decide differently.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) key: FindingKey,
    pub(super) candidate: Candidate,
    pub(super) token: String,
    pub(super) from: ComparableDecision,
    pub(super) to: ComparableDecision,
}

/// What a finding is about: findings with one key are reported once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FindingKey {
    pub(super) kind: ChangeKind,
    /// The reasons and attributes that differ.
    details: Vec<String>,
}

impl FindingKey {
    /// What differs, if anything does.
    pub(super) fn new(from: &ComparableDecision, to: &ComparableDecision) -> Option<Self> {
        let (kind, details) = match (from.user(), to.user()) {
            (Some(first), Some(second)) => {
                let fields = changed_fields(first, second);
                if fields.is_empty() {
                    return None;
                }
                (ChangeKind::User, fields)
            }
            (Some(_), None) => (ChangeKind::Rejected, vec![reason(to)]),
            (None, Some(_)) => (ChangeKind::Accepted, vec![reason(from)]),
            // Tokens that are rejected for another reason are the same change as those that are accepted or rejected.
            (None, None) if from.class != to.class || from.log_template == to.log_template => return None,
            (None, None) => (ChangeKind::Log, vec![template(from), template(to)]),
        };
        Some(FindingKey { kind, details })
    }
}

impl Finding {
    /// The finding as a change of a report. `names` are those of the sides.
    pub(super) fn into_change(self, sides: &Sides, names: &[String; 2]) -> Change {
        let [first, second] = names;
        let summary = match self.key.kind {
            ChangeKind::User => {
                format!("a user gets another {}", listed(&self.key.details))
            }
            ChangeKind::Rejected => {
                format!("a token is rejected: {first} accepts it, {second} does not ({})", reason(&self.to))
            }
            ChangeKind::Accepted => {
                format!("a token is accepted: {first} rejects it, {second} does not ({})", reason(&self.from))
            }
            _ => "a rejected token is logged in other words".to_owned(),
        };
        let candidate = &self.candidate;
        let notes = [
            candidate.header.describe().map(str::to_owned),
            candidate.keys.describe().map(|other| format!("the issuer's key set also has {other}")),
        ];
        let example = ExampleToken {
            claims: Value::Object(candidate.claims.clone()),
            now: sides.now.as_second(),
            notes: notes.into_iter().flatten().collect(),
            jwks: sides.signer.key_set(candidate.keys),
            from: SideDecision { outcome: self.from.outcome, log: self.from.log },
            to: SideDecision { outcome: self.to.outcome, log: self.to.log },
            token: self.token,
        };
        Change { kind: self.key.kind, summary, example: Some(example) }
    }
}

/// What differs between two decisions in words; empty: nothing.
pub(super) fn summary(from: &ComparableDecision, to: &ComparableDecision) -> String {
    let Some(key) = FindingKey::new(from, to) else { return String::new() };
    match key.kind {
        ChangeKind::User => format!("the user gets another {}", listed(&key.details)),
        ChangeKind::Rejected => format!("rejected, was accepted ({})", reason(to)),
        ChangeKind::Accepted => format!("accepted, was rejected ({})", reason(from)),
        _ => "logged in other words".to_owned(),
    }
}

/// Why a token is not accepted: the class of the rejection.
fn reason(decision: &ComparableDecision) -> String {
    decision.class.map_or("no configured issuer", |class| class.name()).to_owned()
}

/// The attributes of two users that differ.
fn changed_fields(first: &ReportedUser, second: &ReportedUser) -> Vec<String> {
    let mut fields = Vec::new();
    if first.username != second.username {
        fields.push("username".to_owned());
    }
    if first.uid != second.uid {
        fields.push("UID".to_owned());
    }
    if first.groups != second.groups {
        fields.push("group".to_owned());
    }
    let keys = first.extra.keys().chain(second.extra.keys());
    let mut changed: Vec<&String> =
        keys.filter(|key| first.extra.get(*key) != second.extra.get(*key)).collect();
    changed.sort();
    changed.dedup();
    fields.extend(changed.into_iter().map(|key| format!("extra attribute `{key}`")));
    fields
}

fn listed(parts: &[String]) -> String {
    match parts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
        None => String::new(),
    }
}

/// A log line without what depends on the token: numbers and quoted texts.
fn template(decision: &ComparableDecision) -> String {
    let Some(line) = &decision.log_template else { return reason(decision) };
    let mut text = String::new();
    let mut rest = line.chars().peekable();
    while let Some(symbol) = rest.next() {
        match symbol {
            '"' => {
                while rest.next_if(|next| *next != '"').is_some() {}
                rest.next();
                text.push('…');
            }
            '0'..='9' => {
                while rest.next_if(|next| next.is_ascii_digit() || ".:-".contains(*next)).is_some() {}
                text.push('…');
            }
            // What follows is the document itself.
            '{' => break,
            other => text.push(other),
        }
    }
    text
}
