//! Edge cases in which cel-go behaves unexpectedly, each found by differential testing with generated expressions.

use navicert_cel::Stage;
use navicert_cel::kubernetes::{batch, claims_environment};
use serde_json::{Value, json};

fn answer(expr: &str) -> Value {
    batch::answer(&json!({ "expr": expr, "claims": { "sub": "10.0.0.1", "n": 5, "nums": [] } }))
}

#[test]
fn validates_the_first_argument_of_matches_in_either_call_style() {
    for (expr, stage) in [
        ("'a'.matches('(')", Stage::Check),
        ("matches('(', 'a')", Stage::Check),
        ("matches('a', '(')", Stage::Program),
        ("matches(claims.sub, '(?=a)')", Stage::Program),
    ] {
        assert_eq!(claims_environment().compile(expr).expect_err(expr).stage, stage, "{expr}");
    }
}

#[test]
fn dynamically_dispatched_call_stops_at_the_first_failure_without_charge() {
    for (expr, cost) in [
        ("cidr('10.0.0.0/08').containsIP(claims.nope)", 2),
        ("cidr('10.0.0.0/08').containsIP(string(claims.nope))", 7),
        ("cidr('10.0.0.0/8').containsIP(claims.nope)", 4),
        ("quantity('x').add(claims.nope)", 1),
        ("quantity('x').compareTo(claims.nope)", 4),
        ("claims.nope.indexOf(claims.nope)", 2),
        ("claims.nope.split(claims.nope)", 5),
        ("dyn(claims.nope).flatten(int(claims.nope))", 6),
    ] {
        let answer = answer(expr);
        assert_eq!((&answer["ok"], &answer["cost"]), (&json!(false), &json!(cost)), "{expr}");
    }
}

#[test]
fn wrappers_behave_as_the_wrapped_type() {
    for (expr, value) in [
        ("'%d'.format([google.protobuf.Int64Value{value: 5}])", json!("5")),
        ("'%s'.format([google.protobuf.DoubleValue{value: -0.0}])", json!("-0")),
        ("[7, google.protobuf.Int64Value{value: 5}, 2].sort()", json!([2, 5, 7])),
        ("{42: google.protobuf.StringValue{}, 2: 'a'}[2]", json!("a")),
    ] {
        assert_eq!(answer(expr)["value"], value, "{expr}");
    }
    for expr in [
        "google.protobuf.DoubleValue{value: dyn(claims.nums)}",
        "google.protobuf.StringValue{value: dyn(claims.n)}",
        "google.protobuf.Int64Value{value: dyn(1.0)}",
    ] {
        assert_eq!(answer(expr)["ok"], json!(false), "{expr}");
    }
}

#[test]
fn homogeneity_check_ignores_wrappers_at_any_depth() {
    let name = "google.protobuf.StringValue{}";
    for expr in [
        format!("[optional.of(''), optional.of({name})]"),
        format!("[optional.of({name}), optional.of('')]"),
        format!("[[''], [{name}]]"),
        format!("[{{'a': ['']}}, {{'a': [{name}]}}]"),
        format!("{{'a': optional.of({name}), 'b': optional.of('')}}"),
    ] {
        assert_eq!(answer(&expr)["ok"], json!(true), "{expr}: {}", answer(&expr));
    }
    for expr in [
        "[optional.of(1), optional.of('')]",
        "[optional.of(null), optional.of('')]",
        "[optional.of(google.protobuf.StringValue{}), optional.of(1)]",
        "[[1], [google.protobuf.StringValue{}]]",
    ] {
        assert_eq!(claims_environment().compile(expr).expect_err(expr).stage, Stage::Check, "{expr}");
    }
}

#[test]
fn renders_unusual_map_keys_and_rejects_unhashable_ones() {
    for (expr, value) in [
        ("{[]: 1}", json!({"list([])": 1})),
        ("{{'a': 1}: 2}", json!({"map(map[a:1])": 2})),
        ("{optional.of(1): 'a'}", json!({"optional(1)": "a"})),
        ("{null: 1}", json!({"null(NULL_VALUE)": 1})),
        ("{google.protobuf.Timestamp: 1}", json!({"type(google.protobuf.Timestamp)": 1})),
    ] {
        assert_eq!(answer(expr)["value"], value, "{expr}");
    }
    // cel-go panics; logical operators do not absorb the error.
    for (expr, cost) in [
        ("{semver('1.2.3'): 1} == {} || true", 1),
        ("{b'a': 1} == {} || true", 0),
        ("{bytes(claims.sub): 1} == {} || true", 3),
        ("{format.named('uuid').value(): 1} == {} || true", 2),
        ("dyn(bytes(claims.sub)) in ['a', 'b'] || true", 4),
        ("dyn(bytes(claims.sub)) in {'a': 1} || true", 4),
        ("dyn(semver('1.2.3')) in {'a': claims.n}", 34),
    ] {
        let answer = answer(expr);
        assert_eq!((&answer["ok"], &answer["cost"]), (&json!(false), &json!(cost)), "{expr}");
    }
}

#[test]
fn comprehension_over_user_iterates_over_values() {
    let user = json!({"username": "ann", "uid": "7", "groups": ["a"], "extra": {"k": ["v"]}});
    let answer = |expr: &str| batch::answer(&json!({ "expr": expr, "user": user }));
    let values = json!(["ann", "7", ["a"], {"k": ["v"]}]);
    for (expr, value, cost) in [
        ("dyn(user).map(x, x)", values.clone(), 55),
        ("dyn(user).transformList(k, v, k)", values, 55),
        ("dyn(user).exists(x, x == 'ann')", json!(true), 12),
    ] {
        let answer = answer(expr);
        assert_eq!((&answer["value"], &answer["cost"]), (&value, &json!(cost)), "{expr}");
    }
    assert_eq!(answer("dyn(user).all(k, v, v == '')")["ok"], json!(false));
    assert_eq!(answer("dyn(user)[?0]")["ok"], json!(false));
}

#[test]
fn errors_are_in_source_order_with_wide_dots_below_wide_characters() {
    let error = claims_environment().compile("['a'].map(x, x + ['é'].filter(y, y != 0))").expect_err("twice");
    let columns: Vec<u32> = error.diagnostics.iter().map(|diagnostic| diagnostic.column).collect();
    assert_eq!(columns, [16, 36]);
    assert!(error.to_string().contains(&format!(" | {}．{}^", ".".repeat(19), ".".repeat(15))), "{error}");
}

#[test]
fn leading_dot_names_the_global_variable_or_function() {
    for (expr, value) in [
        (".claims.sub", json!("10.0.0.1")),
        ("[{'sub': 'x'}].map(claims, .claims.sub)", json!(["10.0.0.1"])),
        ("[1].map(.x, 2)", json!([2])),
        ("[1].transformList(.i, i, i)", json!([1])),
        ("[1].map(.claims, claims.sub)", json!(["10.0.0.1"])),
        (".string(1)", json!("1")),
    ] {
        assert_eq!(answer(expr)["value"], value, "{expr}");
    }
    for (expr, stage) in [
        ("[1].map(x, .x)", Stage::Check),
        ("[1].map(.x, x)", Stage::Check),
        ("[1].filter(.x, true)", Stage::Check),
        ("optional.of(1).optMap(.x, .x)", Stage::Check),
        ("optional.of(1).optMap(.claims, 1)", Stage::Check),
        (".has(claims.sub)", Stage::Check),
        (".duration('x')", Stage::Check),
        (".matches(claims.sub, '(')", Stage::Program),
        (".int('x')", Stage::Program),
    ] {
        assert_eq!(claims_environment().compile(expr).expect_err(expr).stage, stage, "{expr}");
    }
}

#[test]
fn iteration_variable_must_not_be_the_accumulator() {
    for expr in [
        "[1].map(__result__, 1)",
        "[1].filter(__result__, true)",
        "[1].all(__result__, true)",
        "[1].exists(__result__, i, true)",
        "[1].transformList(i, __result__, 1)",
        "[1].sortBy(__result__, 1)",
    ] {
        assert_eq!(claims_environment().compile(expr).expect_err(expr).stage, Stage::Parse, "{expr}");
    }
    assert_eq!(answer("optional.of(1).optMap(__result__, __result__ + 1).value()")["value"], json!(2));
}

#[test]
fn only_a_double_finds_a_double_key() {
    for (expr, value) in [
        ("1 in {dyn(1.0): 2}", json!(false)),
        ("{dyn(1.0): 2}[?1u].hasValue()", json!(false)),
        ("int(claims.n) in {claims.n: 2}", json!(false)),
        ("claims.n in {claims.n: 2}", json!(true)),
        ("{1: 2}[dyn(1.0)]", json!(2)),
        ("{dyn(1): 1} == {dyn(1.0): 1}", json!(false)),
        ("{dyn(1.0): 1} == {dyn(1): 1}", json!(true)),
    ] {
        assert_eq!(answer(expr)["value"], value, "{expr}");
    }
}

#[test]
fn literal_of_the_user_type_compiles_and_fails() {
    let user = json!({ "username": "ann", "uid": "", "groups": [], "extra": {} });
    let ask = |expr: &str| batch::answer(&json!({ "expr": expr, "user": user }));
    for expr in ["kubernetes.UserInfo{}", "kubernetes.UserInfo{username: 'a'}.username == 'a'"] {
        let answer = ask(expr);
        assert_eq!((&answer["compiled"], &answer["ok"]), (&json!(true), &json!(false)), "{expr}");
        assert_eq!(answer["error"], "unknown type 'kubernetes.UserInfo'", "{expr}");
    }
    assert_eq!(ask("true || kubernetes.UserInfo{}.username == ''")["value"], json!(true));
    for expr in ["kubernetes.UserInfo{username: 1}", "kubernetes.UserInfo{nope: 1}", "kubernetes.UserInfo"] {
        assert_eq!(ask(expr)["compiled"], json!(false), "{expr}");
    }
    assert_eq!(answer("kubernetes.UserInfo{}")["compiled"], json!(false));
}

#[test]
fn only_some_types_have_a_value() {
    for expr in ["google.protobuf.Timestamp", "net.IP", "optional_type", "google.protobuf.Empty"] {
        assert_eq!(answer(expr)["value"], json!(expr), "{expr}");
    }
    for expr in ["google.protobuf.Int32Value", "google.protobuf.Any", "kubernetes.URL", "kubernetes.Semver"] {
        assert_eq!(answer(expr)["compiled"], json!(false), "{expr}");
    }
}

#[test]
fn empty_message_is_a_value_and_null_value_an_int() {
    let message = answer("google.protobuf.Empty{}");
    assert_eq!((&message["ok"], &message["type"]), (&json!(true), &json!("google.protobuf.Empty")));
    assert_eq!(message.get("value"), None);
    for (expr, value) in [
        ("google.protobuf.Empty{} == google.protobuf.Empty{}", json!(true)),
        ("dyn(google.protobuf.Empty{}) == dyn({})", json!(false)),
        ("type(google.protobuf.Empty{}) == google.protobuf.Empty", json!(true)),
        ("[google.protobuf.Empty{}]", json!([null])),
        ("optional.ofNonZeroValue(google.protobuf.Empty{}).hasValue()", json!(false)),
        ("google.protobuf.NullValue.NULL_VALUE", json!(0)),
        (".google.protobuf.NullValue.NULL_VALUE + 1", json!(1)),
        ("google.protobuf.Value{null_value: google.protobuf.NullValue.NULL_VALUE}", Value::Null),
    ] {
        assert_eq!(answer(expr)["value"], value, "{expr}");
    }
    for expr in [
        "google.protobuf.Empty{a: 1}",
        "google.protobuf.Empty{}.a",
        "google.protobuf.NullValue",
        "google.protobuf.NullValue.NULL_VALUE == null",
        "google.protobuf.NullValue.OTHER",
        "[1].map(google, google.protobuf.NullValue.NULL_VALUE)",
    ] {
        assert_eq!(answer(expr)["compiled"], json!(false), "{expr}");
    }
}

#[test]
fn float_value_has_single_precision() {
    for (expr, value) in [
        ("google.protobuf.FloatValue{value: 0.1}", json!(0.100_000_001_490_116_12)),
        ("google.protobuf.FloatValue{value: 1e300}", json!("+Inf")),
        ("google.protobuf.FloatValue{value: -1e-50} == 0.0", json!(true)),
        ("google.protobuf.DoubleValue{value: 0.1}", json!(0.1)),
    ] {
        assert_eq!(answer(expr)["value"], value, "{expr}");
    }
}

/// The deepest nesting at which the expression compiles.
fn deepest(nested: impl Fn(usize) -> String) -> usize {
    let compiles = |depth: usize| claims_environment().compile(&nested(depth)).is_ok();
    let depths: Vec<usize> = (1..300).collect();
    depths.partition_point(|&depth| compiles(depth))
}

#[test]
fn chains_and_nesting_have_the_limits_of_cel_go() {
    let chain =
        |first: &'static str, link: &'static str| deepest(|count| first.to_owned() + &link.repeat(count));
    assert_eq!(chain("true", "==true"), 250);
    assert_eq!(chain("1", "+1"), 250);
    assert_eq!(chain("1", "*1"), 250);
    assert_eq!(chain("1", "+1*1"), 249);
    assert_eq!(chain("claims", ".a"), 250);
    assert_eq!(chain("claims.l", "[0]"), 249);
    assert_eq!(chain("'a'", ".trim()"), 250);
    assert_eq!(chain("'a'", ".replace('a', 'b')"), 250);
    assert_eq!(chain("true?true:true", "==true"), 249);
    let nest = |open: &'static str, inner: &'static str, close: &'static str| {
        deepest(|count| open.repeat(count) + inner + &close.repeat(count))
    };
    assert_eq!(nest("(", "1", ")"), 249);
    assert_eq!(nest("(", "1", "+1)"), 248);
    assert_eq!(nest("(1+", "1", ")"), 124);
    assert_eq!(nest("(true==", "true", ")"), 124);
    assert_eq!(nest("claims.l[", "0", "]"), 249);
    assert_eq!(nest("[1].all(x,", "true", ")"), 249);
}

#[test]
fn struct_and_list_literals_convert_to_json_values() {
    for (expr, value) in [
        ("type(google.protobuf.Struct{fields: {'a': 1}}.a)", json!("double")),
        ("type(google.protobuf.ListValue{values: [1u]}[0])", json!("double")),
        ("google.protobuf.ListValue{values: [9007199254740991]}[0] == 9007199254740991.0", json!(true)),
        (
            "google.protobuf.ListValue{values: [9007199254740992, -9007199254740992]}",
            json!(["9007199254740992", "-9007199254740992"]),
        ),
        ("google.protobuf.ListValue{values: [b'\\377']}", json!(["/w=="])),
        ("google.protobuf.ListValue{values: [duration('1.5s')]}", json!(["1.5s"])),
        ("google.protobuf.ListValue{values: [optional.of(true)]}", json!([true])),
        ("google.protobuf.Value{list_value: [[null]]}", json!([[null]])),
        ("google.protobuf.Value{struct_value: dyn(optional.of({'a': 'b'}))}", json!({"a": "b"})),
        ("google.protobuf.ListValue{values: [google.protobuf.Empty{}]}", json!([{}])),
        ("google.protobuf.Int64Value{value: dyn(optional.of(1))}", json!(1)),
    ] {
        assert_eq!(answer(expr)["value"], value, "{expr}");
    }
}

#[test]
fn nothing_is_looked_up_in_an_empty_map() {
    for expr in ["b'a' in {}", "b'a' in dyn({})", "semver('1.0.0') in {}"] {
        assert_eq!(answer(expr)["value"], json!(false), "{expr}");
    }
    assert_eq!(answer("b'a' in dyn({'a': 1})")["ok"], json!(false));
}

#[test]
fn fields_of_messages_have_their_types() {
    for (expr, value) in [
        ("google.protobuf.Value{bool_value: true, string_value: 'a'}", json!("a")),
        ("google.protobuf.Timestamp{nanos: -1}", json!("1969-12-31T23:59:59.999999999Z")),
        ("google.protobuf.ListValue{values: [1]}.size()", json!(1)),
        ("google.protobuf.Duration{seconds: 9223372036, nanos: -1}", json!("9223372035.999999999s")),
        ("google.protobuf.Duration{seconds: 9007199254740993}", json!("9223372036.854775807s")),
        ("google.protobuf.Duration{seconds: 9223372037, nanos: -1000000000}", json!("9223372036.854775807s")),
        ("google.protobuf.Duration{seconds: -9007199254740993}", json!("-9223372036.854775808s")),
    ] {
        assert_eq!(answer(expr)["value"], value, "{expr}");
    }
    for expr in [
        "google.protobuf.UInt64Value{value: dyn(null)}",
        "google.protobuf.FloatValue{value: dyn(null)}",
        "google.protobuf.ListValue{values: dyn(1)}",
        "google.protobuf.Struct{fields: dyn(null)}",
        "google.protobuf.Value{string_value: dyn(1)}",
        "google.protobuf.Value{null_value: dyn(null)}",
        "google.protobuf.Value{null_value: dyn(1.0)}",
        "google.protobuf.Value{null_value: 5000000000}",
        "google.protobuf.Value{number_value: dyn(1), string_value: 'a'}",
        "google.protobuf.Value{struct_value: dyn({1: 2})}",
        "google.protobuf.Value{list_value: dyn([{1: 2}])}",
        "google.protobuf.Struct{fields: dyn({true: 2})}",
        "google.protobuf.Struct{fields: dyn(optional.of({'a': 1}))}",
        "google.protobuf.Struct{fields: {'a': optional.none()}}",
        "google.protobuf.ListValue{values: [type(1)]}",
        "google.protobuf.ListValue{values: [ip('1.2.3.4')]}",
        "google.protobuf.ListValue{values: [claims]}",
        "google.protobuf.Timestamp{seconds: dyn('a')}",
        "google.protobuf.Timestamp{nanos: 2147483648}",
        "google.protobuf.Duration{nanos: 2147483648}",
        // S65: outside the years 1 to 9999.
        "google.protobuf.Timestamp{seconds: 253402300800}",
        "google.protobuf.Timestamp{seconds: -62135596801}",
    ] {
        assert_eq!((&answer(expr)["compiled"], &answer(expr)["ok"]), (&json!(true), &json!(false)), "{expr}");
    }
}
