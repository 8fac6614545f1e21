//! Evaluates one request of a batch. The request is JSON: `{"expr", "claims"|"claims_json"|"user", "rule"}`.

use super::report::BatchEvalReport;
use super::{User, VERSION, claims_environment_of, claims_json, render, user_environment_of};
use crate::program::Bindings;
use crate::value::{Arena, Claims, ValueRef};
use serde_json::{Value as Json, json};

/// [`evaluate`] in the newest stable version, as JSON: `{"compiled", "compile_error", "ok", "type", "value", "error", "cost"}`, or `{"fault"}`.
pub fn answer(input: &Json) -> Json {
    answer_in(input, VERSION)
}

/// [`evaluate`] as JSON.
pub fn answer_in(input: &Json, minor: u16) -> Json {
    match evaluate(input, minor) {
        Ok(report) => serde_json::to_value(report).unwrap_or_default(),
        Err(fault) => json!({ "fault": fault }),
    }
}

/// Compiles and evaluates an expression in the environment of Kubernetes 1.N. Its errors are part of the result.
///
/// # Errors
/// The input is not a request.
pub fn evaluate(input: &Json, minor: u16) -> Result<BatchEvalReport, String> {
    let expr = input.get("expr").and_then(Json::as_str).ok_or("`expr` is missing or no string")?;
    let rule = input.get("rule").and_then(Json::as_bool).unwrap_or(false);
    let user = input.get("user").map(User::from_json);
    let environment = if user.is_some() { user_environment_of(minor) } else { claims_environment_of(minor) };
    let compiled = if rule { environment.compile_rule(expr) } else { environment.compile(expr) };
    let program = match compiled {
        Ok(program) => program,
        Err(error) => {
            return Ok(BatchEvalReport::NotCompiled { compiled: false, compile_error: error.to_string() });
        }
    };
    let empty = serde_json::Map::new();
    let set = input.get("claims_json").and_then(Json::as_str).map(claims_json::decode).transpose();
    let set = set.map_err(|error| error.to_string())?;
    let arena = Arena::new();
    let bindings = match (&user, &set) {
        (Some(user), _) => match user.val(&arena) {
            Some(val) => Bindings::new().with("user", val),
            None => Bindings::new(),
        },
        (None, Some(set)) => Bindings::new().with("claims", ValueRef::Claims(Claims::Set(set))),
        (None, None) => {
            let claims = input.get("claims").and_then(Json::as_object).unwrap_or(&empty);
            Bindings::new().with("claims", ValueRef::Claims(Claims::Object(claims)))
        }
    };
    Ok(match program.evaluate(&arena, &bindings) {
        Ok(found) => BatchEvalReport::Value {
            compiled: true,
            ok: true,
            type_name: render::type_name(&found.value),
            value: render::value(&found.value),
            cost: found.cost,
        },
        Err(error) => BatchEvalReport::Error {
            compiled: true,
            ok: false,
            error: error.error.kind.exposed(),
            cost: error.cost,
        },
    })
}
