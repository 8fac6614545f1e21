//! No expression and no claims can crash the evaluator: every case ends in a value or an error, on the stack of a
//! tokio worker thread.

#![expect(clippy::expect_used, reason = "a helper of tests")]

use navicert_cel::kubernetes::claims_environment;
use navicert_cel::{Arena, Bindings, Claims, EvalLimits, Limit, ValueRef};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs on a thread with two megabytes of stack.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(work).expect("a thread");
    thread.join().expect("no panic");
}

/// The outcome of an expression.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Rejected,
    Failed(Option<Limit>),
    Value,
}

fn run(expr: &str, claims: &serde_json::Value) -> Outcome {
    let Ok(program) = claims_environment().compile(expr) else { return Outcome::Rejected };
    let arena = Arena::new();
    let empty = serde_json::Map::new();
    let claims = claims.as_object().unwrap_or(&empty);
    let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Object(claims)));
    match program.evaluate(&arena, &bindings) {
        Ok(_) => Outcome::Value,
        Err(error) => Outcome::Failed(error.error.limit()),
    }
}

#[test]
fn deep_and_long_expressions_do_not_crash() {
    on_small_stack(|| {
        let repeat = |part: &str, count: usize| part.repeat(count);
        let rows: Vec<(&str, String, Outcome)> = vec![
            ("parentheses", format!("{}1{}", repeat("(", 10_000), repeat(")", 10_000)), Outcome::Rejected),
            ("parentheses within", format!("{}1{}", repeat("(", 249), repeat(")", 249)), Outcome::Value),
            ("nested lists", format!("{}{}", repeat("[", 10_000), repeat("]", 10_000)), Outcome::Rejected),
            ("nested maps", format!("{}1{}", repeat("{1:", 10_000), repeat("}", 10_000)), Outcome::Rejected),
            ("sums", format!("1{}", repeat("+1", 20_000)), Outcome::Rejected),
            ("sums within", format!("1{}", repeat("+1", 200)), Outcome::Value),
            ("indexes", format!("claims{}", repeat("[\"a\"]", 10_000)), Outcome::Rejected),
            ("selections", format!("claims{}", repeat(".a", 10_000)), Outcome::Rejected),
            ("conjunctions", format!("true{}", repeat(" && true", 10_000)), Outcome::Value),
            ("ternaries", format!("{}1", repeat("true ? 1 : ", 5_000)), Outcome::Rejected),
            ("method calls", format!("\"a\"{}", repeat(".trim()", 5_000)), Outcome::Rejected),
            ("negations", format!("{}true", repeat("!", 10_000)), Outcome::Value),
            ("long list", format!("[{}1]", repeat("1,", 200_000)), Outcome::Rejected),
            ("wide list", format!("[{}1].size() > 0", repeat("1,", 40_000)), Outcome::Value),
            (
                "nested macros",
                (0..60).fold("[1]".to_owned(), |inner, _| format!("[1].map(x, {inner})")),
                Outcome::Value,
            ),
            (
                "nested optMap",
                (0..80).fold("optional.of(1)".to_owned(), |inner, _| format!("{inner}.optMap(x, x)")),
                Outcome::Failed(Some(Limit::Memory)),
            ),
            ("strange tokens", "\u{0}\u{7f}\u{fffd}".to_owned(), Outcome::Rejected),
        ];
        for (name, expr, expected) in rows {
            assert_eq!(run(&expr, &serde_json::Value::Null), expected, "{name}");
        }
    });
}

#[test]
fn cost_and_memory_are_bounded_for_any_claims() {
    on_small_stack(|| {
        let claims = serde_json::json!({ "s": "a".repeat(400), "long": "ab".repeat(50_000) });
        let replaces = "claims.s.replace('a', claims.s).replace('a', claims.s).replace('a', claims.s)";
        assert_eq!(run(replaces, &claims), Outcome::Failed(Some(Limit::Memory)), "S89");
        let doubling = (0..40).fold("'x'".to_owned(), |inner, _| format!("[{inner}].map(s, s + s)[0]"));
        assert!(matches!(run(&doubling, &claims), Outcome::Failed(Some(_))));
        let list = format!("[{}]", (0..60).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
        let nested = (0..5).fold("true".to_owned(), |inner, depth| format!("{list}.all(x{depth}, {inner})"));
        assert_eq!(run(&nested, &claims), Outcome::Failed(Some(Limit::Cost)));
        assert_eq!(run("lists.range(1000000000).size() > 0", &claims), Outcome::Failed(None));
        assert_eq!(
            run("lists.range(900000).reverse().size() > 0", &claims),
            Outcome::Failed(Some(Limit::Memory))
        );
        assert_eq!(run("claims.long.matches('(a+)+$')", &claims), Outcome::Value);
        assert_eq!(run("claims.long.matches('(a{1000}){1000}')", &claims), Outcome::Rejected);
        assert!(matches!(
            run("claims.long.split('').map(c, claims.long)", &claims),
            Outcome::Value | Outcome::Failed(Some(_))
        ));
        assert!(matches!(
            run("claims.long.split('').map(c, claims.long).join('')", &claims),
            Outcome::Failed(Some(Limit::Memory | Limit::Cost))
        ));
        assert!(matches!(
            run("'%s%s'.format([dyn(claims.long), dyn(claims.long)]).size()", &claims),
            Outcome::Value
        ));
    });
}

#[test]
fn logical_operators_do_not_absorb_an_interrupt() {
    let program =
        claims_environment().compile("lists.range(10000).all(x, x >= 0) || true").expect("compiles");
    let polls = AtomicUsize::new(0);
    let interrupt = || polls.fetch_add(1, Ordering::Relaxed) > 100;
    let limits = EvalLimits { cost: u64::MAX - 1, interrupt: Some(&interrupt) };
    let arena = Arena::new();
    let claims = serde_json::Map::new();
    let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Object(&claims)));
    let error = program.evaluate_within(&arena, &bindings, &limits).expect_err("interrupted");
    assert_eq!(error.error.limit(), Some(Limit::Interrupted));
}

#[test]
fn logical_operators_and_macros_do_not_absorb_the_cost_limit() {
    for expr in
        ["lists.range(300000).all(x, x >= 0) || true", "[1].exists(y, lists.range(300000).all(x, x >= 0))"]
    {
        assert_eq!(run(expr, &serde_json::Value::Null), Outcome::Failed(Some(Limit::Cost)), "{expr}");
    }
}
