//! Authentication rules over one set of claims and one user, against recorded outcomes.

use crate::report::Report;
use crate::suite::compare;
use navicert_cel::kubernetes::{self, User};
use navicert_cel::{Arena, Bindings, Claims, ValueRef};
use navicert_testkit::k8s::vectors;
use serde_json::Value as Json;

/// All rules.
pub fn run() -> Report {
    let mut report = Report::default();
    let document = vectors::json("k8s/authn-1.37.json");
    let empty = serde_json::Map::new();
    let claims = document.get("claims").and_then(Json::as_object).unwrap_or(&empty);
    let user = User::from_json(document.get("user").unwrap_or(&Json::Null));
    for test in document.get("tests").and_then(Json::as_array).map_or(&[][..], |tests| tests) {
        let text = |name: &str| test.get(name).and_then(Json::as_str).unwrap_or("");
        let expected = test.get("expect").unwrap_or(&Json::Null);
        report.note(text("id"), one(text("env") == "user", text("expr"), claims, &user, expected));
    }
    report
}

fn one(
    user_rule: bool,
    expr: &str,
    claims: &serde_json::Map<String, Json>,
    user: &User,
    expected: &Json,
) -> Result<(), String> {
    let environment =
        if user_rule { kubernetes::user_environment() } else { kubernetes::claims_environment() };
    let refused = expected.get("phase").and_then(Json::as_str) == Some("compile");
    let program = match environment.compile(expr) {
        Ok(_) if refused => return Err(format!("{expr}: compiles; {expected}")),
        Ok(program) => program,
        Err(_) if refused => return Ok(()),
        Err(error) => return Err(format!("{expr}: does not compile: {error}; {expected}")),
    };
    if let Some(wanted) = expected.get("type").and_then(Json::as_str)
        && program.result_type() != wanted
    {
        return Err(format!("{expr}: type {} instead of {wanted}", program.result_type()));
    }
    let arena = Arena::new();
    let bindings = if user_rule {
        let Some(val) = user.val(&arena) else { return Err("no room".to_owned()) };
        Bindings::new().with("user", val)
    } else {
        Bindings::new().with("claims", ValueRef::Claims(Claims::Object(claims)))
    };
    compare(expr, &program.evaluate(&arena, &bindings), expected)
}
