//! §14.6 and attacks that need their own configuration.

use navicert_authn::{AuthnProfile, batch};
use navicert_testkit::pki::jws::{Algorithm, SigningKey};
use serde_json::{Value, json};

use super::common::{HEAD, NOW, PROFILES, authenticator, errors, judged, key};
use super::decoding::decides;
use super::expressions::compiles;

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
    // Of duplicate members the last one counts in kube; hardened requires each once, so `aud` is replaced there.
    let decide = |jwt: &Value, members: &str, audience: Option<&str>| {
        let config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [jwt]});
        let audience = audience.map_or(String::new(), |audience| format!(r#","aud":{audience}"#));
        let payload = format!(r#"{{"iss":"https://i","exp":{},"c":"u"{audience}{members}}}"#, NOW + 300);
        let token = key().token_of_bytes(key().header().to_string().as_bytes(), payload.as_bytes());
        let request = json!({"config": config.to_string(), "jwks": {"keys": [key().jwk()]}, "token": token, "now": NOW});
        let classes = PROFILES.map(|(_, profile)| {
            let answer = batch::eval(&request, &profile);
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

// TV5: with a fraction of a second on the clock, a token expires within the second that `exp` names.
#[test]
fn token_expires_within_the_second_it_names() {
    use navicert_authn::{AuthnOutcome, AuthnRequest};
    use navicert_types::Timestamp;
    let config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [authenticator(|_| {})]});
    let request = json!({"config": config.to_string(), "jwks": {"keys": [key().jwk()]}});
    let token = key().token(&json!({"iss": "https://i", "aud": "a", "exp": NOW, "c": "u"}));
    for (_, profile) in PROFILES {
        let authenticators = batch::authenticators(&request, &profile).unwrap();
        for (nanoseconds, is_good) in [(0, true), (1, false)] {
            let now = Timestamp::new(NOW, nanoseconds).unwrap();
            let outcome = authenticators.authenticate(&AuthnRequest::new(&token, now));
            assert_eq!(matches!(outcome, AuthnOutcome::Authenticated(_)), is_good, "{nanoseconds}");
        }
    }
}

// A50–A54, S302: hostile claims in expressions.
#[test]
fn hostile_claims_do_not_harm_expressions() {
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
    // A53: the pattern comes from the token, so hardened limits it.
    let long = format!(r#","p":"{}""#, "a?".repeat(600));
    let matching = named("'a'.matches(claims.p) ? 'u' : 'v'");
    assert_eq!(judged(&matching, &long, &AuthnProfile::KUBE)["user"]["username"], "u", "A53 in kube");
    assert_eq!(judged(&matching, &long, &AuthnProfile::HARDENED)["class"], "mapping", "A53 in hardened");
    let over_all = authenticator(|one| {
        one["claimValidationRules"] = json!([{"expression": "claims.exists(c, c == 'none')"}]);
    });
    let answer = judged(&over_all, r#","c":"u","__x__":1"#, &AuthnProfile::KUBE);
    assert!(answer["error"].to_string().contains("resulted in error"), "A54 in kube: {answer}");
    assert!(!compiles("rule", "claims.exists(c, c == 'none')", &AuthnProfile::HARDENED), "A54 in hardened");
}

// A12: the profile limits the number of keys.
#[test]
fn token_without_a_kid_tries_a_bounded_number_of_keys() {
    let token = key().token_without_id(&json!({"iss": "https://i", "aud": "a", "exp": NOW + 300, "c": "u"}));
    let config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [authenticator(|_| {})]});
    let other = SigningKey::generate(Algorithm::Es256, "other").jwk();
    for (index, kube, hardened) in [(31, "authenticated", "authenticated"), (32, "authenticated", "rejected")]
    {
        let mut keys = vec![other.clone(); 40];
        keys[index] = key().jwk();
        for ((_, profile), expected) in PROFILES.iter().zip([kube, hardened]) {
            let request =
                json!({"config": config.to_string(), "jwks": {"keys": keys}, "token": token, "now": NOW});
            assert_eq!(batch::eval(&request, profile)["outcome"], expected, "{index}");
        }
    }
}

// A66: a rule for `azp` distinguishes clients that share an audience.
#[test]
fn token_of_another_client_is_rejected_by_audience_or_rule() {
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
fn near_duplicate_issuers_are_valid_and_second_documents_only_in_kube() {
    let twin =
        json!([authenticator(|_| {}), authenticator(|one| one["issuer"]["url"] = json!("https://i/"))]);
    for (name, profile) in PROFILES {
        assert_eq!(errors(&twin, &profile), [""; 0], "A68 in {name}");
    }
    decides("A70", &format!("{HEAD}---\njwt: nonsense\n"), true, false);
    decides("A70", &format!("{HEAD}---\n# nothing\n"), true, true);
}

// A46, A47: hardened rejects names that no header could carry, in any part of a user.
#[test]
fn names_that_no_header_could_carry_are_rejected() {
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
            assert_eq!(judged(&jwt, &members, &AuthnProfile::KUBE)["outcome"], "authenticated", "{value:?}");
            let answer = judged(&jwt, &members, &AuthnProfile::HARDENED);
            assert_eq!(answer["class"], "identity_encoding", "{value:?}: {answer}");
        }
    }
}
