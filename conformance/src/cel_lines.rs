//! The lines of `cel.jsonl`: compiled or not, value or not, type and value.

use crate::report::Report;
use crate::skips;
use navicert_cel::kubernetes::batch;
use navicert_testkit::k8s::vectors;
use serde_json::Value as Json;

/// All lines, with the answers of Kubernetes 1.N.
pub fn run(minor: u16) -> Report {
    let mut report = Report::default();
    for vector in vectors::vectors_of(&format!("1.{minor}"), "cel") {
        let (id, input, expect) = (vector.id.as_str(), &vector.input, &vector.expect);
        let response = batch::answer_in(input, minor);
        let mut verdict = compare(input, expect, &response);
        if let (Ok(()), None) = (&verdict, skips::reason("cel.cost", id)) {
            verdict = compare_cost(input, expect, &response);
        }
        report.note(id, verdict);
    }
    report
}

fn compare(input: &Json, expect: &Json, response: &Json) -> Result<(), String> {
    for member in ["compiled", "ok", "type", "value"] {
        let (wanted, found) = (expect.get(member), response.get(member));
        let same = match (wanted, found) {
            (None, _) => true,
            (Some(wanted), Some(found)) => same_json(wanted, found),
            (Some(_), None) => false,
        };
        if !same {
            let expr = input.get("expr").and_then(Json::as_str).unwrap_or("");
            return Err(format!("{expr}: `{member}` differs: {response} instead of {expect}"));
        }
    }
    Ok(())
}

/// Compares the cost, which is informative; the costs should be equal.
fn compare_cost(input: &Json, expect: &Json, response: &Json) -> Result<(), String> {
    let (wanted, found) = (expect.get("cost"), response.get("cost"));
    if wanted.is_some() && wanted != found {
        let expr = input.get("expr").and_then(Json::as_str).unwrap_or("");
        return Err(format!("{expr}: cost {found:?} instead of {wanted:?}: {response}"));
    }
    Ok(())
}

/// Numbers compare by value; integers exactly.
fn same_json(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left == right,
            _ => match (left.as_u64(), right.as_u64()) {
                (Some(left), Some(right)) => left == right,
                _ => left.as_f64() == right.as_f64(),
            },
        },
        (Json::Array(left), Json::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same_json(left, right))
        }
        (Json::Object(left), Json::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, value)| right.get(key).is_some_and(|other| same_json(value, other)))
        }
        _ => left == right,
    }
}
