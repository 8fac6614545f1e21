//! Authentication rules over one set of claims and one user, against recorded outcomes.

use crate::report::Report;
use crate::suite::compare;
use navicert_cel::kubernetes::{User, claims_environment_of, user_environment_of};
use navicert_cel::{Arena, Bindings, Claims, Environment, ValueRef};
use navicert_testkit::k8s::vectors;
use serde_json::Value as Json;

/// All rules, with the outcomes of Kubernetes 1.N.
pub fn run(minor: u16) -> Report {
    let mut report = Report::default();
    let document = vectors::json("k8s/authn-1.37.json");
    let empty = serde_json::Map::new();
    let claims = document.get("claims").and_then(Json::as_object).unwrap_or(&empty);
    let user = User::from_json(document.get("user").unwrap_or(&Json::Null));
    let mut others = vectors::overrides(&format!("1.{minor}"), "k8s/authn");
    for test in document.get("tests").and_then(Json::as_array).map_or(&[][..], |tests| tests) {
        let text = |name: &str| test.get(name).and_then(Json::as_str).unwrap_or("");
        let other = others.remove(text("id")).map(|other| other.expect);
        let expected = other.as_ref().or_else(|| test.get("expect")).unwrap_or(&Json::Null);
        let environment =
            if text("env") == "user" { user_environment_of(minor) } else { claims_environment_of(minor) };
        let input = if text("env") == "user" { Input::User(&user) } else { Input::Claims(claims) };
        report.note(text("id"), one(&environment, text("expr"), &input, expected));
    }
    report
}

/// The value of the variable.
enum Input<'i> {
    Claims(&'i serde_json::Map<String, Json>),
    User(&'i User),
}

fn one(environment: &Environment, expr: &str, input: &Input<'_>, expected: &Json) -> Result<(), String> {
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
    let bindings = match input {
        Input::User(user) => {
            let Some(val) = user.val(&arena) else { return Err("no room".to_owned()) };
            Bindings::new().with("user", val)
        }
        Input::Claims(claims) => Bindings::new().with("claims", ValueRef::Claims(Claims::Object(claims))),
    };
    compare(expr, &program.evaluate(&arena, &bindings), expected)
}
