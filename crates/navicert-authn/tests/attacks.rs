//! Hostile tokens in both profiles: what kube-apiserver does with them, and what `hardened` does.

#![expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test's helpers fail by panicking"
)]

use std::sync::{Arc, OnceLock};

use navicert_authn::config::load;
use navicert_authn::jwks::{KeySet, StaticKeys};
use navicert_authn::report::OutcomeReport;
use navicert_authn::{Authenticators, AuthnOutcome, AuthnProfile, AuthnRequest, batch};
use navicert_testkit::pki::jws::{self, Algorithm, SigningKey, encode};
use navicert_testkit::services::issuer::hostile;
use navicert_types::Timestamp;
use serde_json::{Value, json};

const NOW: i64 = 1_800_000_000;

const CONFIG: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n\
    jwt: [{issuer: {url: https://i, audiences: [aud1]}, \
    claimMappings: {username: {claim: username, prefix: ''}, groups: {claim: groups, prefix: ''}}}]\n";

/// Accepted, rejected, no opinion.
const ACCEPTED: &str = "authenticated";
const REJECTED: &str = "rejected";
const NO_OPINION: &str = "no-opinion";

fn key() -> &'static SigningKey {
    static KEY: OnceLock<SigningKey> = OnceLock::new();
    KEY.get_or_init(|| SigningKey::generate(Algorithm::Es256, "k1"))
}

fn outcome(token: &str, jwks: &Value, profile: &AuthnProfile) -> Value {
    batch::eval(&json!({"config": CONFIG, "jwks": jwks, "token": token, "now": NOW}), profile)
}

fn keys() -> Value {
    json!({"keys": [key().jwk()]})
}

/// Checks a table of (name, token, kube, hardened).
fn table(rows: Vec<(&str, String, &str, &str)>) {
    for (name, token, kube, hardened) in rows {
        for (profile, expected) in [(AuthnProfile::KUBE, kube), (AuthnProfile::HARDENED, hardened)] {
            let answer = outcome(&token, &keys(), &profile);
            let word = if profile == AuthnProfile::KUBE { "kube" } else { "hardened" };
            assert_eq!(answer["outcome"], expected, "{name} in {word}: {answer}");
            // Cached headers of earlier tokens change nothing.
            let used = used(&profile);
            for token in [&token, &token] {
                let answer = match used
                    .authenticate(&AuthnRequest::new(token, Timestamp::from_second(NOW).unwrap()))
                {
                    AuthnOutcome::Authenticated(_) => ACCEPTED,
                    AuthnOutcome::Rejected(_) => REJECTED,
                    AuthnOutcome::NoOpinion(_) => NO_OPINION,
                };
                assert_eq!(answer, expected, "{name} in {word}, after another");
            }
        }
    }
}

/// Authenticators that have already accepted a token.
fn used(profile: &AuthnProfile) -> Authenticators {
    let keys = StaticKeys::new(KeySet::parse(keys().to_string().as_bytes(), profile).unwrap());
    let compiled = load(CONFIG.as_bytes(), profile).unwrap().compiled;
    let authenticators = Authenticators::new(compiled, |_| Arc::new(keys.clone()));
    let base = key().token(&claims());
    let first = authenticators.authenticate(&AuthnRequest::new(&base, Timestamp::from_second(NOW).unwrap()));
    assert!(matches!(first, AuthnOutcome::Authenticated(_)), "{first:?}");
    authenticators
}

fn claims() -> Value {
    json!({"iss": "https://i", "aud": "aud1", "exp": NOW + 300, "username": "u"})
}

fn with(name: &str, value: Value) -> String {
    let mut claims = claims();
    claims[name] = value;
    key().token(&claims)
}

/// The base payload with more members, so that names can repeat.
fn payload(more: &str) -> String {
    let text = format!(r#"{{"iss":"https://i","aud":"aud1","exp":{},"username":"u"{more}}}"#, NOW + 300);
    key().token_of_bytes(key().header().to_string().as_bytes(), text.as_bytes())
}

fn header(header: &Value) -> String {
    key().token_with_header(header, &claims())
}

fn headed(name: &str, value: Value) -> String {
    let mut fields = key().header();
    fields[name] = value;
    header(&fields)
}

// A1–A3, A11, TV21–TV23
#[test]
fn algorithms_and_key_ids() {
    let mut rows = vec![("the base token", key().token(&claims()), ACCEPTED, ACCEPTED)];
    for alg in ["none", "None", "es256", "HS256", "EdDSA", ""] {
        rows.push(("alg", header(&json!({"alg": alg, "kid": "k1"})), REJECTED, REJECTED));
        rows.push(("unsigned", jws::unsigned(&json!({"alg": alg}), &claims()), REJECTED, REJECTED));
    }
    rows.extend([
        ("A1, S111: alg null", headed("alg", Value::Null), REJECTED, REJECTED),
        ("S111: alg list", headed("alg", json!(["ES256"])), REJECTED, REJECTED),
        ("no kid", key().token_without_id(&claims()), ACCEPTED, ACCEPTED),
        ("kid empty", headed("kid", json!("")), ACCEPTED, ACCEPTED),
        ("S112: kid null", headed("kid", Value::Null), ACCEPTED, ACCEPTED),
        ("TV22: kid unknown", headed("kid", json!("K1")), REJECTED, REJECTED),
        ("A9, TV22: kid path", headed("kid", json!("../../k1")), REJECTED, REJECTED),
        ("A11, S112: kid number", headed("kid", json!(5)), REJECTED, REJECTED),
        ("A9: kid huge", headed("kid", json!("k".repeat(20_000))), REJECTED, REJECTED),
    ]);
    table(rows);
}

// S104: Google's tokens also state their issuer without a scheme; expressions see what the token says.
#[test]
fn google_has_two_issuer_names() {
    let config = CONFIG.replace("url: https://i,", "url: 'https://accounts.google.com',").replace(
        "claimMappings",
        "claimValidationRules: [{expression: 'claims.iss == \"accounts.google.com\"'}], claimMappings",
    );
    for profile in [AuthnProfile::KUBE, AuthnProfile::HARDENED] {
        for (issuer, expected) in [
            ("accounts.google.com", json!(null)),
            ("https://accounts.google.com", json!("claim_rule")),
            ("accounts.google.com/", json!(null)),
        ] {
            let token = with("iss", json!(issuer));
            let answer =
                batch::eval(&json!({"config": config, "jwks": keys(), "token": token, "now": NOW}), &profile);
            let outcome = if issuer.ends_with('/') {
                NO_OPINION
            } else if expected.is_null() {
                ACCEPTED
            } else {
                REJECTED
            };
            assert_eq!(
                (&answer["outcome"], &answer["class"]),
                (&json!(outcome), &expected),
                "{issuer}: {answer}"
            );
        }
    }
}

// A67: issuers are compared byte by byte.
#[test]
fn issuer_with_a_common_prefix_is_not_matched() {
    let issuers = [
        "https://i.evil",
        "https://i/",
        "https://i/..",
        "https://i/../i",
        "https://I",
        "https://",
        "HTTPS://i",
        "https://i ",
    ];
    let rows = issuers.map(|issuer| (issuer, with("iss", json!(issuer)), NO_OPINION, NO_OPINION));
    table(
        rows.into_iter().chain([("itself", with("iss", json!("https://i")), ACCEPTED, ACCEPTED)]).collect(),
    );
}

// TV24
#[test]
fn signature_with_another_algorithm_name_is_rejected() {
    let key = SigningKey::generate(Algorithm::Rs256, "r1");
    let keys = json!({"keys": [key.jwk()]});
    for profile in [AuthnProfile::KUBE, AuthnProfile::HARDENED] {
        for alg in ["RS384", "RS512", "PS256", "ES256"] {
            let token = key.token_with_header(&json!({"alg": alg, "kid": "r1"}), &claims());
            let answer = outcome(&token, &keys, &profile);
            assert_eq!(
                (&answer["outcome"], &answer["class"]),
                (&json!(REJECTED), &json!("signature")),
                "{alg}: {answer}"
            );
        }
        let token = key.token_with_header(&json!({"alg": "RS256", "kid": "r1"}), &claims());
        assert_eq!(outcome(&token, &keys, &profile)["outcome"], ACCEPTED);
    }
}

// A13–A19, A22, A23, A39, TV25–TV31, H8, H25. Keys in a header are never used, and no URL in it is fetched: this crate
// cannot.
#[test]
fn header_members() {
    let raw = |text: &str| key().token_of_bytes(text.as_bytes(), claims().to_string().as_bytes());
    let certificate_free = json!([]);
    let nested = |depth: usize| (0..depth).fold(json!(1), |inside, _| json!([inside]));
    table(vec![
        ("A13, S113: jwk", headed("jwk", key().jwk()), ACCEPTED, REJECTED),
        ("TV28, S113: jwk garbage", headed("jwk", json!({"kty": "RSA"})), REJECTED, REJECTED),
        ("TV28, S113: jwk symmetric", headed("jwk", json!({"kty": "oct", "k": "AAAA"})), REJECTED, REJECTED),
        ("A14, TV29: jku", headed("jku", json!("https://evil/keys")), ACCEPTED, REJECTED),
        ("A14, TV29: x5u", headed("x5u", json!("https://evil/cert")), ACCEPTED, REJECTED),
        ("A15: x5c empty", headed("x5c", certificate_free), ACCEPTED, REJECTED),
        ("A15, TV30: x5c garbage", headed("x5c", json!(["junk"])), REJECTED, REJECTED),
        ("A16, TV26, S114: crit exp", headed("crit", json!(["exp"])), REJECTED, REJECTED),
        ("A16, TV26: crit text", headed("crit", json!("exp")), REJECTED, REJECTED),
        ("A17, TV26: crit empty", headed("crit", json!([])), ACCEPTED, REJECTED),
        ("A17, TV26: crit null", headed("crit", Value::Null), ACCEPTED, ACCEPTED),
        ("S114: b64 true", headed("b64", json!(true)), ACCEPTED, REJECTED),
        ("b64 false over base64", headed("b64", json!(false)), REJECTED, REJECTED),
        ("TV29: typ JWE", headed("typ", json!("JWE")), ACCEPTED, ACCEPTED),
        ("cty, zip, enc", headed("cty", json!("JWT")), ACCEPTED, ACCEPTED),
        ("TV30, S112: nonce number", headed("nonce", json!(5)), REJECTED, REJECTED),
        ("alg twice", raw(r#"{"alg":"ES256","alg":"ES256","kid":"k1"}"#), REJECTED, REJECTED),
        ("unknown twice", raw(r#"{"alg":"ES256","kid":"k1","x":1,"x":1}"#), REJECTED, REJECTED),
        ("ALG", raw(r#"{"ALG":"ES256","kid":"k1"}"#), REJECTED, REJECTED),
        ("null", raw("null"), REJECTED, REJECTED),
        ("empty", raw(""), REJECTED, REJECTED),
        ("array", raw("[]"), REJECTED, REJECTED),
        ("byte order mark", raw("\u{feff}{\"alg\":\"ES256\"}"), REJECTED, REJECTED),
        ("trailing byte", raw(r#"{"alg":"ES256"}x"#), REJECTED, REJECTED),
        // A23: an access token is distinguished from an ID token by its audience, or by a rule; not by its `typ`.
        ("typ at+jwt", headed("typ", json!("at+jwt")), ACCEPTED, ACCEPTED),
        // A39
        ("nested 7", headed("x", nested(7)), ACCEPTED, ACCEPTED),
        ("nested 8", headed("x", nested(8)), ACCEPTED, REJECTED),
    ]);
}

// A18, TV27, H8
#[test]
fn unencoded_payload_is_accepted_by_kube_only() {
    for header in [
        json!({"alg": "ES256", "kid": "k1", "b64": false}),
        json!({"alg": "ES256", "kid": "k1", "b64": false, "crit": ["b64"]}),
    ] {
        let (header, payload) = (encode(header.to_string().as_bytes()), claims().to_string());
        let signature = key().sign(format!("{header}.{payload}").as_bytes());
        let token = format!("{header}.{}.{}", encode(payload.as_bytes()), encode(&signature));
        table(vec![("b64 false", token, ACCEPTED, REJECTED)]);
    }
}

// A20, A21, TV1–TV3, S130, H7
#[test]
fn duplicate_and_case_variant_claims() {
    let exp = NOW + 300;
    let raw = |text: &str| key().token_of_bytes(key().header().to_string().as_bytes(), text.as_bytes());
    table(vec![
        (
            "other case",
            raw(&format!(r#"{{"Iss":"https://i","AUD":"aud1","eXp":{exp},"username":"u"}}"#)),
            ACCEPTED,
            REJECTED,
        ),
        (
            "TV2, S107: iss bad, good",
            raw(&format!(r#"{{"iss":"x","iss":"https://i","aud":"aud1","exp":{exp},"username":"u"}}"#)),
            ACCEPTED,
            REJECTED,
        ),
        ("TV2, S107: iss good, bad", payload(r#","iss":"x""#), NO_OPINION, NO_OPINION),
        (
            "aud then AUD",
            raw(&format!(r#"{{"iss":"https://i","aud":"x","AUD":"aud1","exp":{exp},"username":"u"}}"#)),
            ACCEPTED,
            REJECTED,
        ),
        (
            "exp then Exp",
            raw(&format!(r#"{{"iss":"https://i","aud":"aud1","exp":1,"Exp":{exp},"username":"u"}}"#)),
            ACCEPTED,
            REJECTED,
        ),
        (
            "long s",
            raw(&format!(r#"{{"iſs":"https://i","aud":"aud1","exp":{exp},"username":"u"}}"#)),
            ACCEPTED,
            REJECTED,
        ),
        ("username twice", payload(r#","username":"v""#), ACCEPTED, REJECTED),
        ("unknown twice", payload(r#","x":1,"x":2"#), ACCEPTED, REJECTED),
    ]);
}

// A31–A37, TV4–TV11, H12
#[test]
fn times() {
    let number = |name: &str, text: &str| {
        let payload = format!(
            r#"{{"iss":"https://i","aud":"aud1","{}":{},"username":"u","{name}":{text}}}"#,
            if name == "exp" { "x" } else { "exp" },
            NOW + 300
        );
        key().token_of_bytes(key().header().to_string().as_bytes(), payload.as_bytes())
    };
    let mut without = claims();
    without.as_object_mut().unwrap().remove("exp");
    table(vec![
        ("A36, TV6: exp missing", key().token(&without), REJECTED, REJECTED),
        ("exp quoted", number("exp", &format!("\"{}\"", NOW + 1)), ACCEPTED, REJECTED),
        ("A32: exp fraction", number("exp", &format!("{}.9", NOW + 1)), ACCEPTED, ACCEPTED),
        ("A32: exp exponent", number("exp", "2.0e9"), ACCEPTED, ACCEPTED),
        ("exp is now", number("exp", &NOW.to_string()), ACCEPTED, ACCEPTED),
        ("exp is past", number("exp", &(NOW - 1).to_string()), REJECTED, REJECTED),
        ("A36, TV6: exp null", number("exp", "null"), REJECTED, REJECTED),
        ("TV6: exp true", number("exp", "true"), REJECTED, REJECTED),
        ("TV6: exp empty", number("exp", "\"\""), REJECTED, REJECTED),
        ("TV6: exp negative", number("exp", "-1"), REJECTED, REJECTED),
        ("TV7: exp last", number("exp", "9223371974719179007"), ACCEPTED, REJECTED),
        ("A34, TV7: exp wraps", number("exp", "9223371974719179008"), REJECTED, REJECTED),
        ("A34, TV7: exp 1e300", number("exp", "1e300"), REJECTED, REJECTED),
        ("TV7: exp 1e400", number("exp", "1e400"), REJECTED, REJECTED),
        ("A33, TV8: exp NaN", number("exp", "NaN"), NO_OPINION, NO_OPINION),
        ("A33, TV8: exp \"NaN\"", number("exp", "\"NaN\""), REJECTED, REJECTED),
        ("TV9, S126: nbf in a minute", number("nbf", &(NOW + 60).to_string()), ACCEPTED, ACCEPTED),
        ("TV9, S126: nbf later", number("nbf", &(NOW + 61).to_string()), REJECTED, REJECTED),
        ("TV9: nbf null", number("nbf", "null"), ACCEPTED, ACCEPTED),
        ("TV9: nbf text", number("nbf", "\"x\""), REJECTED, REJECTED),
        ("A35, TV10, S126: nbf wraps", number("nbf", "9223372036854775807"), ACCEPTED, REJECTED),
        ("A35, TV10: nbf 1e300", number("nbf", "1e300"), ACCEPTED, REJECTED),
        ("A37, S127: iat future", number("iat", &(NOW + 9_999).to_string()), ACCEPTED, ACCEPTED),
        ("iat null", number("iat", "null"), REJECTED, REJECTED),
        ("iat quoted", number("iat", "\"5\""), ACCEPTED, REJECTED),
    ]);
}

/// The token with another last character that decodes to the same 64 bytes: 86 characters have four spare bits.
fn with_trailing_bits(token: &str) -> String {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (rest, last) = token.split_at(token.len() - 1);
    let index = ALPHABET.find(last).unwrap() + 1;
    format!("{rest}{}", &ALPHABET[index..=index])
}

// A26–A30, A41, TV32–TV36, H9
#[test]
fn encodings() {
    let base = key().token(&claims());
    let parts: Vec<&str> = base.split('.').collect();
    let (h, p, s) = (parts[0], parts[1], parts[2]);
    let nested = key().token_of_bytes(key().header().to_string().as_bytes(), base.as_bytes());
    table(vec![
        ("leading blank", format!(" {base}"), ACCEPTED, REJECTED),
        ("trailing newline", format!("{base}\n"), ACCEPTED, REJECTED),
        ("no-break space in the signature", format!("{h}.{p}.\u{a0}{s}"), ACCEPTED, REJECTED),
        ("blank in the header", format!("{} {}.{p}.{s}", &h[..4], &h[4..]), ACCEPTED, REJECTED),
        ("A27: line break in the payload", format!("{h}.{}\r\n{}.{s}", &p[..4], &p[4..]), ACCEPTED, REJECTED),
        ("TV33: blank in the payload", format!("{h}.{} {}.{s}", &p[..4], &p[4..]), NO_OPINION, NO_OPINION),
        ("A28, TV33: padding in the payload", format!("{h}.{p}=.{s}"), NO_OPINION, NO_OPINION),
        ("A28: padding in the signature", format!("{h}.{p}.{s}=="), REJECTED, REJECTED),
        (
            "A28: another alphabet in the signature",
            format!("{h}.{p}.{}+/", &s[..s.len() - 2]),
            REJECTED,
            REJECTED,
        ),
        ("A29, TV35, S115: trailing bits in the signature", with_trailing_bits(&base), ACCEPTED, REJECTED),
        ("no signature", format!("{h}.{p}."), REJECTED, REJECTED),
        ("two parts", format!("{h}.{p}"), NO_OPINION, NO_OPINION),
        ("five parts", format!("{base}.a.b"), NO_OPINION, NO_OPINION),
        ("JSON", format!("{{\"payload\":\"{p}\"}}"), NO_OPINION, NO_OPINION),
        ("nested", nested, NO_OPINION, NO_OPINION),
        ("flipped", jws::with_tampered_signature(&base), REJECTED, REJECTED),
        (
            "another payload",
            jws::with_payload(
                &base,
                &json!({"iss": "https://i", "aud": "aud1", "exp": NOW + 9, "username": "v"}),
            ),
            REJECTED,
            REJECTED,
        ),
    ]);
}

// A38, A40, A49, TV18–TV20
#[test]
fn sizes() {
    let nested = |depth: usize| format!(r#","deep":{}{}"#, "[".repeat(depth), "]".repeat(depth));
    let groups = |count: usize| with("groups", json!(vec!["g"; count]));
    let uuids: Vec<String> = (0..1_000).map(|index| format!("00000000-0000-0000-0000-{index:012}")).collect();
    table(vec![
        ("nested 100", payload(&nested(100)), ACCEPTED, ACCEPTED),
        ("TV19: nested 9000", payload(&nested(9_000)), ACCEPTED, REJECTED),
        ("nested 10001", payload(&nested(10_001)), NO_OPINION, NO_OPINION),
        ("A40, TV19: a large claim", with("x", json!("x".repeat(1 << 20))), ACCEPTED, REJECTED),
        ("1000 groups", with("groups", json!(uuids)), ACCEPTED, ACCEPTED),
        ("10000 groups", groups(10_000), ACCEPTED, ACCEPTED),
        ("10001 groups", groups(10_001), ACCEPTED, REJECTED),
        ("S105: iss with slash", with("iss", json!("https://i/")), NO_OPINION, NO_OPINION),
        ("iss below", with("iss", json!("https://i/..")), NO_OPINION, NO_OPINION),
        ("iss number", with("iss", json!(5)), NO_OPINION, NO_OPINION),
        ("TV20: iss google", with("iss", json!("accounts.google.com")), NO_OPINION, NO_OPINION),
    ]);
}

// A49
#[test]
fn reports_too_many_groups_as_an_identity_that_is_too_large() {
    let token = with("groups", json!(vec!["g"; 10_001]));
    let answer = outcome(&token, &keys(), &AuthnProfile::HARDENED);
    assert_eq!(answer["class"], "identity_too_large", "{answer}");
}

// A42–A45, A48, MV2, MV14, MV16, H13–H15, H17
#[test]
fn identities() {
    let raw = |bytes: &[u8]| {
        let mut text =
            format!(r#"{{"iss":"https://i","aud":"aud1","exp":{},"username":""#, NOW + 300).into_bytes();
        text.extend(bytes);
        text.extend(b"\"}");
        key().token_of_bytes(key().header().to_string().as_bytes(), &text)
    };
    table(vec![
        ("empty name", with("username", json!("")), ACCEPTED, REJECTED),
        ("null name", with("username", Value::Null), ACCEPTED, REJECTED),
        ("NUL", with("username", json!("a\u{0}b")), ACCEPTED, REJECTED),
        ("line break", with("username", json!("a\nb")), ACCEPTED, REJECTED),
        ("blanks", with("username", json!(" u ")), ACCEPTED, REJECTED),
        ("A44: not UTF-8", raw(b"a\xffb"), ACCEPTED, REJECTED),
        ("A44: half a pair", raw(br"a\ud800b"), ACCEPTED, REJECTED),
        ("a real U+FFFD", with("username", json!("a\u{fffd}b")), ACCEPTED, ACCEPTED),
        ("accents", with("username", json!("é")), ACCEPTED, ACCEPTED),
        ("A43: accents apart", with("username", json!("e\u{301}")), ACCEPTED, ACCEPTED),
        ("system user", with("username", json!("system:admin")), ACCEPTED, REJECTED),
        ("system group", with("groups", json!(["system:masters"])), ACCEPTED, REJECTED),
        ("empty group", with("groups", json!(["a", ""])), ACCEPTED, ACCEPTED),
    ]);
    // A43: another spelling is another user.
    let name = |profile| {
        outcome(&with("username", json!("e\u{301}")), &keys(), &profile)["user"]["username"].clone()
    };
    assert_eq!([name(AuthnProfile::KUBE), name(AuthnProfile::HARDENED)], ["e\u{301}", "e\u{301}"]);
    let groups =
        |profile| outcome(&with("groups", json!(["a", ""])), &keys(), &profile)["user"]["groups"].clone();
    assert_eq!(groups(AuthnProfile::KUBE), json!(["a", ""]));
    assert_eq!(groups(AuthnProfile::HARDENED), json!(["a"]));
}

// A59–A61, JV1–JV12, S117, S165, H10, H21
#[test]
fn key_sets() {
    let token = key().token(&claims());
    let changed = |name: &str, value: Value| {
        let mut jwk = key().jwk();
        jwk[name] = value;
        jwk
    };
    let decide = |jwks: &Value, kube: &str, hardened: &str, name: &str| {
        assert_eq!(outcome(&token, jwks, &AuthnProfile::KUBE)["outcome"], kube, "{name} in kube");
        assert_eq!(outcome(&token, jwks, &AuthnProfile::HARDENED)["outcome"], hardened, "{name} in hardened");
    };
    let odd = hostile::odd_keys();
    assert!(odd.iter().any(|odd| odd.poisons) && odd.iter().any(|odd| !odd.poisons));
    // JV4, JV5, JV10, JV12, A8
    for odd in odd {
        let kube = if odd.poisons { REJECTED } else { ACCEPTED };
        decide(&json!({"keys": [odd.jwk, key().jwk()]}), kube, ACCEPTED, odd.name);
    }
    // JV6
    for (name, value) in [
        ("use", json!("enc")),
        ("key_ops", json!(["encrypt"])),
        ("alg", json!("ES512")),
        ("alg", json!("RSA-OAEP")),
    ] {
        decide(&json!({"keys": [changed(name, value)]}), ACCEPTED, REJECTED, name);
    }
    let other = SigningKey::generate(Algorithm::Es256, "k1");
    decide(&json!({"keys": [other.jwk(), key().jwk()]}), ACCEPTED, ACCEPTED, "JV8: same kid twice");
    let decide_without_id = |jwks: &Value| {
        outcome(&key().token_without_id(&claims()), jwks, &AuthnProfile::KUBE)["outcome"].clone()
    };
    let mut nameless = key().jwk();
    nameless.as_object_mut().unwrap().remove("kid");
    let nameless = json!({"keys": [nameless]});
    decide(&nameless, REJECTED, REJECTED, "JV7: a key without kid");
    assert_eq!(decide_without_id(&nameless), ACCEPTED, "JV7");
    decide(&json!({"keys": [changed("d", json!("AAAA"))]}), REJECTED, REJECTED, "JV9: private key");
    for none in [json!({"keys": null}), json!({}), json!("{\"KEYS\":[]}")] {
        decide(&none, REJECTED, REJECTED, "JV2, S164: no keys");
    }
    let spelled = json!({"KEYS": [key().jwk()], "more": 1}).to_string();
    decide(&json!(spelled), ACCEPTED, ACCEPTED, "JV1, S164: another spelling, more members");
    decide(
        &json!({"keys": [changed("x5c", json!([])), changed("x5t", json!(encode(&[0; 20])))]}),
        ACCEPTED,
        ACCEPTED,
        "JV11",
    );
    for body in ["", "[]", "<html>", "{\"keys\":{}}", "{\"keys\":[]} x"] {
        decide(&json!(body), REJECTED, REJECTED, body);
    }
}

// H15 and §13: a rule that forbids empty groups still applies although they are dropped.
#[test]
fn rules_see_groups_before_they_are_dropped() {
    let config = CONFIG.replace(
        "claimMappings",
        "userValidationRules: [{expression: 'user.groups.all(g, g != \"\")'}], claimMappings",
    );
    for profile in [AuthnProfile::KUBE, AuthnProfile::HARDENED] {
        let token = with("groups", json!(["a", ""]));
        let request = json!({"config": config, "jwks": keys(), "token": token, "now": NOW});
        assert_eq!(batch::eval(&request, &profile)["class"], "user_rule");
    }
}

// S73: claims are converted as expressions need them, also for one accessed dynamically beside a static access.
#[test]
fn dynamically_accessed_claim_is_present() {
    for name in [
        "has(claims.sub) ? dyn(claims).username : ''",
        "claims['user' + 'name']",
        "[claims][0].username",
        "claims.?username.orValue('')",
    ] {
        let config = CONFIG.replace(
            "username: {claim: username, prefix: ''}",
            &format!("username: {{expression: \"{name}\"}}"),
        );
        let token = with("sub", json!("s"));
        let request = json!({"config": config, "jwks": keys(), "token": token, "now": NOW});
        assert_eq!(batch::eval(&request, &AuthnProfile::KUBE)["user"]["username"], "u", "{name}");
    }
}

// A65: a bearer token can be replayed until it expires, or until it is revoked.
#[test]
fn replayed_token_is_accepted_until_revoked() {
    use std::sync::Arc;

    use navicert_authn::revocation::{RevocationList, Revocations};
    use navicert_authn::{AuthnOutcome, AuthnRequest};
    use navicert_types::Timestamp;

    let token = with("jti", json!("j1"));
    let now = Timestamp::from_second(NOW).unwrap();
    for profile in [AuthnProfile::KUBE, AuthnProfile::HARDENED] {
        let revocations = Arc::new(Revocations::default());
        let request = json!({"config": CONFIG, "jwks": keys()});
        let authenticators =
            batch::authenticators(&request, &profile).unwrap().with_revocations(Arc::clone(&revocations));
        let judge = || authenticators.authenticate(&AuthnRequest::new(&token, now));
        for _ in 0..2 {
            assert!(matches!(judge(), AuthnOutcome::Authenticated(_)));
        }
        let list =
            "apiVersion: navicert/v1alpha1\nkind: RevocationList\ntokens: [{issuer: https://i, jti: j1}]\n";
        revocations.replace(RevocationList::parse(list.as_bytes()).unwrap());
        assert_eq!(serde_json::to_value(OutcomeReport::from(&judge())).unwrap()["class"], "revoked");
    }
}
