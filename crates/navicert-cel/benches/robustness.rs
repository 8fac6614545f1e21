//! Expressions and values that crash other evaluators: time until the limit and memory used. Prints one table;
//! `tests/robustness.rs` asserts that each of them ends, on a small stack.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a bench measures time and prints what it found"
)]

use std::time::Instant;

use navicert_cel::kubernetes::claims_environment;
use navicert_cel::{Arena, Bindings, Claims, ValueRef};

fn main() {
    let repeat = |part: &str, count: usize| part.repeat(count);
    let list = format!("[{}]", (0..60).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
    let rows = [
        ("10k parentheses", format!("{}1{}", repeat("(", 10_000), repeat(")", 10_000))),
        ("10k nested lists", format!("{}{}", repeat("[", 10_000), repeat("]", 10_000))),
        ("20k sums", format!("1{}", repeat("+1", 20_000))),
        ("10k conjunctions", format!("true{}", repeat(" && true", 10_000))),
        ("40k element list", format!("[{}1].size() > 0", repeat("1,", 40_000))),
        ("25k lists in a list", format!("[{}[1]].size() > 0", repeat("[1],", 24_900))),
        (
            "12k entries",
            format!("{{{}}}.size() > 0", (0..12_000).map(|n| format!("{n}:1")).collect::<Vec<_>>().join(",")),
        ),
        ("20k element map()", "lists.range(20000).map(x, x).size() > 0".to_owned()),
        ("doubling text", (0..40).fold("'x'".to_owned(), |inner, _| format!("[{inner}].map(s, s + s)[0]"))),
        (
            "60^5 nested all",
            (0..5).fold("true".to_owned(), |inner, depth| format!("{list}.all(x{depth}, {inner})")),
        ),
        (
            "replace of replace",
            "claims.s.replace('a', claims.s).replace('a', claims.s).replace('a', claims.s)".to_owned(),
        ),
        ("(a+)+$ on 100 kB", "claims.long.matches('(a+)+$')".to_owned()),
    ];
    let document = serde_json::json!({ "s": "a".repeat(400), "long": "ab".repeat(50_000) });
    let members = document.as_object().unwrap();
    println!("\n| input | ms | peak KiB | end |\n|---|---|---|---|");
    for (name, expr) in rows {
        let mut end = String::new();
        let start = Instant::now();
        let counted = allocation_counter::measure(|| {
            end = match claims_environment().compile(&expr) {
                Err(error) => {
                    error.diagnostics.first().map(|first| first.message.clone()).unwrap_or_default()
                }
                Ok(program) => {
                    let arena = Arena::new();
                    let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Object(members)));
                    match program.evaluate(&arena, &bindings) {
                        Ok(found) => format!("value, cost {}", found.cost),
                        Err(error) => error.error.kind.exposed(),
                    }
                }
            };
        });
        let took = start.elapsed().as_secs_f64() * 1e3;
        println!("| {name} | {took:.1} | {} | {end} |", counted.bytes_max / 1024);
    }
}
