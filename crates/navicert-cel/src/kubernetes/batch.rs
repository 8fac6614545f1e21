//! Evaluates one request of a batch. The request is JSON: `{"expr", "claims"|"claims_json"|"user", "rule"}`; so is
//! the response: `{"compiled", "compile_error", "ok", "type", "value", "error", "cost"}`.

use super::{User, claims_environment, claims_json, render, user_environment};
use crate::program::Bindings;
use crate::value::{Arena, Claims, ValueRef};
use serde_json::{Value as Json, json};

/// Compiles and evaluates an expression. Errors are reported in the response.
pub fn answer(input: &Json) -> Json {
    let Some(expr) = input.get("expr").and_then(Json::as_str) else {
        return json!({ "fault": "`expr` is missing or no string" });
    };
    let rule = input.get("rule").and_then(Json::as_bool).unwrap_or(false);
    let user = input.get("user").map(User::from_json);
    let environment = if user.is_some() { user_environment() } else { claims_environment() };
    let compiled = if rule { environment.compile_rule(expr) } else { environment.compile(expr) };
    let program = match compiled {
        Ok(program) => program,
        Err(error) => return json!({ "compiled": false, "compile_error": error.to_string() }),
    };
    let empty = serde_json::Map::new();
    let set = match input.get("claims_json").and_then(Json::as_str).map(claims_json::decode) {
        Some(Err(error)) => return json!({ "fault": error.to_string() }),
        Some(Ok(set)) => Some(set),
        None => None,
    };
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
    match program.evaluate(&arena, &bindings) {
        Ok(found) => {
            let mut answer = json!({
                "compiled": true,
                "ok": true,
                "type": render::type_name(&found.value),
                "cost": found.cost,
            });
            if let (Some(value), Some(members)) = (render::value(&found.value), answer.as_object_mut()) {
                members.insert("value".to_owned(), value);
            }
            answer
        }
        Err(error) => {
            json!({ "compiled": true, "ok": false, "error": error.error.kind.exposed(), "cost": error.cost })
        }
    }
}
