//! The eight expressions that rules are made of, against the `cel` crate: time and allocations per evaluation,
//! compile time, and growth with the data. Prints one table; ratios are of one run on one machine.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a bench measures time and prints what it found"
)]

use navicert_cel::kubernetes::{User, claims_environment, user_environment};
use navicert_cel::{Arena, Bindings, Claims, List, Map, Program, Val};
use std::hint::black_box;
use std::time::Instant;

const EXPRESSIONS: [(&str, &str); 8] = [
    ("claims.sub", "claims.sub"),
    (
        "claims.email_verified == true && claims.email.endsWith('@example.com')",
        "claims.email_verified == true && claims.email.endsWith('@example.com')",
    ),
    ("claims.roles.split(',').exists(r, r == 'admin')", "claims.roles.split(',').exists(r, r == 'admin')"),
    ("dyn(claims.groups).map(g, 'oidc:' + g)", "claims.groups.map(g, 'oidc:' + g)"),
    ("user.groups.all(g, !g.startsWith('system:'))", "user.groups.all(g, !g.startsWith('system:'))"),
    (
        "claims.exp - claims.nbf <= 86400.0 && has(claims.a.b)",
        "claims.exp - claims.nbf <= 86400.0 && has(claims.a.b)",
    ),
    ("claims.email.matches('^[a-z]+@example[.]com$')", "claims.email.matches('^[a-z]+@example[.]com$')"),
    ("claims.?missing.orValue('dflt') == 'dflt'", "claims.?missing.orValue('dflt') == 'dflt'"),
];

fn claims() -> serde_json::Value {
    serde_json::json!({
        "iss": "https://issuer.example.com", "sub": "1234567890", "aud": ["foo", "bar"], "azp": "foo",
        "email": "alice@example.com", "email_verified": true, "name": "Alice Liddell",
        "preferred_username": "alice", "roles": "admin,dev,ops",
        "groups": ["team-a", "team-b", "platform"], "exp": 1800086400.0, "nbf": 1800000000.0,
        "iat": 1800000000.0, "level": 3.0, "foo.bar": "dotted", "a": {"b": {"c": "deep"}, "n": null},
        "realm_access": {"roles": ["offline_access", "uma_authorization", "admin"]},
        "ip": "10.20.30.40", "ver": "1.24.3", "mem": "1.5Gi"
    })
}

fn user() -> User {
    User::from_json(&serde_json::json!({
        "username": "oidc:alice", "uid": "u-1", "groups": ["oidc:team-a", "oidc:team-b"],
        "extra": {"example.com/tenant": ["t1"]}
    }))
}

/// Nanoseconds per run: the best of several batches.
fn time(mut run: impl FnMut()) -> f64 {
    let mut runs = 1_u32;
    loop {
        let start = Instant::now();
        for _ in 0..runs {
            run();
        }
        if start.elapsed().as_millis() >= 20 || runs > 1 << 24 {
            break;
        }
        runs *= 2;
    }
    let mut best = f64::MAX;
    for _ in 0..7 {
        let start = Instant::now();
        for _ in 0..runs {
            run();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(runs));
    }
    best
}

fn allocations(run: impl FnOnce()) -> u64 {
    allocation_counter::measure(run).count_total
}

fn evaluate<'a>(program: &'a Program, arena: &'a Arena, bindings: &Bindings<'a>) {
    let found = program.evaluate(arena, bindings).unwrap();
    black_box(found.value);
}

/// Evaluates again and again, with the arena's memory taken back each time.
struct Runner<'d> {
    program: &'d Program,
    members: &'d serde_json::Map<String, serde_json::Value>,
    fields: &'d [(&'static str, Val<'d>)],
    arena: Arena,
}

impl Runner<'_> {
    fn run(&mut self) {
        self.arena.reset();
        let object = navicert_cel::Object { type_name: "kubernetes.UserInfo", fields: self.fields };
        let bindings = Bindings::new()
            .with("claims", Val::Claims(Claims::Object(self.members)))
            .with("user", Val::Object(&object));
        evaluate(self.program, &self.arena, &bindings);
    }
}

fn main() {
    let document = claims();
    let members = document.as_object().unwrap();
    let user = user();
    let fields = [
        ("username", Val::Str(&user.username)),
        ("uid", Val::Str(&user.uid)),
        ("groups", Val::List(List::Strings(&user.groups))),
        ("extra", Val::Map(Map::Lists(&user.extra, true))),
    ];
    let mut library = cel::Env::stdlib().with_optional_support(true);
    library.add_extension(cel::extensions::strings).unwrap();
    let library = std::sync::Arc::new(library);
    let mut context = cel::Context::with_env(library.clone());
    context.add_variable("claims", document.clone()).unwrap();
    context
        .add_variable("user", serde_json::json!({"groups": user.groups, "username": user.username}))
        .unwrap();
    println!(
        "| expression | ours ns | allocations | cel 0.15 ns | allocations | ratio | compile us | cel parse us |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut product = 1.0;
    let mut lowest = f64::MAX;
    for (ours, theirs) in EXPRESSIONS {
        let environment = if ours.contains("user.") { user_environment() } else { claims_environment() };
        let program = environment.compile(ours).unwrap();
        let mut runner = Runner { program: &program, members, fields: &fields, arena: Arena::new() };
        runner.run();
        let our_allocations = allocations(|| runner.run());
        let our_time = time(|| runner.run());
        let compile = time(|| {
            black_box(environment.compile(black_box(ours)).unwrap());
        });
        let other = library.compile(theirs).unwrap();
        let run_other = || {
            black_box(other.execute(&context)).unwrap();
        };
        let their_time = time(run_other);
        let their_allocations = allocations(run_other);
        let parse = time(|| {
            black_box(library.compile(black_box(theirs))).unwrap();
        });
        let ratio = their_time / our_time;
        product *= ratio;
        lowest = lowest.min(ratio);
        println!(
            "| `{ours}` | {our_time:.0} | {our_allocations} | {their_time:.0} | {their_allocations} | {ratio:.1} | {:.1} | {:.1} |",
            compile / 1e3,
            parse / 1e3
        );
    }
    println!("\ngeometric mean {:.1}, lowest {lowest:.1}", product.powf(1.0 / 8.0));
    growth();
    robustness();
}

/// The texts and values that bring other evaluators down: how long until the limit, and how much memory.
fn robustness() {
    let repeat = |part: &str, count: usize| part.repeat(count);
    let list = format!("[{}]", (0..60).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
    let rows = [
        ("10k parentheses", format!("{}1{}", repeat("(", 10_000), repeat(")", 10_000))),
        ("10k nested lists", format!("{}{}", repeat("[", 10_000), repeat("]", 10_000))),
        ("20k sums", format!("1{}", repeat("+1", 20_000))),
        ("10k conjunctions", format!("true{}", repeat(" && true", 10_000))),
        ("40k element list", format!("[{}1].size() > 0", repeat("1,", 40_000))),
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
                    let bindings = Bindings::new().with("claims", Val::Claims(Claims::Object(members)));
                    match program.evaluate(&arena, &bindings) {
                        Ok(found) => format!("value, cost {}", found.cost),
                        Err(error) => error.to_string(),
                    }
                }
            };
        });
        let took = start.elapsed().as_secs_f64() * 1e3;
        println!("| {name} | {took:.1} | {} | {end} |", counted.bytes_max / 1024);
    }
}

/// Time per element at 100 and at 10 000 elements.
fn growth() {
    println!("\n| loop | ns per element at 100 | at 10 000 | ratio |\n|---|---|---|---|");
    for expr in [
        "dyn(claims.groups).all(g, g != 'x')",
        "dyn(claims.groups).map(g, g)",
        "dyn(claims.groups).exists(g, g == 'x')",
    ] {
        let program = claims_environment().compile(expr).unwrap();
        let mut per_element = Vec::new();
        for count in [100_u32, 10_000] {
            let groups: Vec<String> = (0..count).map(|index| format!("group-{index}")).collect();
            let document = serde_json::json!({ "groups": groups });
            let members = document.as_object().unwrap();
            let mut runner = Runner { program: &program, members, fields: &[], arena: Arena::new() };
            per_element.push(time(|| runner.run()) / f64::from(count));
        }
        let [few, many] = per_element.try_into().unwrap();
        println!("| `{expr}` | {few:.1} | {many:.1} | {:.2} |", many / few);
    }
}
