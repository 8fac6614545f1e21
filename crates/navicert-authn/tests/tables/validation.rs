//! §14.2: which configurations are valid, and the fields of errors.

use navicert_authn::AuthnProfile;
use navicert_authn::config::load_excluding_issuers;
use serde_json::{Value, json};

use super::common::{authenticator, errors, errors_of, refuses};

// §14.2 VV1–VV10; S20 (VV10), S21 (VV2), S22 (VV8), S25 (VV4, VV5), S313 (VV1)
#[test]
fn issuers_are_validated_as_kube_apiserver_validates_them() {
    let many: Vec<Value> = (0..65)
        .map(|index| authenticator(|one| one["issuer"]["url"] = json!(format!("https://{index}"))))
        .collect();
    assert_eq!(errors(&json!(many), &AuthnProfile::KUBE), ["jwt TooMany"], "VV1");
    assert_eq!(errors(&json!(many[..64]), &AuthnProfile::KUBE), [""; 0], "VV1");
    let empty = authenticator(|one| one["issuer"]["url"] = json!(""));
    assert_eq!(
        errors(&json!([empty, empty]), &AuthnProfile::KUBE),
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
    let disallowed = ["https://sb".to_owned(), "https://sa".to_owned(), "https://sa?q".to_owned()];
    for (url, said) in [
        (
            "https://sa",
            Some("must not overlap with disallowed issuers: [https://sa https://sa?q https://sb]"),
        ),
        ("https://sa?q", Some("URL must not contain a query")),
        ("https://sa/", None),
    ] {
        let config = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [authenticator(|one| one["issuer"]["url"] = json!(url))],
        });
        let loaded = load_excluding_issuers(config.to_string().as_bytes(), &AuthnProfile::KUBE, &disallowed);
        let found = loaded.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(
            found.contains(said.unwrap_or("")) && found.is_empty() == said.is_none(),
            "VV8 {url}: {found}"
        );
        assert_eq!(
            found.matches("jwt[0].issuer.url").count(),
            said.map_or(0, |_| url.matches('?').count() + 1),
            "{found}"
        );
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
    assert_eq!(errors(&twice, &AuthnProfile::KUBE), ["jwt[1].issuer.discoveryURL Duplicate"], "VV10");
}

// §14.2 VV11–VV16; S29 (VV11), S30 (VV12), S31 (VV13, VV14), S32 (VV15), S33 (VV16)
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

// §14.2 VV17–VV27; S40 (VV23–VV25), S41 (VV26), S44 (VV18, VV19), S46 (VV22)
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

// §14.2 VV28–VV38; S34, S35 (VV28), S36 (VV29), S47 (VV31), S68 (VV36)
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
    // A rule's type is checked before the program is built; only that step rejects the pattern `(`.
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
    assert_eq!(errors_of(&conditions(false), &AuthnProfile::KUBE), ["anonymous.conditions Invalid"], "VV37");
    assert_eq!(errors_of(&conditions(true), &AuthnProfile::KUBE), [""; 0], "VV38");
}

// S16, S18: every error, in the order of the authenticator's fields, and those between authenticators last.
#[test]
fn all_errors_are_reported_in_order() {
    let broken = authenticator(|one| {
        one["userValidationRules"] = json!([{"expression": ""}]);
        one["claimMappings"]["username"] = json!({});
        one["claimValidationRules"] = json!([{}]);
        one["issuer"]["audiences"] = json!([]);
    });
    let parts = [
        "issuer.audiences Required",
        "claimValidationRules[0] Required",
        "claimMappings.username Required",
        "userValidationRules[0].expression Required",
    ];
    let mut expected: Vec<String> = parts.map(str::to_owned).to_vec();
    expected.extend(parts.map(|part| format!("jwt[1].{part}")));
    expected.push("jwt[1].issuer.url Duplicate".to_owned());
    assert_eq!(errors(&json!([broken, broken]), &AuthnProfile::KUBE), expected);
}

// §14.2 VV32–VV35, S48, S49, S50 (VV34, VV35), S51 (VV32), H3
#[test]
fn username_from_email_requires_email_verified() {
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
    assert_eq!(errors(&other, &AuthnProfile::KUBE), broken, "VV32 another authenticator");
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
