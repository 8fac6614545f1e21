//! Prints the value of every subexpression of a rule: `cargo run --example explain`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use navicert_cel::kubernetes::{claims_environment, render};
use navicert_cel::{Arena, Bindings, Claims, EvalLimits, ValueRef};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rule = "claims.email_verified == true && dyn(claims.groups).exists(g, g.startsWith('team-'))";
    let program = claims_environment().compile_rule(rule)?;
    let token = serde_json::json!({ "email_verified": true, "groups": ["guests", "team-a"] });
    let members = token.as_object().ok_or("the payload is no object")?;
    let arena = Arena::new();
    let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Object(members)));
    let (outcome, parts) = program.trace(&arena, &bindings, &EvalLimits::KUBERNETES);
    for part in parts {
        let text = program.tree().source().slice(part.span);
        match part.outcome {
            Ok(value) => println!("{text:60} {}", render::value(&value).unwrap_or_default()),
            Err(kind) => println!("{text:60} error: {}", kind.exposed()),
        }
    }
    println!(
        "{:?}, cost {}",
        outcome.as_ref().map(|found| found.value),
        outcome.as_ref().map_or(0, |found| found.cost)
    );
    Ok(())
}
