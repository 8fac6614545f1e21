//! Decisions of other Kubernetes versions: per version only the answers that differ from those of the base, and an index that says
//! how many do. A version or a file that the index lists and that is missing is a failure.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Vector, json, lines, vectors};

/// The answer of a version that differs from the base.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// What differs: `decision`, `cost` or `text`.
    pub change: String,
    /// The whole answer.
    pub expect: Value,
}

/// How many questions of one kind a version was asked, and how many answers differ in what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VersionCounts {
    /// Questions.
    pub asked: usize,
    /// Answers whose decision differs.
    pub differ: usize,
    /// Answers of which only the cost differs.
    pub cost: usize,
    /// Answers of which only the text differs.
    pub text: usize,
}

/// What was recorded of a kind, such as `authn-token`, from a version; `None` if it was not asked.
///
/// # Panics
/// If the version is not in the index, or a count is missing.
pub fn counts(version: &str, kind: &str) -> Option<VersionCounts> {
    let index = json("versions.json");
    let recorded = &index["versions"][version];
    assert!(recorded.is_object(), "{version} is not recorded");
    let counts = recorded["kinds"].get(kind)?;
    let count = |name: &str| {
        let count = counts[name].as_u64().and_then(|count| usize::try_from(count).ok());
        count.unwrap_or_else(|| panic!("versions.json: {version} {kind} has no `{name}`"))
    };
    let (asked, differ) = (count("asked"), count("differ"));
    Some(VersionCounts { asked, differ, cost: count("cost"), text: count("text") })
}

/// The answers of a version that differ from the base, by `id`, of a kind such as `authn-token`.
///
/// # Panics
/// If the version was not asked this kind, or does not have as many differing answers as the index says.
pub fn overrides(version: &str, kind: &str) -> BTreeMap<String, Override> {
    let counts = counts(version, kind).unwrap_or_else(|| panic!("{kind} is not recorded from {version}"));
    let expected = counts.differ + counts.cost + counts.text;
    if json("versions.json")["base"] == version {
        return BTreeMap::new();
    }
    let file = format!("{version}/{kind}.jsonl");
    let found = if expected == 0 { Vec::new() } else { lines(&file) };
    let one = |line: &Value| {
        let text = |name: &str| {
            line[name].as_str().unwrap_or_else(|| panic!("{file}: a line without `{name}`")).to_owned()
        };
        (text("id"), Override { change: text("change"), expect: line["expect"].clone() })
    };
    let overrides: BTreeMap<String, Override> = found.iter().map(one).collect();
    assert_eq!(overrides.len(), expected, "{file} has not the answers that versions.json counts");
    overrides
}

/// Why navicert does not give the recorded answer of a version, if it does not.
pub fn reason_not_followed(version: &str, id: &str) -> Option<&'static str> {
    let until_1_36 = matches!(version, "1.34" | "1.35" | "1.36");
    let is_in_place = matches!(
        id,
        "cel-ver-quantity-05"
            | "cel-ver-quantity-06"
            | "cel-ver-quantity-07"
            | "cel-ver-quantity-08"
            | "cel-ver-quantity-11"
            | "cel-ver-quantity-12"
            | "cel-ver-quantity-13"
    );
    let is_at_the_limit = matches!(
        id,
        "cel-ver-quantity-16"
            | "cel-ver-quantity-17"
            | "cel-ver-quantity-18"
            | "cel-ver-quantity-19"
            | "cel-ver-quantity-20"
            | "cel-ver-quantity-21"
            | "cel-ver-quantity-22"
            | "cel-ver-quantity-24"
            | "cel-ver-quantity-26"
    );
    if until_1_36 && is_in_place {
        Some("`add` and `sub` of a large quantity also change the receiver, a defect fixed in 1.37")
    } else if version == "1.38" && is_at_the_limit {
        Some("whole quantities of 19 digits that fit into 64 bits are integers since 1.38; not followed yet")
    } else {
        None
    }
}

/// The vectors of a kind with the answers of a version, without those that navicert [does not follow](reason_not_followed).
///
/// # Panics
/// As [`overrides`], and if an answer is about no question.
pub fn vectors_of(version: &str, kind: &str) -> Vec<Vector> {
    let mut overrides = overrides(version, kind);
    let mut found = vectors(&format!("{kind}.jsonl"));
    for vector in &mut found {
        if let Some(other) = overrides.remove(&vector.id) {
            vector.expect = other.expect;
        }
    }
    assert!(overrides.is_empty(), "{version}/{kind}.jsonl answers unknown questions: {:?}", overrides.keys());
    found.retain(|vector| reason_not_followed(version, &vector.id).is_none());
    found
}
