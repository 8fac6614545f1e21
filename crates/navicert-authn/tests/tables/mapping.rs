//! §14.5: how claims are mapped.

use navicert_authn::AuthnProfile;
use serde_json::{Value, json};

use super::common::{PROFILES, authenticator, judged};

/// The result of one mapping: the part of the user, or `null` for a rejection.
fn mapped(mapping: &str, value: &Value, members: &str, profile: &AuthnProfile) -> Value {
    let jwt = authenticator(|one| one["claimMappings"][mapping] = value.clone());
    let answer = judged(&jwt, &format!(r#","c":"u"{members}"#), profile);
    answer.get("user").map_or(Value::Null, |user| user[mapping].clone())
}

// §14.5 MV1–MV13; S95 (MV12), S134 (MV1–MV5), S135 (MV6)
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
        // S93: within a list a type counts as its name, alone it does not.
        ("MV7", expression("[type(claims.g)]"), r#","g":1.5"#, json!(["double"]), json!(["double"])),
        ("MV7", expression("string"), "", Value::Null, Value::Null),
        // S94: accepted here in both profiles.
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
        assert_eq!(mapped("groups", &mapping, members, &AuthnProfile::KUBE), kube, "{id} {members} in kube");
        assert_eq!(
            mapped("groups", &mapping, members, &AuthnProfile::HARDENED),
            hardened,
            "{id} {members} in hardened"
        );
    }
}

// §14.5 MV14–MV22; S132 (MV14–MV16), S136 (MV19, MV20), S137 (MV18), S138 (MV21, MV22)
#[test]
fn usernames_uids_and_extra_are_mapped_as_kube_apiserver_maps_them() {
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
        assert_eq!(mapped(mapping, &value, members, &AuthnProfile::KUBE), kube, "{id} {members} in kube");
        assert_eq!(
            mapped(mapping, &value, members, &AuthnProfile::HARDENED),
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
    let credential = |members: &str| mapped("extra", &json!([]), members, &AuthnProfile::KUBE);
    assert_eq!(
        credential(r#","jti":"j1""#),
        json!({"authentication.kubernetes.io/credential-id": ["JTI=j1"]}),
        "MV22"
    );
    for members in [r#","jti":"""#, r#","jti":5"#, r#","jti":null"#, r#","JTI":"j1""#] {
        assert_eq!(credential(members), json!({}), "MV22 {members}");
    }
}

// §14.5 MV23–MV27; S91 (MV27), S139 (MV23, MV24), S284: the same error every time
#[test]
fn rules_reject_in_kube_apiservers_order() {
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
    // S310: the order is the same in both profiles.
    let class = |change: &dyn Fn(&mut Value)| {
        let answers = PROFILES.map(|(_, profile)| judged(&authenticator(change), r#","c":"u""#, &profile));
        assert_eq!(answers[0]["error"], answers[1]["error"]);
        answers[0].clone()
    };
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
