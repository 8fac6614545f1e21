//! Tokens nobody should have to see, in both profiles: what kube-apiserver does with them, and what `hardened` does.

#![expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test's helpers fail by panicking"
)]

use std::sync::{Arc, OnceLock};

use navicert_authn::config::load;
use navicert_authn::jwks::{FixedKeys, KeySet};
use navicert_authn::{Authenticators, Outcome, Profile, Question, batch};
use navicert_testkit::issuer::hostile;
use navicert_testkit::jws::{self, Algorithm, SigningKey, encode};
use navicert_types::Timestamp;
use serde_json::{Value, json};

const NOW: i64 = 1_800_000_000;

const CONFIG: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n\
    jwt: [{issuer: {url: https://i, audiences: [aud1]}, \
    claimMappings: {username: {claim: username, prefix: ''}, groups: {claim: groups, prefix: ''}}}]\n";

/// Accepted, refused, nobody's.
const YES: &str = "authenticated";
const NO: &str = "rejected";
const NOBODY: &str = "no-opinion";

fn key() -> &'static SigningKey {
    static KEY: OnceLock<SigningKey> = OnceLock::new();
    KEY.get_or_init(|| SigningKey::generate(Algorithm::Es256, "k1"))
}

fn outcome(token: &str, jwks: &Value, profile: &Profile) -> Value {
    batch::eval(&json!({"config": CONFIG, "jwks": jwks, "token": token, "now": NOW}), profile)
}

fn keys() -> Value {
    json!({"keys": [key().jwk()]})
}

/// Checks a table of (name, token, kube, hardened).
fn table(rows: Vec<(&str, String, &str, &str)>) {
    for (name, token, kube, hardened) in rows {
        for (profile, expected) in [(Profile::KUBE, kube), (Profile::HARDENED, hardened)] {
            let answer = outcome(&token, &keys(), &profile);
            let word = if profile == Profile::KUBE { "kube" } else { "hardened" };
            assert_eq!(answer["outcome"], expected, "{name} in {word}: {answer}");
            // What its keys remember of earlier tokens changes nothing.
            let used = used(&profile);
            for token in [&token, &token] {
                let answer =
                    match used.authenticate(&Question::new(token, Timestamp::from_second(NOW).unwrap())) {
                        Outcome::Authenticated(_) => YES,
                        Outcome::Rejected(_) => NO,
                        Outcome::NoOpinion(_) => NOBODY,
                    };
                assert_eq!(answer, expected, "{name} in {word}, after another");
            }
        }
    }
}

/// Authenticators that have accepted a token.
fn used(profile: &Profile) -> Authenticators {
    let keys = FixedKeys::new(KeySet::parse(keys().to_string().as_bytes(), profile).unwrap());
    let compiled = load(CONFIG.as_bytes(), profile).unwrap().compiled;
    let authenticators = Authenticators::new(compiled, |_| Arc::new(keys.clone()));
    let base = key().token(&claims());
    let first = authenticators.authenticate(&Question::new(&base, Timestamp::from_second(NOW).unwrap()));
    assert!(matches!(first, Outcome::Authenticated(_)), "{first:?}");
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

/// The base payload with more text inside, so that members can repeat.
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
    let mut rows = vec![("the base token", key().token(&claims()), YES, YES)];
    for alg in ["none", "None", "es256", "HS256", "EdDSA", ""] {
        rows.push(("alg", header(&json!({"alg": alg, "kid": "k1"})), NO, NO));
        rows.push(("unsigned", jws::unsigned(&json!({"alg": alg}), &claims()), NO, NO));
    }
    rows.extend([
        ("A1, S111: alg null", headed("alg", Value::Null), NO, NO),
        ("S111: alg list", headed("alg", json!(["ES256"])), NO, NO),
        ("no kid", key().token_without_id(&claims()), YES, YES),
        ("kid empty", headed("kid", json!("")), YES, YES),
        ("S112: kid null", headed("kid", Value::Null), YES, YES),
        ("TV22: kid unknown", headed("kid", json!("K1")), NO, NO),
        ("A9, TV22: kid path", headed("kid", json!("../../k1")), NO, NO),
        ("A11, S112: kid number", headed("kid", json!(5)), NO, NO),
        ("A9: kid huge", headed("kid", json!("k".repeat(20_000))), NO, NO),
    ]);
    table(rows);
}

// S104: Google's tokens name their issuer in an older way too; expressions see what the token says.
#[test]
fn google_has_two_names() {
    let config = CONFIG.replace("url: https://i,", "url: 'https://accounts.google.com',").replace(
        "claimMappings",
        "claimValidationRules: [{expression: 'claims.iss == \"accounts.google.com\"'}], claimMappings",
    );
    for profile in [Profile::KUBE, Profile::HARDENED] {
        for (issuer, expected) in [
            ("accounts.google.com", json!(null)),
            ("https://accounts.google.com", json!("claim_rule")),
            ("accounts.google.com/", json!(null)),
        ] {
            let token = with("iss", json!(issuer));
            let answer =
                batch::eval(&json!({"config": config, "jwks": keys(), "token": token, "now": NOW}), &profile);
            let outcome = if issuer.ends_with('/') {
                NOBODY
            } else if expected.is_null() {
                YES
            } else {
                NO
            };
            assert_eq!(
                (&answer["outcome"], &answer["class"]),
                (&json!(outcome), &expected),
                "{issuer}: {answer}"
            );
        }
    }
}

// A67: an issuer is its URL, byte by byte.
#[test]
fn an_issuer_that_only_begins_alike_is_nobodys() {
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
    let rows = issuers.map(|issuer| (issuer, with("iss", json!(issuer)), NOBODY, NOBODY));
    table(rows.into_iter().chain([("itself", with("iss", json!("https://i")), YES, YES)]).collect());
}

// TV24
#[test]
fn another_algorithms_name_over_a_signature_is_refused() {
    let key = SigningKey::generate(Algorithm::Rs256, "r1");
    let keys = json!({"keys": [key.jwk()]});
    for profile in [Profile::KUBE, Profile::HARDENED] {
        for alg in ["RS384", "RS512", "PS256", "ES256"] {
            let token = key.token_with_header(&json!({"alg": alg, "kid": "r1"}), &claims());
            let answer = outcome(&token, &keys, &profile);
            assert_eq!(
                (&answer["outcome"], &answer["class"]),
                (&json!(NO), &json!("signature")),
                "{alg}: {answer}"
            );
        }
        let token = key.token_with_header(&json!({"alg": "RS256", "kid": "r1"}), &claims());
        assert_eq!(outcome(&token, &keys, &profile)["outcome"], YES);
    }
}

// A13–A19, A22, A23, A39, TV25–TV31, H8, H25. Keys of a header are never used, and no address in it is asked: this crate has
// no way to.
#[test]
fn header_members() {
    let raw = |text: &str| key().token_of_bytes(text.as_bytes(), claims().to_string().as_bytes());
    let certificate_free = json!([]);
    let nested = |depth: usize| (0..depth).fold(json!(1), |inside, _| json!([inside]));
    table(vec![
        ("A13, S113: jwk", headed("jwk", key().jwk()), YES, NO),
        ("TV28, S113: jwk garbage", headed("jwk", json!({"kty": "RSA"})), NO, NO),
        ("TV28, S113: jwk symmetric", headed("jwk", json!({"kty": "oct", "k": "AAAA"})), NO, NO),
        ("A14, TV29: jku", headed("jku", json!("https://evil/keys")), YES, NO),
        ("A14, TV29: x5u", headed("x5u", json!("https://evil/cert")), YES, NO),
        ("A15: x5c empty", headed("x5c", certificate_free), YES, NO),
        ("A15, TV30: x5c garbage", headed("x5c", json!(["junk"])), NO, NO),
        ("A16, TV26, S114: crit exp", headed("crit", json!(["exp"])), NO, NO),
        ("A16, TV26: crit text", headed("crit", json!("exp")), NO, NO),
        ("A17, TV26: crit empty", headed("crit", json!([])), YES, NO),
        ("A17, TV26: crit null", headed("crit", Value::Null), YES, YES),
        ("S114: b64 true", headed("b64", json!(true)), YES, NO),
        ("b64 false over base64", headed("b64", json!(false)), NO, NO),
        ("TV29: typ JWE", headed("typ", json!("JWE")), YES, YES),
        ("cty, zip, enc", headed("cty", json!("JWT")), YES, YES),
        ("TV30, S112: nonce number", headed("nonce", json!(5)), NO, NO),
        ("alg twice", raw(r#"{"alg":"ES256","alg":"ES256","kid":"k1"}"#), NO, NO),
        ("unknown twice", raw(r#"{"alg":"ES256","kid":"k1","x":1,"x":1}"#), NO, NO),
        ("ALG", raw(r#"{"ALG":"ES256","kid":"k1"}"#), NO, NO),
        ("null", raw("null"), NO, NO),
        ("empty", raw(""), NO, NO),
        ("array", raw("[]"), NO, NO),
        ("byte order mark", raw("\u{feff}{\"alg\":\"ES256\"}"), NO, NO),
        ("trailing byte", raw(r#"{"alg":"ES256"}x"#), NO, NO),
        // A23: an access token is told from an ID token by its audience, or by a rule; not by its `typ`.
        ("typ at+jwt", headed("typ", json!("at+jwt")), YES, YES),
        // A39
        ("nested 7", headed("x", nested(7)), YES, YES),
        ("nested 8", headed("x", nested(8)), YES, NO),
    ]);
}

// A18, TV27, H8
#[test]
fn an_unencoded_payload_is_a_quirk_of_kube() {
    for header in [
        json!({"alg": "ES256", "kid": "k1", "b64": false}),
        json!({"alg": "ES256", "kid": "k1", "b64": false, "crit": ["b64"]}),
    ] {
        let (header, payload) = (encode(header.to_string().as_bytes()), claims().to_string());
        let signature = key().sign(format!("{header}.{payload}").as_bytes());
        let token = format!("{header}.{}.{}", encode(payload.as_bytes()), encode(&signature));
        table(vec![("b64 false", token, YES, NO)]);
    }
}

// A20, A21, TV1–TV3, S130, H7
#[test]
fn repeated_and_case_variant_claims() {
    let exp = NOW + 300;
    let raw = |text: &str| key().token_of_bytes(key().header().to_string().as_bytes(), text.as_bytes());
    table(vec![
        (
            "other case",
            raw(&format!(r#"{{"Iss":"https://i","AUD":"aud1","eXp":{exp},"username":"u"}}"#)),
            YES,
            NO,
        ),
        (
            "TV2, S107: iss bad, good",
            raw(&format!(r#"{{"iss":"x","iss":"https://i","aud":"aud1","exp":{exp},"username":"u"}}"#)),
            YES,
            NO,
        ),
        ("TV2, S107: iss good, bad", payload(r#","iss":"x""#), NOBODY, NOBODY),
        (
            "aud then AUD",
            raw(&format!(r#"{{"iss":"https://i","aud":"x","AUD":"aud1","exp":{exp},"username":"u"}}"#)),
            YES,
            NO,
        ),
        (
            "exp then Exp",
            raw(&format!(r#"{{"iss":"https://i","aud":"aud1","exp":1,"Exp":{exp},"username":"u"}}"#)),
            YES,
            NO,
        ),
        (
            "long s",
            raw(&format!(r#"{{"iſs":"https://i","aud":"aud1","exp":{exp},"username":"u"}}"#)),
            YES,
            NO,
        ),
        ("username twice", payload(r#","username":"v""#), YES, NO),
        ("unknown twice", payload(r#","x":1,"x":2"#), YES, NO),
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
        ("A36, TV6: exp missing", key().token(&without), NO, NO),
        ("exp quoted", number("exp", &format!("\"{}\"", NOW + 1)), YES, NO),
        ("A32: exp fraction", number("exp", &format!("{}.9", NOW + 1)), YES, YES),
        ("A32: exp exponent", number("exp", "2.0e9"), YES, YES),
        ("exp is now", number("exp", &NOW.to_string()), YES, YES),
        ("exp is past", number("exp", &(NOW - 1).to_string()), NO, NO),
        ("A36, TV6: exp null", number("exp", "null"), NO, NO),
        ("TV6: exp true", number("exp", "true"), NO, NO),
        ("TV6: exp empty", number("exp", "\"\""), NO, NO),
        ("TV6: exp negative", number("exp", "-1"), NO, NO),
        ("TV7: exp last", number("exp", "9223371974719179007"), YES, NO),
        ("A34, TV7: exp wraps", number("exp", "9223371974719179008"), NO, NO),
        ("A34, TV7: exp 1e300", number("exp", "1e300"), NO, NO),
        ("TV7: exp 1e400", number("exp", "1e400"), NO, NO),
        ("A33, TV8: exp NaN", number("exp", "NaN"), NOBODY, NOBODY),
        ("A33, TV8: exp \"NaN\"", number("exp", "\"NaN\""), NO, NO),
        ("TV9, S126: nbf in a minute", number("nbf", &(NOW + 60).to_string()), YES, YES),
        ("TV9, S126: nbf later", number("nbf", &(NOW + 61).to_string()), NO, NO),
        ("TV9: nbf null", number("nbf", "null"), YES, YES),
        ("TV9: nbf text", number("nbf", "\"x\""), NO, NO),
        ("A35, TV10, S126: nbf wraps", number("nbf", "9223372036854775807"), YES, NO),
        ("A35, TV10: nbf 1e300", number("nbf", "1e300"), YES, NO),
        ("A37, S127: iat future", number("iat", &(NOW + 9_999).to_string()), YES, YES),
        ("iat null", number("iat", "null"), NO, NO),
        ("iat quoted", number("iat", "\"5\""), YES, NO),
    ]);
}

/// The token with another last character, which decodes to the same 64 bytes: 86 characters have four bits to spare.
fn with_trailing_bits(token: &str) -> String {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (rest, last) = token.split_at(token.len() - 1);
    let place = ALPHABET.find(last).unwrap() + 1;
    format!("{rest}{}", &ALPHABET[place..=place])
}

// A26–A30, A41, TV32–TV36, H9
#[test]
fn texts() {
    let base = key().token(&claims());
    let parts: Vec<&str> = base.split('.').collect();
    let (h, p, s) = (parts[0], parts[1], parts[2]);
    let nested = key().token_of_bytes(key().header().to_string().as_bytes(), base.as_bytes());
    table(vec![
        ("leading blank", format!(" {base}"), YES, NO),
        ("trailing newline", format!("{base}\n"), YES, NO),
        ("no-break space in the signature", format!("{h}.{p}.\u{a0}{s}"), YES, NO),
        ("blank in the header", format!("{} {}.{p}.{s}", &h[..4], &h[4..]), YES, NO),
        ("A27: line break in the payload", format!("{h}.{}\r\n{}.{s}", &p[..4], &p[4..]), YES, NO),
        ("TV33: blank in the payload", format!("{h}.{} {}.{s}", &p[..4], &p[4..]), NOBODY, NOBODY),
        ("A28, TV33: padding in the payload", format!("{h}.{p}=.{s}"), NOBODY, NOBODY),
        ("A28: padding in the signature", format!("{h}.{p}.{s}=="), NO, NO),
        ("A28: another alphabet in the signature", format!("{h}.{p}.{}+/", &s[..s.len() - 2]), NO, NO),
        ("A29, TV35, S115: trailing bits in the signature", with_trailing_bits(&base), YES, NO),
        ("no signature", format!("{h}.{p}."), NO, NO),
        ("two parts", format!("{h}.{p}"), NOBODY, NOBODY),
        ("five parts", format!("{base}.a.b"), NOBODY, NOBODY),
        ("JSON", format!("{{\"payload\":\"{p}\"}}"), NOBODY, NOBODY),
        ("nested", nested, NOBODY, NOBODY),
        ("flipped", jws::with_tampered_signature(&base), NO, NO),
        (
            "another payload",
            jws::with_payload(
                &base,
                &json!({"iss": "https://i", "aud": "aud1", "exp": NOW + 9, "username": "v"}),
            ),
            NO,
            NO,
        ),
    ]);
}

// A38, A40, A49, TV18–TV20
#[test]
fn sizes() {
    let nested = |depth: usize| format!(r#","deep":{}{}"#, "[".repeat(depth), "]".repeat(depth));
    let groups: Vec<String> = (0..1_001).map(|index| format!("g{index}")).collect();
    table(vec![
        ("nested 100", payload(&nested(100)), YES, YES),
        ("TV19: nested 9000", payload(&nested(9_000)), YES, NO),
        ("nested 10001", payload(&nested(10_001)), NOBODY, NOBODY),
        ("A40, TV19: a large claim", with("x", json!("x".repeat(1 << 20))), YES, NO),
        ("1000 groups", with("groups", json!(groups[..1_000])), YES, YES),
        ("1001 groups", with("groups", json!(groups)), YES, NO),
        ("S105: iss with slash", with("iss", json!("https://i/")), NOBODY, NOBODY),
        ("iss below", with("iss", json!("https://i/..")), NOBODY, NOBODY),
        ("iss number", with("iss", json!(5)), NOBODY, NOBODY),
        ("TV20: iss google", with("iss", json!("accounts.google.com")), NOBODY, NOBODY),
    ]);
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
        ("empty name", with("username", json!("")), YES, NO),
        ("null name", with("username", Value::Null), YES, NO),
        ("NUL", with("username", json!("a\u{0}b")), YES, NO),
        ("line break", with("username", json!("a\nb")), YES, NO),
        ("blanks", with("username", json!(" u ")), YES, NO),
        ("A44: not UTF-8", raw(b"a\xffb"), YES, NO),
        ("A44: half a pair", raw(br"a\ud800b"), YES, NO),
        ("a real U+FFFD", with("username", json!("a\u{fffd}b")), YES, YES),
        ("accents", with("username", json!("é")), YES, YES),
        ("A43: accents apart", with("username", json!("e\u{301}")), YES, YES),
        ("system user", with("username", json!("system:admin")), YES, NO),
        ("system group", with("groups", json!(["system:masters"])), YES, NO),
        ("empty group", with("groups", json!(["a", ""])), YES, YES),
    ]);
    // A43: another spelling is another user.
    let name = |profile| {
        outcome(&with("username", json!("e\u{301}")), &keys(), &profile)["user"]["username"].clone()
    };
    assert_eq!([name(Profile::KUBE), name(Profile::HARDENED)], ["e\u{301}", "e\u{301}"]);
    let groups =
        |profile| outcome(&with("groups", json!(["a", ""])), &keys(), &profile)["user"]["groups"].clone();
    assert_eq!(groups(Profile::KUBE), json!(["a", ""]));
    assert_eq!(groups(Profile::HARDENED), json!(["a"]));
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
        assert_eq!(outcome(&token, jwks, &Profile::KUBE)["outcome"], kube, "{name} in kube");
        assert_eq!(outcome(&token, jwks, &Profile::HARDENED)["outcome"], hardened, "{name} in hardened");
    };
    let odd = hostile::odd_keys();
    assert!(odd.iter().any(|odd| odd.poisons) && odd.iter().any(|odd| !odd.poisons));
    // JV4, JV5, JV10, JV12, A8
    for odd in odd {
        let kube = if odd.poisons { NO } else { YES };
        decide(&json!({"keys": [odd.jwk, key().jwk()]}), kube, YES, odd.name);
    }
    // JV6
    for (name, value) in [
        ("use", json!("enc")),
        ("key_ops", json!(["encrypt"])),
        ("alg", json!("ES512")),
        ("alg", json!("RSA-OAEP")),
    ] {
        decide(&json!({"keys": [changed(name, value)]}), YES, NO, name);
    }
    let other = SigningKey::generate(Algorithm::Es256, "k1");
    decide(&json!({"keys": [other.jwk(), key().jwk()]}), YES, YES, "JV8: same kid twice");
    let decide_without_id =
        |jwks: &Value| outcome(&key().token_without_id(&claims()), jwks, &Profile::KUBE)["outcome"].clone();
    let mut nameless = key().jwk();
    nameless.as_object_mut().unwrap().remove("kid");
    let nameless = json!({"keys": [nameless]});
    decide(&nameless, NO, NO, "JV7: a key without kid");
    assert_eq!(decide_without_id(&nameless), YES, "JV7");
    decide(&json!({"keys": [changed("d", json!("AAAA"))]}), NO, NO, "JV9: private key");
    for none in [json!({"keys": null}), json!({}), json!("{\"KEYS\":[]}")] {
        decide(&none, NO, NO, "JV2, S164: no keys");
    }
    let spelled = json!({"KEYS": [key().jwk()], "more": 1}).to_string();
    decide(&json!(spelled), YES, YES, "JV1, S164: another spelling, more members");
    decide(
        &json!({"keys": [changed("x5c", json!([])), changed("x5t", json!(encode(&[0; 20])))]}),
        YES,
        YES,
        "JV11",
    );
    for body in ["", "[]", "<html>", "{\"keys\":{}}", "{\"keys\":[]} x"] {
        decide(&json!(body), NO, NO, body);
    }
}

// H15 and §13: a rule that forbids empty groups is not tricked by their being dropped.
#[test]
fn a_rule_sees_the_groups_that_are_dropped_afterwards() {
    let config = CONFIG.replace(
        "claimMappings",
        "userValidationRules: [{expression: 'user.groups.all(g, g != \"\")'}], claimMappings",
    );
    for profile in [Profile::KUBE, Profile::HARDENED] {
        let token = with("groups", json!(["a", ""]));
        let question = json!({"config": config, "jwks": keys(), "token": token, "now": NOW});
        assert_eq!(batch::eval(&question, &profile)["class"], "user_rule");
    }
}

// S73: claims are converted as expressions need them, also when one is reached in an odd way beside a usual one.
#[test]
fn a_claim_reached_in_an_odd_way_is_there() {
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
        let question = json!({"config": config, "jwks": keys(), "token": token, "now": NOW});
        assert_eq!(batch::eval(&question, &Profile::KUBE)["user"]["username"], "u", "{name}");
    }
}

// A65: a bearer token can be used again until it expires, or until it is on the list.
#[test]
fn a_replayed_token_is_good_until_it_is_revoked() {
    use std::sync::Arc;

    use navicert_authn::revocation::{RevocationList, Revocations};
    use navicert_authn::{Outcome, Question};
    use navicert_types::Timestamp;

    let token = with("jti", json!("j1"));
    let now = Timestamp::from_second(NOW).unwrap();
    for profile in [Profile::KUBE, Profile::HARDENED] {
        let revocations = Arc::new(Revocations::default());
        let question = json!({"config": CONFIG, "jwks": keys()});
        let authenticators =
            batch::authenticators(&question, &profile).unwrap().with_revocations(Arc::clone(&revocations));
        let judge = || authenticators.authenticate(&Question::new(&token, now));
        for _ in 0..2 {
            assert!(matches!(judge(), Outcome::Authenticated(_)));
        }
        let list =
            "apiVersion: navicert/v1alpha1\nkind: RevocationList\ntokens: [{issuer: https://i, jti: j1}]\n";
        revocations.replace(RevocationList::parse(list.as_bytes()).unwrap());
        assert_eq!(batch::answer(&judge())["class"], "revoked");
    }
}
