//! Makes an example as small as possible: the fewest claims for which the same differs.

use serde_json::Value;

use super::Sides;
use super::candidates::Candidate;
use super::finding::Finding;

/// Removes and simplifies parts of the token as long as the finding stays the same. Counts the tokens that it tries.
pub(super) fn shrink(mut finding: Finding, sides: &Sides, tried: &mut usize) -> Finding {
    loop {
        let smaller = simpler(&finding.candidate).into_iter().find_map(|candidate| {
            *tried += 1;
            sides.compare(candidate).filter(|smaller| smaller.key == finding.key)
        });
        match smaller {
            Some(smaller) => finding = smaller,
            None => return finding,
        }
    }
}

/// Simpler tokens, each by one step.
fn simpler(candidate: &Candidate) -> Vec<Candidate> {
    let mut found = Vec::new();
    let plain = Candidate { claims: candidate.claims.clone(), ..Candidate::default() };
    if plain.header != candidate.header {
        found.push(Candidate { header: plain.header, ..candidate.clone() });
    }
    if plain.keys != candidate.keys {
        found.push(Candidate { keys: plain.keys, ..candidate.clone() });
    }
    for (name, value) in &candidate.claims {
        let mut without = candidate.clone();
        without.claims.remove(name);
        found.push(without);
        for value in simpler_values(value) {
            let mut changed = candidate.clone();
            changed.claims.insert(name.clone(), value);
            found.push(changed);
        }
    }
    found
}

/// The same list or object with one part less.
fn simpler_values(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(list) => {
            let without = |at: usize| {
                let rest = list.iter().enumerate().filter(|(index, _)| *index != at);
                rest.map(|(_, value)| value.clone()).collect()
            };
            (0..list.len()).map(without).collect()
        }
        Value::Object(members) => {
            let without = |name: &String| {
                let mut rest = members.clone();
                rest.remove(name);
                Value::Object(rest)
            };
            members.keys().map(without).collect()
        }
        _ => Vec::new(),
    }
}
