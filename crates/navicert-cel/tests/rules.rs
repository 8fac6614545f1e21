//! Rules as their author sees them: results, costs, errors with positions and hints, traces, and the claims that
//! are read.

use navicert_cel::kubernetes::{User, batch, claims_environment, user_environment};
use navicert_cel::syntax::query::{selected_fields, selects};
use navicert_cel::syntax::unparse::unparse;
use navicert_cel::{
    Arena, Bindings, Claims, Environment, EvalErrorKind, EvalLimits, Operand, Program, Stage, ValueRef,
};
use proptest::prelude::*;
use serde_json::json;

fn answer(expr: &str, claims: &serde_json::Value) -> serde_json::Value {
    batch::answer(&json!({ "expr": expr, "claims": claims }))
}

// S74, S76, S77
#[test]
fn claim_numbers_are_doubles_and_compare_with_integers() {
    let claims = json!({ "n": 5, "id": 12345678 });
    for (expr, value) in [
        ("claims.n == 5", json!(true)),
        ("string(claims.id)", json!("1.2345678e+07")),
        ("string(int(claims.id))", json!("12345678")),
        ("claims.n in [5]", json!(true)),
    ] {
        assert_eq!(answer(expr, &claims)["value"], value, "{expr}");
    }
    assert_eq!(answer("claims.n + 1", &claims)["ok"], json!(false));
}

// S82, S88
#[test]
fn escaped_names_select_claims_and_extra_values() {
    let claims = json!({ "a.b": "dot", "x__y": "xy", "obj": { "a.b": "nested", "__proto__": "p" } });
    for (expr, ok) in [
        ("claims.a__dot__b == 'dot'", true),
        ("claims.obj.a__dot__b == 'nested'", true),
        ("claims.x__underscores__y == 'xy'", true),
        ("claims.obj['__proto__'] == 'p'", true),
        ("claims['__proto__'] == 'p'", false),
    ] {
        assert_eq!(answer(expr, &claims)["ok"], json!(ok), "{expr}");
    }
    let user = json!({ "username": "a", "uid": "", "groups": [], "extra": { "example.org/foo": ["a"] } });
    let input = json!({ "expr": "user.extra.example__dot__org__slash__foo[0] == 'a'", "user": user });
    assert_eq!(batch::answer(&input)["value"], json!(true));
}

// S67
#[test]
fn rule_must_have_static_type_bool() {
    let environment = claims_environment();
    for expr in ["claims.foo", "dyn(true)", "optional.of(true)", "claims.a ? claims.b : false"] {
        let error = environment.compile_rule(expr).expect_err(expr);
        assert_eq!(error.diagnostics[0].message, "must evaluate to bool");
        assert!(error.diagnostics[0].hint.is_some());
    }
    for expr in ["!claims.x", "has(claims.x)", "claims.a == 1 || claims.b", "bool(claims.x)", "[true][0]"] {
        environment.compile_rule(expr).expect(expr);
    }
}

#[test]
fn compile_error_has_line_column_caret_and_hint() {
    let error = claims_environment().compile("1 == 1 &&\n  claims.groups.map(g, g)").expect_err("any");
    let diagnostic = &error.diagnostics[0];
    assert_eq!((diagnostic.line, diagnostic.column), (2, 9));
    assert_eq!(error.stage, Stage::Check);
    let text = error.to_string();
    assert!(text.contains(" |   claims.groups.map(g, g)\n | ........^"), "{text}");
    assert!(text.contains("hint: "), "{text}");
    assert_eq!(claims_environment().compile("claims.foo(").expect_err("syntax").stage, Stage::Parse);
    assert_eq!(claims_environment().compile("int('x')").expect_err("folding").stage, Stage::Program);
    assert_eq!(claims_environment().compile("'x'.matches('(')").expect_err("pattern").stage, Stage::Check);
}

#[test]
fn missing_claim_error_has_a_hint() {
    let program = claims_environment().compile("claims.nope == 1").expect("compiles");
    let (arena, empty) = (Arena::new(), serde_json::Map::new());
    let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Object(&empty)));
    let error = program.evaluate(&arena, &bindings).expect_err("missing").error;
    assert_eq!(error.kind, EvalErrorKind::NoSuchKey(Operand::Literal("nope".to_owned())));
    assert_eq!(error.to_string(), "no such key: nope");
    assert_eq!(program.tree().source().slice(error.span), "claims.nope");
    assert!(error.hint().is_some_and(|hint| hint.contains(".?key")));
}

// The e-mail rule of S110 and related rules query the claims that an expression selects by name.
#[test]
fn finds_claims_selected_by_name_but_not_by_index() {
    for (expr, found) in [
        ("claims.email", true),
        ("claims.?email.orValue('')", true),
        ("has(claims.email)", true),
        ("dyn(claims.groups).map(g, claims.email + g)", true),
        ("claims['email']", false),
        ("claims[?'email'].orValue('')", false),
        ("claims.other.email", false),
    ] {
        let tree = claims_environment().parse(expr).expect(expr);
        assert_eq!(selects(&tree, "claims", "email"), found, "{expr}");
    }
    let tree = claims_environment().parse("claims.a + claims.b.c + claims.a").expect("parses");
    assert_eq!(selected_fields(&tree, "claims"), ["a", "b"]);
}

#[test]
fn trace_contains_only_evaluated_subexpressions() {
    let program = claims_environment().compile("claims.a == 1 && claims.b == 2").expect("compiles");
    let document = json!({ "a": 2 });
    let arena = Arena::new();
    let members = document.as_object().expect("an object");
    let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Object(members)));
    let (outcome, parts) = program.trace(&arena, &bindings, &EvalLimits::KUBERNETES);
    assert!(matches!(outcome.expect("a value").value, ValueRef::Bool(false)));
    let texts: Vec<&str> = parts.iter().map(|part| program.tree().source().slice(part.span)).collect();
    assert!(texts.contains(&"claims.a == 1") && !texts.contains(&"claims.b == 2"), "{texts:?}");
}

#[test]
fn program_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    let program =
        user_environment().compile_rule("user.groups.all(g, !g.startsWith('system:'))").expect("compiles");
    shared(&program);
    let user = User { groups: vec!["a".to_owned()], ..User::default() };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let arena = Arena::new();
                let bindings = Bindings::new().with("user", user.val(&arena).expect("room"));
                assert!(matches!(
                    program.evaluate(&arena, &bindings).expect("a value").value,
                    ValueRef::Bool(true)
                ));
            });
        }
    });
}

#[test]
fn evaluating_a_typical_rule_does_not_allocate() {
    let program = claims_environment()
        .compile_rule("claims.email_verified == true && dyn(claims.groups).exists(g, g == 'b')")
        .expect("compiles");
    let document = json!({ "email_verified": true, "groups": ["a", "b"] });
    let members = document.as_object().expect("an object");
    let arena = Arena::new();
    let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Object(members)));
    let counted = allocation_counter::measure(|| {
        assert!(program.evaluate(&arena, &bindings).is_ok());
    });
    assert_eq!(counted.count_total, 0);
}

#[test]
fn lenient_any_allows_iteration_over_any() {
    let lenient = Environment::kubernetes_version(37)
        .variable("claims", "map(string, any)")
        .lenient_any(true)
        .build()
        .expect("builds");
    lenient.compile("claims.groups.all(g, g != '')").expect("compiles");
}

// S83
#[test]
fn unescape_everywhere_resolves_names_on_iterated_values() {
    let document = json!({ "list": [{ "a.b": "x" }] });
    let members = document.as_object().expect("an object");
    for (everywhere, found) in [(false, false), (true, true)] {
        let environment = Environment::kubernetes_version(37)
            .variable("claims", "map(string, any)")
            .unescape_everywhere(everywhere)
            .build()
            .expect("builds");
        let program = environment.compile("dyn(claims.list).map(g, g.a__dot__b)").expect("compiles");
        let arena = Arena::new();
        let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Object(members)));
        assert_eq!(program.evaluate(&arena, &bindings).is_ok(), found);
    }
}

// S62
#[test]
fn older_versions_lack_later_libraries() {
    for (minor, expr, compiles) in [
        (29, "ip('::1').isLoopback()", false),
        (30, "ip('::1').isLoopback()", true),
        (27, "optional.of(1).hasValue()", false),
        (32, "semver('1.2.3').major() == 1", false),
        (33, "semver('1.2.3').major() == 1", true),
        (33, "[1].sort() == [1]", false),
    ] {
        let environment = Environment::kubernetes_version(minor).build().expect("builds");
        assert_eq!(environment.compile(expr).is_ok(), compiles, "1.{minor}: {expr}");
    }
}

// S71, H4
#[test]
fn encoders_math_and_bindings_are_optional_libraries() {
    use navicert_cel::Library;
    let expr = "cel.bind(x, base64.decode('aGk='), string(x) == 'hi') && math.greatest(1, 2) == 2";
    assert!(claims_environment().compile(expr).is_err());
    let mut builder = Environment::kubernetes_version(37);
    for library in [Library::Encoders, Library::Math, Library::Bindings] {
        builder = builder.library(library);
    }
    let program = builder.build().expect("builds").compile_rule(expr).expect("compiles");
    let arena = Arena::new();
    assert!(matches!(
        program.evaluate(&arena, &Bindings::new()).expect("a value").value,
        ValueRef::Bool(true)
    ));
}

// Found by fuzzing.
#[test]
fn unparsing_keeps_a_minus_before_a_selection() {
    for expr in ["-(-42)[0]", "-(42)[0]", "-(-42).f()", "-(.5).g", "!-1", "-(-(-1))"] {
        let tree = claims_environment().parse(expr).expect(expr);
        let text = unparse(&tree);
        assert_eq!(unparse(&claims_environment().parse(&text).expect(&text)), text, "{expr}");
    }
}

fn same_shape(left: &Program, right: &Program) -> bool {
    unparse(left.tree()) == unparse(right.tree()) && left.result_type() == right.result_type()
}

#[test]
fn unparsed_text_compiles_to_the_same_program() {
    for expr in [
        "1 + 2 * 3 - (4 - 5)",
        "(1 + 2) * 3",
        "-(-1) < 2 ? 'a' : true ? 'b' : 'c'",
        "(true ? false : true) ? 1 : 2",
        "-(-dyn(-42)[0])",
        "-(dyn([1])[0]) + -(-1)",
        "!(claims.a == 1 && claims.b) || claims.c",
        "claims.?a.b[?0].orValue(\"q\\\"\\n\")",
        "claims.`a.b` == b\"\\xff\\\\\"",
        "[1, ?optional.of(2)].map(x, x > 1, x * 2) == [int(2.5e3)]",
        "{'a': 1u, ?'b': optional.none()}.exists_one(k, k in ['a'])",
        "has(claims.a.b) && [3, 1].sortBy(x, -x)[0] == 3",
        "optional.of(1).optMap(v, v + 1).or(optional.none()).hasValue()",
        "google.protobuf.Duration{seconds: 5} > duration('1s')",
    ] {
        let program = claims_environment().compile(expr).expect(expr);
        let text = unparse(program.tree());
        let again =
            claims_environment().compile(&text).unwrap_or_else(|error| panic!("{expr} -> {text}: {error}"));
        assert!(same_shape(&program, &again), "{expr} -> {text} -> {}", unparse(again.tree()));
    }
}

/// Expressions that often parse and sometimes type-check.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("2.5".to_owned()),
        Just("'a'".to_owned()),
        Just("claims.a".to_owned()),
        Just("claims.b.c".to_owned()),
        Just("true".to_owned()),
        Just("null".to_owned()),
        Just("[1, 2]".to_owned()),
        Just("{'k': 1}".to_owned()),
        Just("3u".to_owned()),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        prop_oneof![
            (
                inner.clone(),
                inner.clone(),
                prop::sample::select(vec!["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "in", "&&", "||"])
            )
                .prop_map(|(left, right, operator)| format!("({left}) {operator} ({right})")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("({a}) ? ({b}) : ({c})")),
            inner.clone().prop_map(|a| format!("!({a})")),
            inner.clone().prop_map(|a| format!("-({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[({a}), dyn({b})]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("dyn({a}).map(x, ({b}))")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[?({b})]")),
            inner.clone().prop_map(|a| format!("string(dyn({a}))")),
            inner.prop_map(|a| format!("({a}).f.size()")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn unparsing_is_idempotent(expr in expression()) {
        let Ok(tree) = claims_environment().parse(&expr) else { return Ok(()) };
        let text = unparse(&tree);
        let again = claims_environment().parse(&text);
        prop_assert!(again.is_ok(), "{expr} -> {text}");
        prop_assert_eq!(unparse(&again.expect("checked")), text);
    }

    #[test]
    fn checked_program_without_dyn_has_no_overload_errors(expr in expression()) {
        let expr = expr.replace("claims.a", "'x'").replace("claims.b.c", "7");
        // The checker accepts null for an optional, where it is `optional.none()`.
        if expr.contains("dyn") || expr.contains("null") {
            return Ok(());
        }
        let Ok(program) = claims_environment().compile(&expr) else { return Ok(()) };
        let (arena, empty) = (Arena::new(), serde_json::Map::new());
        let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Object(&empty)));
        if let Err(error) = program.evaluate(&arena, &bindings) {
            prop_assert!(!matches!(error.error.kind, EvalErrorKind::NoSuchOverload { .. } | EvalErrorKind::NoSuchOperand { .. }), "{expr}: {error}");
        }
    }

    #[test]
    fn compiling_never_panics(text in "\\PC{0,60}") {
        let _ = claims_environment().compile(&text);
    }
}
