//! Any expression over any claims: never panics, never exceeds the limits.
//!
//! The input is an expression, a line with a NUL byte, and the claims as JSON.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_cel::kubernetes::{claims_environment, claims_json, render};
use navicert_cel::{Arena, Bindings, Claims, EvalLimits, ValueRef};

const COST: u64 = 20_000;
const MEMORY: usize = 1 << 20;

fuzz_target!(|text: &str| {
    let (expression, payload) = text.split_once('\0').unwrap_or((text, "{}"));
    let Ok(claims) = claims_json::decode(payload) else { return };
    let Ok(program) = claims_environment().compile(expression) else { return };
    let arena = Arena::with_limit(MEMORY);
    let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Set(&claims)));
    let limits = EvalLimits { cost: COST, interrupt: None };
    match program.evaluate_within(&arena, &bindings, &limits) {
        Ok(found) => {
            assert!(found.cost <= COST);
            let _ = (render::type_name(&found.value), render::value(&found.value), found.value.to_value());
        }
        Err(error) => {
            let _ = (error.to_string(), error.error.kind.exposed());
        }
    }
    assert!(arena.used() <= MEMORY);
});
