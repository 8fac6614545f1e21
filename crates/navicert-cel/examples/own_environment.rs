//! An environment of your own, with a deadline: `cargo run --example own_environment`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::atomic::{AtomicU32, Ordering};

use navicert_cel::{Arena, Bindings, Environment, EvalLimits, Reading, ValueRef};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let environment = Environment::standard()
        .object("shop.Customer", &[("name", "string"), ("orders", "list(map(string, dyn))")])
        .variable("customer", "shop.Customer")
        .build()?;
    println!("{}", environment.check("customer.orders.map(o, o.total)")?);
    if let Err(error) = environment.compile("customer.nmae") {
        println!("{error}");
    }

    let orders = serde_json::json!([{ "total": 12.5 }, { "total": 30 }]);
    let orders = ValueRef::from_json(&orders, Reading { integers: true, unescape: false });
    let fields = [("name", ValueRef::Str("Ann")), ("orders", orders)];
    let object = navicert_cel::Object { type_name: "shop.Customer", fields: &fields };
    let bindings = Bindings::new().with("customer", ValueRef::Object(&object));

    // A host would check its deadline here, or whether the request was cancelled.
    let polls = AtomicU32::new(0);
    let interrupt = || polls.fetch_add(1, Ordering::Relaxed) > 100;
    let limits = EvalLimits { cost: 10_000_000, interrupt: Some(&interrupt) };
    for text in [
        "customer.orders.exists(o, o.total > 20)",
        "lists.range(1000).all(a, lists.range(1000).all(b, a >= 0))",
    ] {
        let program = environment.compile(text)?;
        let arena = Arena::with_limit(64 << 10);
        match program.evaluate_within(&arena, &bindings, &limits) {
            Ok(found) => println!("{text}: {:?}, cost {}", found.value, found.cost),
            Err(error) => println!("{text}: {error}"),
        }
    }
    Ok(())
}
