//! Solutions are checked by evaluating the expression.

use navicert_cel::kubernetes::{claims_environment, claims_json};
use navicert_cel::{Arena, Bindings, Claims, ValueRef};
use serde_json::{Map, Value, json};

use super::text::sample;
use super::*;

/// The value of an expression over claims.
fn evaluate(expr: &str, claims: &Map<String, Value>) -> Option<bool> {
    let program = claims_environment().compile(expr).unwrap();
    let set = claims_json::decode(&Value::Object(claims.clone()).to_string()).unwrap();
    let arena = Arena::new();
    let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Set(&set)));
    match program.evaluate(&arena, &bindings).ok()?.value {
        ValueRef::Bool(value) => Some(value),
        _ => None,
    }
}

#[test]
fn every_condition_has_a_solution_both_ways() {
    for expr in [
        "claims.a == 'x1'",
        "'x1' != claims.a",
        "claims.a.b == 'c'",
        "claims['a'] == true",
        "claims.?a.orValue('') == 'v'",
        "claims.n > 5.0",
        "3.0 <= claims.n && claims.n < 4.0",
        "claims.a.startsWith('dev-') && !claims.a.endsWith('-x') || claims.b.contains('admin')",
        "claims.a.matches('^[a-z]+@example[.]com$')",
        "matches(claims.a, '(dev|ops)-[0-9]{3}')",
        "'admins' in claims.groups",
        "claims.tenant in ['one', 'two']",
        "has(claims.a) && has(claims.b.c)",
        "dyn(claims.groups).exists(g, g.startsWith('team-'))",
        "dyn(claims.groups).all(g, g != 'root' && !g.startsWith('system:'))",
        "size(claims.a) > 3",
        "claims.groups.size() == 2",
        "type(claims.a) == string",
        "(has(claims.a) ? claims.a : 'none') == 'y'",
        "claims.a + '@example.com' == 'ann@example.com'",
        "claims.a.lowerAscii() == 'ann'",
        "claims.a.split(',')[0] == 'first'",
        "claims.email_verified == true && claims.email.endsWith('@example.com')",
        "dyn(claims.groups).map(g, 'p:' + g) == ['p:a', 'p:b']",
        "claims.a__dot__b == 'x'",
        "!(claims.a == 'x' || claims.b == 'y')",
    ] {
        let program = claims_environment().compile(expr).unwrap();
        let solver = Solver { tree: program.tree() };
        for wanted in [true, false] {
            let solutions = solver.truth(wanted);
            let holds = |solution: &Assignment| {
                let mut claims = Map::new();
                solution.apply(&mut claims);
                evaluate(expr, &claims) == Some(wanted)
            };
            assert!(solutions.iter().any(holds), "{expr} is {wanted}: {solutions:?}");
        }
    }
}

#[test]
fn patterns_match_their_samples() {
    for (pattern, text) in [
        ("^[a-z]+@example[.]com$", Some("a@example.com")),
        ("(dev|ops)-[0-9]{3}", Some("dev-000")),
        ("a?b*c", Some("abc")),
        (r"^\w+\.\d{2,4}$", Some("x.00")),
        ("[^x]", Some("0")),
        ("(?i)a", None),
        ("a(", None),
        ("", Some("")),
    ] {
        assert_eq!(sample(pattern).as_deref(), text, "{pattern}");
    }
}

#[test]
fn literals_and_places_are_found() {
    let program =
        claims_environment().compile("claims.a.b in ['x', 'y'] && claims.?c.orValue(5) == 5").unwrap();
    let solver = Solver { tree: program.tree() };
    assert_eq!(solver.literals(), [json!("x"), json!("y"), json!(["x", "y"]), json!("c"), json!(5)]);
    let fields: Vec<Vec<String>> = solver.places("claims").into_iter().map(|place| place.fields).collect();
    assert_eq!(fields, [vec!["a".to_owned()], vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned()]]);
}
