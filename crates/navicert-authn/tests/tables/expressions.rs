//! §14.3, §14.4: which expressions compile, and their values.

use navicert_authn::AuthnProfile;
use serde_json::json;

use super::common::{PROFILES, authenticator, errors, judged};

/// Whether an expression compiles: as a rule over claims or users, or as a mapping.
pub(crate) fn compiles(role: &str, expression: &str, profile: &AuthnProfile) -> bool {
    let jwt = authenticator(|one| match role {
        "rule" => one["claimValidationRules"] = json!([{"expression": expression}]),
        "user" => one["userValidationRules"] = json!([{"expression": expression}]),
        _ => one["claimMappings"]["uid"] = json!({"expression": expression}),
    });
    errors(&json!([jwt]), profile).is_empty()
}

// §14.3 CC1–CC18; S63 (CC5–CC10), S64 (CC17, CC18), S69 (CC12), S70 (CC11, CC14), S84 (CC15). What `hardened` compiles beyond that is S311: claims as dynamic values.
#[test]
fn expressions_compile_where_kube_apiserver_compiles_them() {
    let rows: &[(&str, &str, &str, bool)] = &[
        ("CC1", "rule", "claims.foo", false),
        ("CC2", "rule", "claims.?x.orValue(true)", false),
        ("CC2", "rule", "claims.?x.orValue(true) == true", true),
        ("CC3", "rule", "claims.a == 1 || claims.b", true),
        ("CC4", "rule", "claims.x ? claims.y : false", false),
        ("CC5", "rule", "claims.groups.exists(g, g == 'a')", false),
        ("CC6", "rule", "dyn(claims.groups).exists(g, g == 'a')", true),
        ("CC7", "map", "claims.?groups.orValue([]).map(g, g)", false),
        ("CC8", "map", "claims.realm_access.roles.map(g, 'p:' + g)", true),
        ("CC9", "map", "[claims.sub, 'k']", false),
        ("CC9", "map", "[claims.sub] + ['k']", true),
        ("CC10", "map", "'%s'.format([claims.n])", false),
        ("CC10", "map", "'%s'.format([string(claims.n)])", true),
        ("CC11", "rule", "1 == 1.0", false),
        ("CC11", "rule", "1 == 'x'", false),
        ("CC11", "map", "[1, 'a']", false),
        ("CC11", "map", "{'a': 1, 2: 3}", false),
        ("CC12", "rule", "'x'.matches('(')", false),
        ("CC12", "map", "duration('1x')", false),
        ("CC12", "map", "timestamp('xx')", false),
        ("CC13", "map", "cel.bind(x, 1, x)", false),
        ("CC13", "map", "math.greatest(1, 2)", false),
        ("CC13", "map", "base64.encode(b'x')", false),
        ("CC13", "map", "jsonpatch.escapeKey('a')", false),
        ("CC13", "map", "authorizer", false),
        ("CC14", "map", "claims.`a.b`", true),
        ("CC15", "map", "claims.in", false),
        ("CC15", "map", "claims['in']", true),
        ("CC16", "map", "user.username", false),
        ("CC16", "user", "claims.sub == ''", false),
        ("CC17", "user", "user.foo == ''", false),
        ("CC17", "user", "user['username'] == ''", false),
        ("CC17", "user", "size(user) == 1", false),
        ("CC17", "user", "user.username == 1", false),
        ("CC18", "user", "user.extra[?'k'][0].orValue('') == ''", true),
    ];
    for (id, role, expression, expected) in rows {
        assert_eq!(compiles(role, expression, &AuthnProfile::KUBE), *expected, "{id}: {expression}");
        // The contract of section 13: hardened may accept more expressions, never fewer of these.
        assert!(
            compiles(role, expression, &AuthnProfile::HARDENED) || !expected,
            "{id} in hardened: {expression}"
        );
    }
}

const P: &str = r#","c":"u","sub":"s","n":5,"num":1700000000,"id":12345678,"big":9007199254740993,"nul":null,"b":true,"bs":"true","a.b":"dot","__proto__":"pp","x__y":"xy","obj":{"a":"A","a.b":"nested","n":7,"__proto__":"pp"},"groups":["a","b"],"nums":[1,2,3],"csv":"x,y,,z","list":[{"a.b":"in"}],"h":1e400,"i":9223372036854775807"#;

/// Whether a condition holds for the claims of section 14.4; `None` if its evaluation fails.
fn holds(condition: &str, profile: &AuthnProfile) -> Option<bool> {
    let rule = authenticator(|one| one["claimValidationRules"] = json!([{"expression": condition}]));
    let answer = judged(&rule, P, profile);
    match answer["outcome"].as_str().unwrap() {
        "authenticated" => Some(true),
        _ if answer["error"].to_string().contains("resulted in error") => None,
        _ => Some(false),
    }
}

// §14.4 CE1–CE33; S75 (CE29), S78 (CE7, CE8), S79 (CE9–CE12, CE24), S80 (CE13, CE14)
#[test]
fn expressions_evaluate_as_in_kube_apiserver() {
    let long: String = std::iter::repeat_n("'x',", 200).collect();
    let bomb =
        format!("dyn([{long}]).all(a, dyn([{long}]).all(b, dyn([{long}]).all(c, a + b + c != 'zzz')))");
    let rows: Vec<(&str, String, Option<bool>)> = [
        ("CE1", "claims.n == 5 && claims.n == 5u && claims.n == 5.0 && claims.n in [5] && claims.n > 4", Some(true)),
        ("CE2", "claims.n + 1 == 6", None),
        ("CE2", "claims.n % 2 == 1", None),
        ("CE3", "claims.n + 1.0 == 6.0 && int(claims.n) % 2 == 1", Some(true)),
        ("CE4", "string(claims.n) == '5' && string(claims.num) == '1.7e+09' && string(claims.id) == '1.2345678e+07' && string(claims.big) == '9.007199254740992e+15'", Some(true)),
        ("CE5", "string(int(claims.num)) == '1700000000'", Some(true)),
        ("CE6", "timestamp(claims.num) == timestamp('2023-11-14T22:13:20Z')", None),
        ("CE6", "timestamp(int(claims.num)) == timestamp('2023-11-14T22:13:20Z')", Some(true)),
        ("CE7", "claims.nul == null && has(claims.nul) && claims.?nul.hasValue()", Some(true)),
        ("CE8", "claims.nul == '' || claims.n == '5' || claims.bs == true", Some(false)),
        ("CE9", "claims.missing == 1", None),
        ("CE9", "claims.missing == null", None),
        ("CE9", "claims['missing'] == 1", None),
        ("CE10", "has(claims.missing) || has(claims.sub.x)", Some(false)),
        ("CE11", "claims.sub.x == 1", None),
        ("CE12", "claims.?missing.orValue('d') == 'd' && claims[?'missing'].orValue('z') == 'z'", Some(true)),
        ("CE13", "claims.missing || true", Some(true)),
        ("CE13", "claims.missing && false", Some(false)),
        ("CE14", "claims.bs || false", None),
        ("CE14", "!claims.nul", None),
        ("CE14", "(claims.nul ? 1 : 2) == 2", None),
        ("CE17", "claims.a__dot__b == 'dot' && claims['a.b'] == 'dot' && claims['a__dot__b'] == 'dot'", Some(true)),
        ("CE18", "claims['__proto__'] == 'pp'", None),
        ("CE18", "claims.obj['__proto__'] == 'pp'", Some(true)),
        ("CE19", "claims.x__y == 'xy' && claims.x__underscores__y == 'xy'", Some(true)),
        ("CE20", "claims.obj.a__dot__b == 'nested' && claims.obj['a.b'] == 'nested'", Some(true)),
        ("CE21", "'a__dot__b' in claims.obj", Some(false)),
        ("CE21", "'a.b' in claims.obj", Some(true)),
        ("CE22", "dyn(claims.list).map(x, x['a.b']) == ['in']", Some(true)),
        ("CE23", "claims.nums == [1, 2, 3] && 1 in claims.nums && claims.nums.sum() == 6", Some(true)),
        ("CE24", "claims.groups[5] == ''", None),
        ("CE24", "claims.groups[-1] == ''", None),
        ("CE24", "claims.groups[?5].orValue('q') == 'q'", Some(true)),
        ("CE25", "claims.groups.contains('a')", None),
        ("CE25", "claims.groups.includes('a')", Some(true)),
        ("CE26", "sets.equivalent(claims.groups, ['b', 'a'])", Some(true)),
        ("CE27", "claims.csv.reverse() == []", None),
        ("CE28", "1 / 0 == 1", None),
        ("CE28", "claims.n / 0.0 > 1e300", Some(true)),
        ("CE29", "claims.h == 1", None),
        ("CE29", "has(claims.h)", None),
        ("CE29", "claims.?h.orValue(1) == 1", None),
        ("CE29", "claims.sub == 's'", Some(true)),
        ("CE30", "claims.i == 9223372036854775807", Some(true)),
        ("CE30", "int(claims.i) == 1", None),
        ("CE31", bomb.as_str(), None),
        ("CE32", r#""\u00e9" == "e\u0301" || size("\U0001F600") != 1"#, Some(false)),
        ("CE33", "type(claims.groups) == list && type(claims.n) == double && type(claims.nul) == null_type", Some(true)),
    ]
    .into_iter()
    .map(|(id, text, expected)| (id, text.to_owned(), expected))
    .collect();
    for (id, condition, expected) in rows {
        for (name, profile) in PROFILES {
            assert_eq!(holds(&condition, &profile), expected, "{id} in {name}: {condition:.120}");
        }
    }
    // Quirks of the claims object as a whole, which hardened does not compile (H5).
    for (id, condition, expected) in [
        ("CE15", "'sub' in claims", None),
        ("CE15", "size(claims) == 1", None),
        ("CE16", "claims.exists(k, k == 's')", Some(true)),
    ] {
        if id != "CE16" {
            assert_eq!(holds(condition, &AuthnProfile::KUBE), expected, "{id}: {condition}");
        }
        assert!(!compiles("rule", condition, &AuthnProfile::HARDENED), "{id}: {condition}");
    }
    // CE16 without a claim with an invalid name (A54).
    let jwt = authenticator(|one| {
        one["claimValidationRules"] = json!([{"expression": "claims.exists(k, k == 's')"}]);
    });
    assert_eq!(
        judged(&jwt, r#","c":"u","sub":"s""#, &AuthnProfile::KUBE)["outcome"],
        "authenticated",
        "CE16"
    );
    // CE22: an escaped name of an iterated value. navicert accepts a superset (S83), in hardened only.
    assert_eq!(holds("dyn(claims.list).map(x, x.a__dot__b) == ['in']", &AuthnProfile::KUBE), None, "CE22");
    assert_eq!(
        holds("dyn(claims.list).map(x, x.a__dot__b) == ['in']", &AuthnProfile::HARDENED),
        Some(true),
        "CE22"
    );
}
