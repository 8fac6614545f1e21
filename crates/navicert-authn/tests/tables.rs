//! The tables of the specification's section 14, row by row: what kube-apiserver does with a configuration, an
//! expression or a claim, and what `hardened` does where it differs. Rows about token texts are in `attacks.rs`.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::sync::OnceLock;

use navicert_authn::config::load;
use navicert_authn::{Profile, batch};
use navicert_testkit::jws::{Algorithm, SigningKey};
use serde_json::{Value, json};

const NOW: i64 = 1_800_000_000;

const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";

const PROFILES: [(&str, Profile); 2] = [("kube", Profile::KUBE), ("hardened", Profile::HARDENED)];

fn check(config: &str, profile: &Profile) -> Value {
    batch::check(&json!({"config": config}), profile)
}

/// Whether a file of this text is valid in the two profiles.
fn decides(id: &str, config: &str, kube: bool, hardened: bool) {
    for ((name, profile), expected) in PROFILES.iter().zip([kube, hardened]) {
        let answer = check(config, profile);
        assert_eq!(answer["valid"], expected, "{id} in {name}: {answer}\n{config}");
    }
}

fn messages(config: &str) -> String {
    let answer = check(config, &Profile::KUBE);
    assert_eq!(answer["stage"], "decode", "{answer}");
    answer["messages"].to_string()
}

// §14.1 DV1–DV22
#[test]
fn configurations_are_decoded_as_kube_apiserver_decodes_them() {
    let minimal = "jwt: [{issuer: {url: https://i, audiences: [a]}, claimMappings: {username: {claim: c, prefix: ''}}}]\n";
    let good = format!("{HEAD}{minimal}");
    let replaced = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replace(from, to)
    };
    for (id, config, kube, hardened) in [
        ("DV1", HEAD.to_owned(), true, true),
        ("DV2", format!("{HEAD}jwt: null\n"), true, true),
        ("DV3", format!("{HEAD}jwts: []\n"), false, false),
        ("DV4", replaced("audiences", "audience"), false, false),
        ("DV5", format!("{HEAD}JWT: []\n"), false, false),
        ("DV5", replaced("issuer", "Issuer"), false, false),
        ("DV7", format!("{HEAD}apiVersion: apiserver.config.k8s.io/v1\n"), false, false),
        ("DV8", replaced("url: https://i", "url: https://i, url: https://i"), false, false),
        ("DV9", replaced("claimMappings", "audienceMatchPolicy: MatchAny, claimMappings"), false, false),
        ("DV10", format!("{good}---\nkind: x\n"), true, false),
        ("DV11", format!("---\n{good}"), true, true),
        (
            "DV13",
            replaced(
                "claimMappings",
                "claimValidationRules: [{claim: a, requiredValue: 123}], claimMappings",
            ),
            false,
            false,
        ),
        ("DV13", replaced("prefix: ''", "prefix: 1"), false, false),
        ("DV13", replaced("audiences: [a]", "audiences: a"), false, false),
        ("DV14", format!("{HEAD}anonymous: {{enabled: yes}}\n"), true, true),
        ("DV14", format!("{HEAD}anonymous: {{enabled: \"true\"}}\n"), false, false),
        ("DV16", replaced("prefix: ''", "prefix: null"), false, false),
        (
            "DV17",
            format!(
                "{HEAD}jwt:\n- issuer: {{url: https://i, audiences: &a [a]}}\n  claimMappings: &m {{username: {{claim: c, prefix: ''}}}}\n- issuer: {{url: https://j, audiences: *a}}\n  <<: {{claimMappings: *m}}\n"
            ),
            true,
            true,
        ),
        ("DV18", format!("{HEAD}metadata: {{name: x}}\n"), false, false),
        ("DV19", format!("{HEAD}jwt: [null]\n"), false, false),
        ("DV20", format!("{HEAD}jwt:\n\t- issuer: {{}}\n"), false, false),
        ("DV21", good.replace("AuthenticationConfiguration", "AuthorizationConfiguration"), false, false),
        ("DV22", good.replace("apiserver.config.k8s.io", "apiserver.k8s.io"), false, false),
    ] {
        decides(id, &config, kube, hardened);
    }
    let json = r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration","jwt":[{"issuer":{"url":"https://i","url":"https://i","audiences":["a"]},"claimMappings":{"username":{"claim":"c","prefix":""}}}]}"#;
    assert!(messages(json).contains("jwt[0].issuer.url"), "DV6");
    decides("DV12", &format!("{} x", json.replacen(r#""url":"https://i","#, "", 1)), false, false);
    decides("DV12 without", &json.replacen(r#""url":"https://i","#, "", 1), true, true);
    let two = messages(&replaced("audiences", "audience").replace("claimMappings", "foo: 1, claimMappings"));
    assert!(two.contains("jwt[0].issuer.audience") && two.contains("jwt[0].foo"), "DV4: {two}");
    assert_eq!(check(&format!("{HEAD}jwt: [null]\n"), &Profile::KUBE)["stage"], "validate", "DV19");
    let anonymous = |text: &str| {
        load(format!("{HEAD}anonymous: {text}\n").as_bytes(), &Profile::KUBE).unwrap().configuration.anonymous
    };
    assert!(!anonymous("{}").unwrap().enabled, "DV15");
    assert!(anonymous("null").is_none(), "DV15");
}

/// The errors of a configuration as `field type`, in the order in which they come.
fn errors(jwt: &Value, profile: &Profile) -> Vec<String> {
    errors_of(&json!({"jwt": jwt}), profile)
}

fn errors_of(fields: &Value, profile: &Profile) -> Vec<String> {
    let mut config =
        json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"});
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let answer = check(&config.to_string(), profile);
    assert_ne!(answer["stage"], "decode", "{answer}");
    let errors = answer["errors"].as_array().unwrap().iter().map(|error| {
        let kind = error["type"].as_str().unwrap().trim_start_matches("FieldValue").to_owned();
        format!("{} {kind}", error["field"].as_str().unwrap().trim_start_matches("jwt[0]."))
    });
    errors.collect()
}

/// A minimal authenticator, changed.
fn authenticator(change: impl Fn(&mut Value)) -> Value {
    let mut value = json!({
        "issuer": {"url": "https://i", "audiences": ["a"]},
        "claimMappings": {"username": {"claim": "c", "prefix": ""}},
    });
    change(&mut value);
    value
}

/// Checks the errors in both profiles; `None`: the same in both.
fn refuses(id: &str, change: impl Fn(&mut Value), kube: &[&str], hardened: Option<&[&str]>) {
    let jwt = json!([authenticator(change)]);
    assert_eq!(errors(&jwt, &Profile::KUBE), kube, "{id} in kube");
    assert_eq!(errors(&jwt, &Profile::HARDENED), hardened.unwrap_or(kube), "{id} in hardened");
}

// §14.2 VV1–VV10
#[test]
fn issuers_are_validated_as_kube_apiserver_validates_them() {
    let many: Vec<Value> = (0..65)
        .map(|index| authenticator(|one| one["issuer"]["url"] = json!(format!("https://{index}"))))
        .collect();
    assert_eq!(errors(&json!(many), &Profile::KUBE), ["jwt TooMany"], "VV1");
    assert_eq!(errors(&json!(many[..64]), &Profile::KUBE), [""; 0], "VV1");
    let empty = authenticator(|one| one["issuer"]["url"] = json!(""));
    assert_eq!(
        errors(&json!([empty, empty]), &Profile::KUBE),
        ["issuer.url Required", "jwt[1].issuer.url Required", "jwt[1].issuer.url Duplicate"],
        "VV2"
    );
    let url = |url: &'static str| move |one: &mut Value| one["issuer"]["url"] = json!(url);
    let invalid = ["issuer.url Invalid"];
    for bad in ["http://x", "//x", "x"] {
        let hardened: &[&str] =
            if bad == "x" { &["issuer.url Invalid", "issuer.url Invalid"] } else { &invalid };
        refuses("VV3", url(bad), &invalid, Some(hardened));
    }
    refuses("VV4", url("https://x?a=b#f"), &["issuer.url Invalid", "issuer.url Invalid"], None);
    for bad in ["https://u@x", "https://:p@x", "https://x/%zz", " https://x", "https://ex ample"] {
        refuses("VV5, VV6", url(bad), &invalid, None);
    }
    for odd in ["https://", "https:opaque", "https://x?", "https://x#"] {
        refuses("VV7", url(odd), &[], Some(&invalid));
    }
    for odd in ["HTTPS://x", "https://x:99999"] {
        refuses("VV7", url(odd), &[], None);
    }
    let discovery = |url: &'static str| move |one: &mut Value| one["issuer"]["discoveryURL"] = json!(url);
    refuses("VV9", discovery("https://i//"), &["issuer.discoveryURL Invalid"], None);
    let twice = json!([
        authenticator(discovery("https://d")),
        authenticator(|one| {
            one["issuer"]["url"] = json!("https://j");
            one["issuer"]["discoveryURL"] = json!("https://d");
        }),
    ]);
    assert_eq!(errors(&twice, &Profile::KUBE), ["jwt[1].issuer.discoveryURL Duplicate"], "VV10");
}

// §14.2 VV11–VV16
#[test]
fn audiences_certificates_and_egress_are_validated() {
    let set = |name: &'static str, value: Value| move |one: &mut Value| one["issuer"][name] = value.clone();
    refuses(
        "VV11",
        |one| {
            one["issuer"]["audiences"] = json!([]);
            one["issuer"]["audienceMatchPolicy"] = json!("x");
        },
        &["issuer.audiences Required"],
        None,
    );
    refuses(
        "VV12",
        |one| {
            one["issuer"]["audiences"] = json!(["", ""]);
            one["issuer"]["audienceMatchPolicy"] = json!("MatchAny");
        },
        &["issuer.audiences[0] Required", "issuer.audiences[1] Required", "issuer.audiences[1] Duplicate"],
        None,
    );
    refuses("VV13", set("audiences", json!(["a", "b"])), &["issuer.audienceMatchPolicy Invalid"], None);
    refuses(
        "VV14",
        set("audienceMatchPolicy", json!("matchany")),
        &["issuer.audienceMatchPolicy Invalid"],
        None,
    );
    for junk in ["junk", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        refuses(
            "VV15",
            set("certificateAuthority", json!(junk)),
            &["issuer.certificateAuthority Invalid"],
            None,
        );
    }
    refuses("VV16", set("egressSelectorType", json!("etcd")), &["issuer.egressSelectorType Invalid"], None);
}

// §14.2 VV17–VV27
#[test]
fn mappings_are_validated() {
    let key = |key: &'static str| {
        move |one: &mut Value| {
            one["claimMappings"]["extra"] = json!([{"key": key, "valueExpression": "'x'"}]);
        }
    };
    let at = "claimMappings.extra[0].key";
    let invalid = format!("{at} Invalid");
    for bad in ["foo", "/x", "example.org/", "a_b/x", "example.org/a b", "example.org/é"] {
        refuses("VV17", key(bad), &[&invalid], None);
    }
    refuses("VV17", key(""), &[&format!("{at} Required")], None);
    refuses("VV18", key("Example.org/x"), &[&invalid, &invalid], None);
    refuses("VV19", key("example.org/X"), &[&invalid], None);
    for good in ["example.org/a/b", "example.org/%2f", "xk8s.io/x"] {
        refuses("VV20", key(good), &[], None);
    }
    for reserved in
        ["k8s.io/x", "sub.k8s.io/x", "kubernetes.io/x", "authentication.kubernetes.io/credential-id"]
    {
        refuses("VV21", key(reserved), &[&invalid], None);
    }
    refuses(
        "VV22",
        |one| {
            one["claimMappings"]["extra"] =
                json!([{"key": "a.b/c", "valueExpression": "'x'"}, {"key": "a.b/c", "valueExpression": "("}]);
        },
        &["claimMappings.extra[1].key Duplicate"],
        None,
    );
    let username = |value: Value| move |one: &mut Value| one["claimMappings"]["username"] = value.clone();
    refuses("VV23", username(json!({})), &["claimMappings.username Required"], None);
    refuses("VV23", username(json!({"prefix": "p"})), &["claimMappings.username Required"], None);
    refuses("VV24", |one| one["claimMappings"]["groups"] = json!({"prefix": "p"}), &[], None);
    refuses(
        "VV25",
        username(json!({"claim": "c", "expression": "'x'", "prefix": ""})),
        &["claimMappings.username Invalid"],
        None,
    );
    refuses(
        "VV26",
        username(json!({"expression": "'x'", "prefix": ""})),
        &["claimMappings.username.prefix Invalid"],
        None,
    );
    refuses("VV27", username(json!({"expression": "true"})), &[], None);
}

// §14.2 VV28–VV38
#[test]
fn rules_are_validated() {
    let rules = |value: Value| move |one: &mut Value| one["claimValidationRules"] = value.clone();
    refuses(
        "VV28",
        rules(json!([{"claim": "a", "expression": "true"}])),
        &["claimValidationRules[0] Invalid"],
        None,
    );
    refuses("VV28", rules(json!([{"message": "m"}])), &["claimValidationRules[0] Required"], None);
    refuses("VV28", rules(json!([{"requiredValue": "v"}])), &["claimValidationRules[0] Required"], None);
    refuses(
        "VV29",
        rules(json!([{"claim": "a", "requiredValue": "1"}, {"claim": "a", "requiredValue": "2"}])),
        &["claimValidationRules[1].claim Duplicate"],
        None,
    );
    refuses(
        "VV30",
        rules(json!([{"expression": "true"}, {"expression": "true"}, {"expression": " true"}])),
        &["claimValidationRules[1].expression Duplicate"],
        None,
    );
    refuses(
        "VV31",
        |one| one["userValidationRules"] = json!([{"expression": ""}, {"expression": "user.groups"}, {"expression": "true"}, {"expression": "true"}]),
        &[
            "userValidationRules[0].expression Required",
            "userValidationRules[1].expression Invalid",
            "userValidationRules[3].expression Duplicate",
        ],
        None,
    );
    // A rule's type is judged before a program is made of it; only a program knows that `(` is no pattern.
    for (expression, error) in [
        ("matches('a', '(') ? claims.b : true", "claimValidationRules[0].expression Invalid"),
        ("matches('a', '(')", "claimValidationRules[0].expression InternalError"),
    ] {
        refuses("S66", rules(json!([{"expression": expression}])), &[error], None);
    }
    let long = format!("'{}' == ''", "x".repeat(100_003));
    let deep = format!("{}true{}", "(".repeat(300), ")".repeat(300));
    for expression in [long, deep] {
        refuses(
            "VV36",
            rules(json!([{"expression": expression}])),
            &["claimValidationRules[0].expression Invalid"],
            None,
        );
    }
    let conditions = |enabled: bool| json!({"anonymous": {"enabled": enabled, "conditions": [{"path": ""}, {"path": "x"}, {"path": "/a"}, {"path": "/a"}]}});
    assert_eq!(errors_of(&conditions(false), &Profile::KUBE), ["anonymous.conditions Invalid"], "VV37");
    assert_eq!(errors_of(&conditions(true), &Profile::KUBE), [""; 0], "VV38");
}

// §14.2 VV32–VV35, S48–S54, H3
#[test]
fn a_name_from_an_address_needs_a_word_about_its_verification() {
    let named = |name: &'static str, more: &'static str| {
        move |one: &mut Value| {
            one["claimMappings"]["username"] = json!({"expression": name});
            match more {
                "groups" => {
                    one["claimMappings"]["groups"] = json!({"expression": "string(claims.email_verified)"});
                }
                "uid" => one["claimMappings"]["uid"] = json!({"expression": "string(claims.email_verified)"}),
                "legacy" => {
                    one["claimValidationRules"] =
                        json!([{"claim": "email_verified", "requiredValue": "true"}]);
                }
                "index" => {
                    one["claimValidationRules"] = json!([{"expression": "claims['email_verified'] == true"}]);
                }
                "extra" => {
                    one["claimMappings"]["extra"] =
                        json!([{"key": "a.b/c", "valueExpression": "string(claims.email_verified)"}]);
                }
                "rule" => {
                    one["claimValidationRules"] = json!([{"expression": "claims.email_verified == true"}]);
                }
                _ => {}
            }
        }
    };
    let broken: &[&str] = &["claimMappings.username.expression Invalid"];
    for more in ["", "groups", "uid", "legacy"] {
        refuses("VV32", named("claims.email", more), broken, None);
    }
    refuses("VV32 index", named("claims.email", "index"), broken, Some(&[]));
    let other = json!([
        authenticator(named("claims.email", "")),
        authenticator(|one| {
            named("claims.email", "rule")(one);
            one["issuer"]["url"] = json!("https://j");
        })
    ]);
    assert_eq!(errors(&other, &Profile::KUBE), broken, "VV32 another authenticator");
    for more in ["extra", "rule"] {
        refuses("VV33", named("claims.email", more), &[], None);
    }
    for name in ["claims[\"email\"]", "dyn(claims).email", "claims[?\"email\"].orValue(\"x\")"] {
        refuses("VV34", named(name, ""), &[], Some(broken));
    }
    for name in ["has(claims.email) ? claims.sub : \"z\"", "claims.?email.orValue(\"x\")", "(claims).email"] {
        refuses("VV35", named(name, ""), broken, None);
    }
}

/// Whether an expression compiles: as a rule over claims or users, or as a mapping.
fn compiles(role: &str, expression: &str, profile: &Profile) -> bool {
    let jwt = authenticator(|one| match role {
        "rule" => one["claimValidationRules"] = json!([{"expression": expression}]),
        "user" => one["userValidationRules"] = json!([{"expression": expression}]),
        _ => one["claimMappings"]["uid"] = json!({"expression": expression}),
    });
    errors(&json!([jwt]), profile).is_empty()
}

// §14.3 CC1–CC18. What `hardened` compiles beyond that is S311: claims as dynamic values.
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
        assert_eq!(compiles(role, expression, &Profile::KUBE), *expected, "{id}: {expression}");
        // The contract of section 13: hardened may take more expressions, never fewer of these.
        assert!(
            compiles(role, expression, &Profile::HARDENED) || !expected,
            "{id} in hardened: {expression}"
        );
    }
}

fn key() -> &'static SigningKey {
    static KEY: OnceLock<SigningKey> = OnceLock::new();
    KEY.get_or_init(|| SigningKey::generate(Algorithm::Es256, "k1"))
}

/// A token of these members of a payload, judged under an authenticator.
fn judged(jwt: &Value, members: &str, profile: &Profile) -> Value {
    let config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [jwt]});
    let payload = format!(r#"{{"iss":"https://i","aud":"a","exp":{}{members}}}"#, NOW + 300);
    let token = key().token_of_bytes(key().header().to_string().as_bytes(), payload.as_bytes());
    let question =
        json!({"config": config.to_string(), "jwks": {"keys": [key().jwk()]}, "token": token, "now": NOW});
    let answer = batch::eval(&question, profile);
    assert!(answer.get("fault").is_none(), "{answer} {config}");
    answer
}

const P: &str = r#","c":"u","sub":"s","n":5,"num":1700000000,"id":12345678,"big":9007199254740993,"nul":null,"b":true,"bs":"true","a.b":"dot","__proto__":"pp","x__y":"xy","obj":{"a":"A","a.b":"nested","n":7,"__proto__":"pp"},"groups":["a","b"],"nums":[1,2,3],"csv":"x,y,,z","list":[{"a.b":"in"}],"h":1e400,"i":9223372036854775807"#;

/// Whether a condition holds for the claims of section 14.4; `None` if its evaluation fails.
fn holds(condition: &str, profile: &Profile) -> Option<bool> {
    let rule = authenticator(|one| one["claimValidationRules"] = json!([{"expression": condition}]));
    let answer = judged(&rule, P, profile);
    match answer["outcome"].as_str().unwrap() {
        "authenticated" => Some(true),
        _ if answer["error"].to_string().contains("resulted in error") => None,
        _ => Some(false),
    }
}

// §14.4 CE1–CE33
#[test]
fn expressions_have_kube_apiservers_values() {
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
    // Quirks of the claims object as a whole, which hardened refuses to compile (H5).
    for (id, condition, expected) in [
        ("CE15", "'sub' in claims", None),
        ("CE15", "size(claims) == 1", None),
        ("CE16", "claims.exists(k, k == 's')", Some(true)),
    ] {
        if id != "CE16" {
            assert_eq!(holds(condition, &Profile::KUBE), expected, "{id}: {condition}");
        }
        assert!(!compiles("rule", condition, &Profile::HARDENED), "{id}: {condition}");
    }
    // CE16 without a claim whose name cannot be looked up (A54).
    let jwt = authenticator(|one| {
        one["claimValidationRules"] = json!([{"expression": "claims.exists(k, k == 's')"}]);
    });
    assert_eq!(judged(&jwt, r#","c":"u","sub":"s""#, &Profile::KUBE)["outcome"], "authenticated", "CE16");
    // CE22: an escaped name of an iterated value. Ours is the superset of S83, in hardened only.
    assert_eq!(holds("dyn(claims.list).map(x, x.a__dot__b) == ['in']", &Profile::KUBE), None, "CE22");
    assert_eq!(
        holds("dyn(claims.list).map(x, x.a__dot__b) == ['in']", &Profile::HARDENED),
        Some(true),
        "CE22"
    );
}

/// What one mapping makes of a token: the part of the user, or `null` for a refusal.
fn mapped(mapping: &str, value: &Value, members: &str, profile: &Profile) -> Value {
    let jwt = authenticator(|one| one["claimMappings"][mapping] = value.clone());
    let answer = judged(&jwt, &format!(r#","c":"u"{members}"#), profile);
    answer.get("user").map_or(Value::Null, |user| user[mapping].clone())
}

// §14.5 MV1–MV13
#[test]
fn groups_are_mapped_as_kube_apiserver_maps_them() {
    let claim = json!({"claim": "g", "prefix": ""});
    let prefixed = json!({"claim": "g", "prefix": "p:"});
    let expression = |text: &str| json!({"expression": text});
    let plain = expression("claims.g");
    let split = "claims.g.split(',')";
    let either = expression("(type(claims.g) == string ? [claims.g] : claims.g) + ['hard']");
    let rows: Vec<(&str, Value, &str, Value, Value)> = vec![
        ("MV1", claim.clone(), "", json!([]), json!([])),
        ("MV1", claim.clone(), r#","g":null"#, json!([]), json!([])),
        ("MV2", claim.clone(), r#","g":[]"#, json!([]), json!([])),
        ("MV2", claim.clone(), r#","g":"""#, json!([""]), json!([])),
        ("MV2", claim.clone(), r#","g":"a""#, json!(["a"]), json!(["a"])),
        ("MV3", claim.clone(), r#","g":["a","a",""]"#, json!(["a", "a", ""]), json!(["a", "a"])),
        ("MV3", claim.clone(), r#","g":["a",null]"#, json!(["a", ""]), json!(["a"])),
        ("MV4", claim.clone(), r#","g":1"#, Value::Null, Value::Null),
        ("MV4", claim.clone(), r#","g":true"#, Value::Null, Value::Null),
        ("MV4", claim.clone(), r#","g":{}"#, Value::Null, Value::Null),
        ("MV4", claim.clone(), r#","g":[1]"#, Value::Null, Value::Null),
        ("MV4", claim, r#","g":[["a"]]"#, Value::Null, Value::Null),
        ("MV5", prefixed.clone(), r#","g":"""#, json!(["p:"]), json!([])),
        ("MV5", prefixed, r#","g":["a",""]"#, json!(["p:a", "p:"]), json!(["p:a"])),
        ("MV6", plain.clone(), "", Value::Null, Value::Null),
        ("MV6", plain.clone(), r#","g":null"#, json!([]), json!([])),
        ("MV6", plain.clone(), r#","g":"""#, json!([]), json!([])),
        ("MV6", plain.clone(), r#","g":[]"#, json!([]), json!([])),
        ("MV7", plain.clone(), r#","g":["a",""]"#, json!(["a"]), json!(["a"])),
        ("MV7", plain.clone(), r#","g":["a",null]"#, Value::Null, Value::Null),
        ("MV7", plain, r#","g":[1]"#, Value::Null, Value::Null),
        // S94: ours in both profiles.
        ("MV8", expression(split), r#","g":"a,b""#, json!(["a", "b"]), json!(["a", "b"])),
        (
            "MV9",
            expression(&format!("{split}.map(r, 'p:' + r)")),
            r#","g":"a,b""#,
            json!(["p:a", "p:b"]),
            json!(["p:a", "p:b"]),
        ),
        (
            "MV10",
            expression(&format!("{split} + (claims.d ? ['admin'] : [])")),
            r#","g":"a","d":true"#,
            json!(["a", "admin"]),
            json!(["a", "admin"]),
        ),
        (
            "MV10",
            expression(&format!("{split} + (claims.d ? ['admin'] : [])")),
            r#","g":"a","d":false"#,
            json!(["a"]),
            json!(["a"]),
        ),
        (
            "MV11",
            expression("claims.g.findAll('[a-z]+')"),
            r#","g":"a1b""#,
            json!(["a", "b"]),
            json!(["a", "b"]),
        ),
        ("MV12", expression("claims.?g"), r#","g":["a"]"#, Value::Null, Value::Null),
        ("MV13", either.clone(), r#","g":"a""#, json!(["a", "hard"]), json!(["a", "hard"])),
        ("MV13", either, r#","g":["a"]"#, json!(["a", "hard"]), json!(["a", "hard"])),
    ];
    for (id, mapping, members, kube, hardened) in rows {
        assert_eq!(mapped("groups", &mapping, members, &Profile::KUBE), kube, "{id} {members} in kube");
        assert_eq!(
            mapped("groups", &mapping, members, &Profile::HARDENED),
            hardened,
            "{id} {members} in hardened"
        );
    }
}

// §14.5 MV14–MV22
#[test]
fn names_uids_and_attributes_are_mapped_as_kube_apiserver_maps_them() {
    let claim = |name: &str| json!({"claim": name, "prefix": ""});
    let (no, empty) = (Value::Null, json!(""));
    let rows: Vec<(&str, &str, Value, &str, Value, Value)> = vec![
        ("MV14", "username", claim("v"), r#","v":"""#, empty.clone(), no.clone()),
        ("MV14", "username", claim("v"), r#","v":null"#, empty.clone(), no.clone()),
        ("MV15", "username", claim("v"), r#","v":5"#, no.clone(), no.clone()),
        ("MV15", "username", claim("v"), r#","v":["u"]"#, no.clone(), no.clone()),
        ("MV15", "username", claim("v"), r#","v":true"#, no.clone(), no.clone()),
        ("MV15", "username", claim("v"), "", no.clone(), no.clone()),
        ("MV16", "username", claim("v"), r#","v":"a\u0000b""#, json!("a\u{0}b"), no.clone()),
        ("MV16", "username", claim("v"), r#","v":" u ""#, json!(" u "), no.clone()),
        ("MV16", "username", claim("v"), r#","v":"a\ud800b""#, json!("a\u{fffd}b"), no.clone()),
        ("MV18", "username", claim("email"), r#","email":"e@x""#, json!("e@x"), json!("e@x")),
        (
            "MV18",
            "username",
            claim("email"),
            r#","email":"e@x","email_verified":true"#,
            json!("e@x"),
            json!("e@x"),
        ),
        (
            "MV18",
            "username",
            claim("email"),
            r#","email":"e@x","email_verified":false"#,
            no.clone(),
            no.clone(),
        ),
        (
            "MV18",
            "username",
            claim("email"),
            r#","email":"e@x","email_verified":null"#,
            no.clone(),
            no.clone(),
        ),
        (
            "MV18",
            "username",
            claim("email"),
            r#","email":"e@x","email_verified":"true""#,
            no.clone(),
            no.clone(),
        ),
        ("MV19", "uid", json!({"claim": "v"}), "", no.clone(), no.clone()),
        ("MV19", "uid", json!({"claim": "v"}), r#","v":"""#, empty.clone(), empty.clone()),
        ("MV19", "uid", json!({"claim": "v"}), r#","v":null"#, empty.clone(), empty.clone()),
        ("MV19", "uid", json!({"claim": "v"}), r#","v":5"#, no.clone(), no.clone()),
        ("MV20", "uid", json!({"expression": "claims.v"}), "", no.clone(), no.clone()),
        ("MV20", "uid", json!({"expression": "claims.v"}), r#","v":"""#, empty.clone(), empty),
        ("MV20", "uid", json!({"expression": "claims.v"}), r#","v":null"#, no.clone(), no.clone()),
        ("MV20", "uid", json!({"expression": "claims.v"}), r#","v":5"#, no.clone(), no.clone()),
    ];
    for (id, mapping, value, members, kube, hardened) in rows {
        assert_eq!(mapped(mapping, &value, members, &Profile::KUBE), kube, "{id} {members} in kube");
        assert_eq!(
            mapped(mapping, &value, members, &Profile::HARDENED),
            hardened,
            "{id} {members} in hardened"
        );
    }
    for members in ["", r#","v":"""#, r#","v":null"#, r#","v":5"#, r#","v":["a"]"#] {
        for (name, profile) in PROFILES {
            let value = mapped("username", &json!({"expression": "claims.v"}), members, &profile);
            assert_eq!(value, Value::Null, "MV17 {members} in {name}");
        }
    }
    let extra = json!([{"key": "a.b/c", "valueExpression": "claims.v"}]);
    for (members, expected) in [
        ("", Value::Null),
        (r#","v":"""#, json!({})),
        (r#","v":null"#, json!({})),
        (r#","v":[]"#, json!({})),
        (r#","v":["",""]"#, json!({})),
        (r#","v":["a",""]"#, json!({"a.b/c": ["a"]})),
        (r#","v":5"#, Value::Null),
    ] {
        for (name, profile) in PROFILES {
            assert_eq!(mapped("extra", &extra, members, &profile), expected, "MV21 {members} in {name}");
        }
    }
    let credential = |members: &str| mapped("extra", &json!([]), members, &Profile::KUBE);
    assert_eq!(
        credential(r#","jti":"j1""#),
        json!({"authentication.kubernetes.io/credential-id": ["JTI=j1"]}),
        "MV22"
    );
    for members in [r#","jti":"""#, r#","jti":5"#, r#","jti":null"#, r#","JTI":"j1""#] {
        assert_eq!(credential(members), json!({}), "MV22 {members}");
    }
}

// §14.5 MV23–MV27
#[test]
fn rules_refuse_in_kube_apiservers_order() {
    let required = |value: &str| {
        authenticator(|one| one["claimValidationRules"] = json!([{"claim": "hd", "requiredValue": value}]))
    };
    let passes = |value: &str, members: &str| {
        let outcomes = PROFILES.map(|(_, profile)| {
            judged(&required(value), &format!(r#","c":"u"{members}"#), &profile)["outcome"] == "authenticated"
        });
        assert_eq!(outcomes[0], outcomes[1], "{value} {members}");
        outcomes[0]
    };
    let members = ["", r#","hd":"x""#, r#","hd":"y""#, r#","hd":null"#, r#","hd":["x"]"#, r#","hd":5"#];
    assert_eq!(
        members.map(|members| passes("x", members)),
        [false, true, false, false, false, false],
        "MV23"
    );
    let members = ["", r#","hd":"""#, r#","hd":null"#, r#","hd":"y""#];
    assert_eq!(members.map(|members| passes("", members)), [false, true, true, false], "MV24");
    let class = |change: &dyn Fn(&mut Value)| judged(&authenticator(change), r#","c":"u""#, &Profile::KUBE);
    let answer = class(&|one| {
        one["claimMappings"]["uid"] = json!({"expression": "claims.missing"});
        one["claimValidationRules"] = json!([{"expression": "false"}]);
    });
    assert!(answer["error"].to_string().contains("claimMappings.uid"), "MV25: {answer}");
    let answer = class(&|one| {
        one["claimValidationRules"] = json!([{"expression": "false"}, {"claim": "hd", "requiredValue": "x"}]);
    });
    assert_eq!(answer["class"], "required_claim", "MV26");
    let answer = class(&|one| {
        one["claimValidationRules"] = json!([{"expression": "false"}, {"expression": "claims.missing == 1"}]);
    });
    assert!(answer["error"].to_string().contains("claimValidationRules[1]"), "MV27: {answer}");
}

// §14.6 TV12–TV17, S121, S122, S128
#[test]
fn registered_claims_have_types_and_audiences_are_compared_byte_by_byte() {
    let several = || {
        authenticator(|one| {
            one["issuer"] =
                json!({"url": "https://i", "audiences": ["x", "a"], "audienceMatchPolicy": "MatchAny"});
        })
    };
    let one = || authenticator(|_| {});
    // Of a repeated member the last counts in kube; hardened wants each once, so `aud` is written anew there.
    let decide = |jwt: &Value, members: &str, audience: Option<&str>| {
        let config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [jwt]});
        let audience = audience.map_or(String::new(), |audience| format!(r#","aud":{audience}"#));
        let payload = format!(r#"{{"iss":"https://i","exp":{},"c":"u"{audience}{members}}}"#, NOW + 300);
        let token = key().token_of_bytes(key().header().to_string().as_bytes(), payload.as_bytes());
        let question = json!({"config": config.to_string(), "jwks": {"keys": [key().jwk()]}, "token": token, "now": NOW});
        let classes = PROFILES.map(|(_, profile)| {
            let answer = batch::eval(&question, &profile);
            answer["class"].as_str().unwrap_or_else(|| answer["outcome"].as_str().unwrap()).to_owned()
        });
        assert_eq!(classes[0], classes[1], "{payload}");
        classes[0].clone()
    };
    for audience in [r#""a""#, r#"["x","a"]"#, r#"["x",null,"a"]"#] {
        assert_eq!(decide(&one(), "", Some(audience)), "authenticated", "TV12 {audience}");
    }
    for audience in
        [Some("null"), Some("[null]"), Some(r#""""#), Some("[]"), None, Some(r#""A""#), Some(r#"" a""#)]
    {
        assert_eq!(decide(&one(), "", audience), "audience", "TV13 {audience:?}");
    }
    for audience in ["1", r#"["a",1]"#, "{}", r#"[["a"]]"#] {
        assert_eq!(decide(&one(), "", Some(audience)), "claim_type", "TV14 {audience}");
    }
    assert_eq!(decide(&several(), "", Some(r#"["zz"]"#)), "audience", "TV15");
    assert_eq!(decide(&several(), "", Some(r#"["x","zz"]"#)), "authenticated", "TV15");
    for members in [r#","sub":1"#, r#","nonce":1"#, r#","at_hash":{}"#] {
        assert_eq!(decide(&one(), members, Some(r#""a""#)), "claim_type", "TV16 {members}");
    }
    assert_eq!(decide(&one(), r#","sub":null"#, Some(r#""a""#)), "authenticated", "TV16");
    for (members, class) in [
        (r#","_claim_names":1"#, "claim_type"),
        (r#","_claim_names":{"g":1}"#, "claim_type"),
        (r#","_claim_names":{"g":""}"#, "distributed"),
        (r#","_claim_names":{"g":"s"}"#, "distributed"),
    ] {
        assert_eq!(decide(&one(), members, Some(r#""a""#)), class, "TV17, A55 {members}");
    }
}

// TV5: with a fraction of a second on the clock, a token is gone in the second it names.
#[test]
fn a_token_is_gone_within_the_second_it_names() {
    use navicert_authn::{Outcome, Question};
    use navicert_types::Timestamp;
    let config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [authenticator(|_| {})]});
    let question = json!({"config": config.to_string(), "jwks": {"keys": [key().jwk()]}});
    let token = key().token(&json!({"iss": "https://i", "aud": "a", "exp": NOW, "c": "u"}));
    for (_, profile) in PROFILES {
        let authenticators = batch::authenticators(&question, &profile).unwrap();
        for (nanoseconds, is_good) in [(0, true), (1, false)] {
            let now = Timestamp::new(NOW, nanoseconds).unwrap();
            let outcome = authenticators.authenticate(&Question::new(&token, now));
            assert_eq!(matches!(outcome, Outcome::Authenticated(_)), is_good, "{nanoseconds}");
        }
    }
}

// A50–A54: what claims can do to expressions.
#[test]
fn claims_cannot_hurt_expressions() {
    let named = |expression: &str| {
        authenticator(|one| one["claimMappings"]["username"] = json!({"expression": expression}))
    };
    for (name, profile) in PROFILES {
        let outcome = |expression: &str, members: &str| judged(&named(expression), members, &profile);
        let huge = r#","sub":"s","h":1e400"#;
        assert_eq!(outcome("claims.sub", huge)["outcome"], "authenticated", "A50 in {name}");
        assert_eq!(outcome("string(claims.h)", huge)["outcome"], "rejected", "A50 in {name}");
        let id = outcome("string(claims.id)", r#","id":12345678"#);
        assert_eq!(id["user"]["username"], "1.2345678e+07", "A51 in {name}");
        let list = Value::from(vec!["x"; 200]).to_string();
        let bomb = "dyn(claims.l).all(a, dyn(claims.l).all(b, dyn(claims.l).all(c, a + b + c != 'zzz'))) ? 'u' : 'v'";
        let answer = outcome(bomb, &format!(r#","l":{list}"#));
        assert_eq!(answer["class"], "cost", "A52 in {name}: {answer}");
        let answer = outcome("'a'.matches(claims.p) ? 'u' : 'v'", r#","p":"(a*)*(a*)*(a*)*$""#);
        assert_eq!(answer["user"]["username"], "u", "A53 in {name}");
    }
    // A53: the pattern is the token's, so hardened bounds it.
    let long = format!(r#","p":"{}""#, "a?".repeat(600));
    let matching = named("'a'.matches(claims.p) ? 'u' : 'v'");
    assert_eq!(judged(&matching, &long, &Profile::KUBE)["user"]["username"], "u", "A53 in kube");
    assert_eq!(judged(&matching, &long, &Profile::HARDENED)["class"], "mapping", "A53 in hardened");
    let over_all = authenticator(|one| {
        one["claimValidationRules"] = json!([{"expression": "claims.exists(c, c == 'nobody')"}]);
    });
    let answer = judged(&over_all, r#","c":"u","__x__":1"#, &Profile::KUBE);
    assert!(answer["error"].to_string().contains("resulted in error"), "A54 in kube: {answer}");
    assert!(!compiles("rule", "claims.exists(c, c == 'nobody')", &Profile::HARDENED), "A54 in hardened");
}

// A12: as many keys as the profile tries.
#[test]
fn a_token_without_a_key_id_tries_a_bounded_number_of_keys() {
    let token = key().token_without_id(&json!({"iss": "https://i", "aud": "a", "exp": NOW + 300, "c": "u"}));
    let config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [authenticator(|_| {})]});
    let other = SigningKey::generate(Algorithm::Es256, "other").jwk();
    for (place, kube, hardened) in [(31, "authenticated", "authenticated"), (32, "authenticated", "rejected")]
    {
        let mut keys = vec![other.clone(); 40];
        keys[place] = key().jwk();
        for ((_, profile), expected) in PROFILES.iter().zip([kube, hardened]) {
            let question =
                json!({"config": config.to_string(), "jwks": {"keys": keys}, "token": token, "now": NOW});
            assert_eq!(batch::eval(&question, profile)["outcome"], expected, "{place}");
        }
    }
}

// A66: a rule for `azp` tells clients apart that share an audience.
#[test]
fn another_clients_token_is_refused_by_its_audience_or_by_a_rule() {
    let jwt = authenticator(|one| {
        one["claimValidationRules"] = json!([{"expression": "claims.?azp.orValue('kube') == 'kube'"}]);
    });
    for (name, profile) in PROFILES {
        let class = |members: &str| judged(&jwt, members, &profile)["class"].clone();
        assert_eq!(class(r#","c":"u","azp":"kube""#), Value::Null, "{name}");
        assert_eq!(class(r#","c":"u","azp":"grafana""#), "claim_rule", "{name}");
    }
}

// A68, A70
#[test]
fn twins_are_allowed_and_second_documents_only_in_kube() {
    let twin =
        json!([authenticator(|_| {}), authenticator(|one| one["issuer"]["url"] = json!("https://i/"))]);
    for (name, profile) in PROFILES {
        assert_eq!(errors(&twin, &profile), [""; 0], "A68 in {name}");
    }
    decides("A70", &format!("{HEAD}---\njwt: nonsense\n"), true, false);
    decides("A70", &format!("{HEAD}---\n# nothing\n"), true, true);
}

// A46, A47: names that a header could not carry never leave the mapper in hardened, in any part of a user.
#[test]
fn names_that_no_header_could_carry_are_refused() {
    for value in [" u", "u ", "a\rb", "a\nb", "a\tb", "a\u{7f}b", "a\u{0}b"] {
        let members = format!(r#","c":"u","v":{}"#, Value::from(value));
        let jwts = [
            authenticator(|one| one["claimMappings"]["username"] = json!({"claim": "v", "prefix": ""})),
            authenticator(|one| one["claimMappings"]["groups"] = json!({"claim": "v", "prefix": ""})),
            authenticator(|one| one["claimMappings"]["uid"] = json!({"claim": "v"})),
            authenticator(|one| {
                one["claimMappings"]["extra"] = json!([{"key": "a.b/c", "valueExpression": "claims.v"}]);
            }),
        ];
        for jwt in jwts {
            assert_eq!(judged(&jwt, &members, &Profile::KUBE)["outcome"], "authenticated", "{value:?}");
            let answer = judged(&jwt, &members, &Profile::HARDENED);
            assert_eq!(answer["class"], "identity_encoding", "{value:?}: {answer}");
        }
    }
}
