//! Generated expressions over one set of claims, bound as a plain map, against recorded outcomes.

use crate::report::Report;
use crate::skips;
use crate::suite::{compare, same_type};
use navicert_cel::{Arena, Bindings, Environment, Reading, ValueRef};
use navicert_testkit::k8s::vectors;
use serde_json::Value as Json;

/// All generated expressions, with the outcomes of Kubernetes 1.N.
pub fn run(minor: u16) -> Report {
    let mut report = Report::default();
    let document = vectors::json("k8s/authn-1.37.json");
    let claims = document.get("claims").cloned().unwrap_or_default();
    let environment =
        match Environment::kubernetes_version(minor).variable("claims", "map(string, any)").build() {
            Ok(environment) => environment,
            Err(error) => {
                report.note("environment", Err(error.to_string()));
                return report;
            }
        };
    let reading = Reading { integers: false, unescape: false };
    let mut others = vectors::overrides(&format!("1.{minor}"), "k8s/generated");
    for line in vectors::lines("k8s/generated-1.37.jsonl") {
        let expr = line.get("expr").and_then(Json::as_str).unwrap_or("");
        // The identifier is the JSON text of the expression.
        let line = others.remove(&Json::from(expr).to_string()).map_or(line.clone(), |other| other.expect);
        // The version cannot answer.
        if line.get("fault").is_some() {
            continue;
        }
        let mut verdict = one(&environment, &claims, reading, expr, &line);
        if minor < 37 && skips::reason("cel.until-1.36", expr).is_some() {
            verdict = Ok(());
        }
        report.note(expr, verdict);
    }
    report
}

fn one(
    environment: &Environment,
    claims: &Json,
    reading: Reading,
    expr: &str,
    expected: &Json,
) -> Result<(), String> {
    let refused = expected.get("phase").and_then(Json::as_str) == Some("compile");
    let program = match environment.compile(expr) {
        Ok(_) if refused => return Err(format!("compiles; {expected}")),
        Ok(program) => program,
        Err(_) if refused => return Ok(()),
        Err(error) => return Err(format!("does not compile: {error}; {expected}")),
    };
    if let Some(wanted) = expected.get("type").and_then(Json::as_str)
        && !same_type(program.result_type(), wanted)
    {
        return Err(format!("type {} instead of {wanted}", program.result_type()));
    }
    let arena = Arena::new();
    let bindings = Bindings::new().with("claims", ValueRef::from_json(claims, reading));
    compare("", &program.evaluate(&arena, &bindings), expected)
}
