//! Every rule of profile `hardened` is a switch that changes something: for each, one thing that goes one way without
//! it and the other way with it, everything else as kube-apiserver does it.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use navicert_authn::config::{CompiledIssuer, NavicertConfiguration, Reloader, Sources, load};
use navicert_authn::jwks::{
    Around, FetchLimits, FixedKeys, Keeper, KeySet, Keys, Refreshed, ScriptedFetch, Stage, Wanted,
};
use navicert_authn::{Authenticators, Outcome, Profile, Question, Rule};
use navicert_testkit::jws::{Algorithm, SigningKey};
use navicert_types::clock::ManualClock;
use serde_json::{Value, json};

const NOW: i64 = 1_700_000_000;

fn config(change: impl FnOnce(&mut Value)) -> Value {
    let mut jwt = json!({
        "issuer": {"url": "https://i", "audiences": ["aud1"]},
        "claimMappings": {"username": {"claim": "username", "prefix": ""}, "groups": {"claim": "groups", "prefix": ""}},
    });
    change(&mut jwt);
    json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [jwt]})
}

fn payload(change: impl FnOnce(&mut Value)) -> Value {
    let mut claims = json!({"iss": "https://i", "aud": "aud1", "exp": NOW + 300, "username": "u"});
    change(&mut claims);
    claims
}

fn key() -> SigningKey {
    static KEY: std::sync::OnceLock<SigningKey> = std::sync::OnceLock::new();
    KEY.get_or_init(|| SigningKey::generate(Algorithm::Es256, "k1")).clone()
}

fn jwks(change: impl FnOnce(&mut Value)) -> Value {
    let mut keys = json!({"keys": [key().jwk()]});
    change(&mut keys);
    keys
}

/// Whether a configuration is taken.
fn is_valid(text: &str, profile: &Profile) -> bool {
    load(text.as_bytes(), profile).is_ok()
}

/// What becomes of a token.
fn outcome(config: &Value, jwks: &Value, token: &str, profile: &Profile) -> String {
    let compiled = load(config.to_string().as_bytes(), profile).unwrap().compiled;
    let keys = match KeySet::parse(jwks.to_string().as_bytes(), profile) {
        Ok(keys) => FixedKeys::new(keys),
        Err(error) => {
            FixedKeys::unavailable(navicert_authn::jwks::KeysUnavailable::Failed(error.to_string()))
        }
    };
    let authenticators = Authenticators::new(compiled, |_| Arc::new(keys.clone()));
    described(
        &authenticators
            .authenticate(&Question::new(token, navicert_types::Timestamp::from_second(NOW).unwrap())),
    )
}

fn described(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Authenticated(user) => format!("{} {:?}", user.username(), user.groups()),
        Outcome::NoOpinion(why) => why.to_string(),
        Outcome::Rejected(why) => format!("rejected: {}", why.refusal.class()),
    }
}

/// What becomes of a token with these claims.
fn claimed(claims: &Value, profile: &Profile) -> String {
    outcome(&config(|_| {}), &jwks(|_| {}), &key().token(claims), profile)
}

/// With an expression for the user's name.
fn expressed(expression: &str, profile: &Profile) -> bool {
    let named = config(|jwt| jwt["claimMappings"]["username"] = json!({ "expression": expression }));
    is_valid(&named.to_string(), profile)
}

fn headed(change: impl FnOnce(&mut Value), profile: &Profile) -> String {
    let mut header = json!({"alg": "ES256", "kid": "k1"});
    change(&mut header);
    let token = key().token_of_bytes(header.to_string().as_bytes(), payload(|_| {}).to_string().as_bytes());
    outcome(&config(|_| {}), &jwks(|_| {}), &token, profile)
}

struct Kept {
    fetch: Arc<ScriptedFetch>,
    keeper: Keeper,
}

fn kept(profile: &Profile) -> Kept {
    let (fetch, clock) = (Arc::new(ScriptedFetch::default()), Arc::new(ManualClock::at(NOW)));
    let around = around(&fetch, &clock);
    let issuer = load(config(|_| {}).to_string().as_bytes(), profile)
        .unwrap()
        .compiled
        .authenticators
        .remove(0)
        .issuer;
    fetch.answer(
        "https://i/.well-known/openid-configuration",
        200,
        r#"{"issuer": "https://i", "jwks_uri": "https://i/keys"}"#,
    );
    fetch.answer("https://i/keys", 200, &jwks(|_| {}).to_string());
    Kept { keeper: Keeper::new(issuer, *profile, around), fetch }
}

fn around(fetch: &Arc<ScriptedFetch>, clock: &Arc<ManualClock>) -> Around {
    Around {
        fetch: Arc::clone(fetch) as _,
        clock: Arc::clone(clock) as _,
        random: Arc::new(|| 0.5),
        recorder: Arc::new(()),
    }
}

/// What a rule does, shown as two texts: without it, and with it.
async fn shown(rule: Rule, profile: &Profile) -> String {
    let accepted = |yes: bool| (if yes { "taken" } else { "refused" }).to_owned();
    match rule {
        Rule::H1 => accepted(is_valid(&format!("---\n{}\n---\na: 1\n", config(|_| {})), profile)),
        Rule::H2 => accepted(is_valid(
            &config(|jwt| jwt["issuer"]["url"] = json!("https:opaque")).to_string(),
            profile,
        )),
        Rule::H3 => accepted(expressed(r#"claims["email"]"#, profile)),
        // The other way round: it takes more.
        Rule::H4 => accepted(!expressed("cel.bind(x, claims.sub, x + x)", profile)),
        Rule::H5 => accepted(expressed(r#"claims.exists(k, k == "s") ? "a" : "b""#, profile)),
        // S90: without it an expression runs on, whatever the clock says.
        Rule::H6 => deadline(profile).await,
        Rule::H7 => {
            let claims = r#"{"iss":"https://i","aud":"bad","AUD":"aud1","exp":1700000009,"username":"u"}"#;
            let token = key().token_of_bytes(br#"{"alg":"ES256","kid":"k1"}"#, claims.as_bytes());
            outcome(&config(|_| {}), &jwks(|_| {}), &token, profile)
        }
        Rule::H8 => headed(|header| header["crit"] = json!([]), profile),
        Rule::H9 => {
            let token = format!(" {}", key().token(&payload(|_| {})));
            outcome(&config(|_| {}), &jwks(|_| {}), &token, profile)
        }
        Rule::H10 => {
            let keys = jwks(|keys| keys["keys"][0]["use"] = json!("enc"));
            outcome(&config(|_| {}), &keys, &key().token(&payload(|_| {})), profile)
        }
        Rule::H11 => weak_key(profile),
        Rule::H12 => claimed(&payload(|claims| claims["exp"] = json!(format!("{}", NOW + 5))), profile),
        Rule::H13 => claimed(&payload(|claims| claims["username"] = json!("")), profile),
        Rule::H14 => claimed(&payload(|claims| claims["username"] = json!("a\u{7}b")), profile),
        Rule::H15 => claimed(&payload(|claims| claims["groups"] = json!(["a", ""])), profile),
        // Errors hold no claim values in either profile: there is nothing to switch, see `outcome.rs`.
        Rule::H16 => {
            let required = config(|jwt| {
                jwt["claimValidationRules"] = json!([{"claim": "hd", "requiredValue": "want"}]);
            });
            let compiled = load(required.to_string().as_bytes(), profile).unwrap().compiled;
            let keys = KeySet::parse(jwks(|_| {}).to_string().as_bytes(), profile).unwrap();
            let keys = FixedKeys::new(keys);
            let authenticators = Authenticators::new(compiled, |_| Arc::new(keys.clone()));
            let token = key().token(&payload(|claims| claims["hd"] = json!("s3cret")));
            let now = navicert_types::Timestamp::from_second(NOW).unwrap();
            let text = format!("{:?}", authenticators.authenticate(&Question::new(&token, now)));
            assert!(!text.contains("s3cret"), "{text}");
            format!("{}", profile.has(Rule::H16))
        }
        Rule::H17 => claimed(&payload(|claims| claims["groups"] = json!(["system:masters"])), profile),
        Rule::H18 => format!("{}", FetchLimits::of(profile).bytes == 1 << 20),
        Rule::H19 => {
            let rig = kept(profile);
            let plain = r#"{"issuer": "https://i", "jwks_uri": "http://i/keys"}"#;
            rig.fetch.answer("https://i/.well-known/openid-configuration", 200, plain);
            rig.keeper.tend().await;
            accepted(rig.keeper.health().is_discovered)
        }
        Rule::H20 => {
            let rig = kept(profile);
            rig.fetch.fail("https://i/.well-known/openid-configuration", Stage::Connect);
            format!("again in {:?}", rig.keeper.tend().await)
        }
        Rule::H21 => {
            let keys = jwks(|keys| keys["keys"].as_array_mut().unwrap().push(json!({"kty": "odd"})));
            outcome(&config(|_| {}), &keys, &key().token(&payload(|_| {})), profile)
        }
        Rule::H22 => {
            let rig = kept(profile);
            rig.keeper.tend().await;
            let first = rig.keeper.refresh(Wanted::Signature, rig.keeper.version()).await == Refreshed::Newer;
            format!("keys are asked for by a token: {first}")
        }
        Rule::H23 => distributed(profile).await,
        Rule::H24 => format!("keys kept over a reload: {}", reloaded(profile).await),
        Rule::H25 => headed(|header| header["jku"] = json!("https://evil"), profile),
    }
}

/// An expression that costs a lot, and a clock on which every look takes a second.
async fn deadline(profile: &Profile) -> String {
    #[derive(Debug)]
    struct Hasty(ManualClock);
    impl navicert_types::Clock for Hasty {
        fn now(&self) -> navicert_types::Timestamp {
            self.0.now()
        }
        fn monotonic(&self) -> Duration {
            self.0.advance(Duration::from_millis(700));
            self.0.set_wall(navicert_types::Timestamp::from_second(NOW).unwrap());
            self.0.monotonic()
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let slow = config(|jwt| {
        let expression = "dyn(claims.list).all(a, dyn(claims.list).all(b, a == b))";
        jwt["claimValidationRules"] = json!([{"expression": expression, "message": "no"}]);
    });
    let side_car = json!({
        "apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration", "profile": "kube",
        "rules": {"H6": profile.has(Rule::H6)},
        "issuers": [{"url": "https://i", "jwksFile": folder.path().join("keys.json")}],
    });
    let write =
        |name: &str, value: &Value| std::fs::write(folder.path().join(name), value.to_string()).unwrap();
    write("config.yaml", &slow);
    write("navicert.yaml", &side_car);
    write("keys.json", &jwks(|_| {}));
    let sources = Sources {
        config: folder.path().join("config.yaml").into(),
        side_car: Some(folder.path().join("navicert.yaml")),
        profile: None,
    };
    let fetch = Arc::new(ScriptedFetch::default());
    let around = Around {
        clock: Arc::new(Hasty(ManualClock::at(NOW))),
        ..around(&fetch, &Arc::new(ManualClock::at(NOW)))
    };
    let reloader = Reloader::open(sources, around).unwrap();
    let list: Vec<u32> = vec![1; 200];
    let token = key().token(&payload(|claims| claims["list"] = json!(list)));
    described(&reloader.live().authenticate(&token).await)
}

/// A signature that only profile `kube` takes, made by another library.
fn weak_key(profile: &Profile) -> String {
    let rare: Value = serde_json::from_str(include_str!("data/rare-signatures.json")).unwrap();
    let tokens = rare["tokens"].as_array().unwrap();
    let token = tokens.iter().find(|token| token["kube"] == true && token["hardened"] == false).unwrap();
    let config = "apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt: [{issuer: {url: \
        https://issuer.example.com, audiences: [kube]}, claimMappings: {username: {claim: sub, prefix: ''}}}]
";
    let question =
        json!({"config": config, "jwks": rare["jwks"], "token": token["token"], "now": 1_800_000_000});
    navicert_authn::batch::eval(&question, profile)["outcome"].to_string()
}

/// Whether groups are fetched over http.
async fn distributed(profile: &Profile) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (fetch, clock) = (Arc::new(ScriptedFetch::default()), Arc::new(ManualClock::at(NOW)));
    let side_car = json!({
        "apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration", "profile": "kube",
        "rules": {"H23": profile.has(Rule::H23)},
        "issuers": [{"url": "https://i", "jwksFile": folder.path().join("keys.json")}],
    });
    let write =
        |name: &str, value: &Value| std::fs::write(folder.path().join(name), value.to_string()).unwrap();
    write("config.yaml", &config(|_| {}));
    write("navicert.yaml", &side_car);
    write("keys.json", &jwks(|_| {}));
    let sources = Sources {
        config: folder.path().join("config.yaml").into(),
        side_car: Some(folder.path().join("navicert.yaml")),
        profile: None,
    };
    let reloader = Reloader::open(sources, around(&fetch, &clock)).unwrap();
    let token = key().token(&payload(|claims| {
        claims["_claim_names"] = json!({"groups": "s"});
        claims["_claim_sources"] = json!({"s": {"endpoint": "http://somewhere/groups"}});
    }));
    reloader.live().authenticate(&token).await;
    format!("asked {} times", fetch.count("http://somewhere/groups"))
}

async fn reloaded(profile: &Profile) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let (fetch, clock) = (Arc::new(ScriptedFetch::default()), Arc::new(ManualClock::at(NOW)));
    let write =
        |name: &str, value: &Value| std::fs::write(folder.path().join(name), value.to_string()).unwrap();
    write("config.yaml", &config(|_| {}));
    let rules = json!({"H24": profile.has(Rule::H24)});
    write(
        "navicert.yaml",
        &json!({
            "apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration", "profile": "kube", "rules": rules,
        }),
    );
    let sources = Sources {
        config: folder.path().join("config.yaml").into(),
        side_car: Some(folder.path().join("navicert.yaml")),
        profile: None,
    };
    let document = r#"{"issuer": "https://i", "jwks_uri": "https://i/keys"}"#;
    fetch.answer("https://i/.well-known/openid-configuration", 200, document);
    let reloader = Reloader::open(sources, around(&fetch, &clock)).unwrap();
    let before = reloader.live().keepers();
    before[0].tend().await;
    write("config.yaml", &config(|jwt| jwt["claimMappings"]["username"]["prefix"] = json!("new:")));
    reloader.tend().await;
    Arc::ptr_eq(&before[0], &reloader.live().keepers()[0])
}

// §13
#[tokio::test]
async fn every_rule_is_a_switch_that_changes_something() {
    let mut shown_rules = Vec::new();
    for rule in Rule::ALL {
        let without = shown(rule, &Profile::KUBE).await;
        let with = shown(rule, &Profile::KUBE.with(rule, true)).await;
        assert_ne!(without, with, "{rule}");
        shown_rules.push(format!("{rule}: {without} → {with}"));
    }
    let expected = [
        "H1: taken → refused",
        "H2: taken → refused",
        "H3: taken → refused",
        "H4: taken → refused",
        "H5: taken → refused",
        "H6: u [] → rejected: cost",
        "H7: u [] → rejected: malformed",
        "H8: u [] → rejected: malformed",
        "H9: u [] → rejected: malformed",
        "H10: u [] → rejected: signature",
        "H11: \"authenticated\" → \"rejected\"",
        "H12: u [] → rejected: claim_type",
        "H13:  [] → rejected: mapping",
        "H14: a\u{7}b [] → rejected: identity_encoding",
        r#"H15: u ["a", ""] → u ["a"]"#,
        "H16: false → true",
        r#"H17: u ["system:masters"] → rejected: mapping"#,
        "H18: false → true",
        "H19: taken → refused",
        "H20: again in 10s → again in 1s",
        "H21: rejected: not_ready → u []",
        "H22: keys are asked for by a token: true → keys are asked for by a token: false",
        "H23: asked 1 times → asked 0 times",
        "H24: keys kept over a reload: false → keys kept over a reload: true",
        "H25: u [] → rejected: malformed",
    ];
    assert_eq!(shown_rules, expected);
}

// H17, H25, S312: what the side-car allows or forbids for one issuer.
#[test]
fn the_side_car_allows_and_forbids_per_issuer() {
    let side_car = |settings: Value| {
        let text = json!({"apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration", "issuers": [settings]});
        NavicertConfiguration::parse(text.to_string().as_bytes()).unwrap()
    };
    let judged = |settings: Value, claims: &Value| {
        let side_car = side_car(settings);
        let profile = side_car.profile(None);
        let mut compiled = load(config(|_| {}).to_string().as_bytes(), &profile).unwrap().compiled;
        side_car.apply(&mut compiled).unwrap();
        let keys = KeySet::parse(jwks(|_| {}).to_string().as_bytes(), &profile).unwrap();
        let keys = FixedKeys::new(keys);
        let authenticators =
            Authenticators::new(compiled, |_: &CompiledIssuer| Arc::new(keys.clone()) as Arc<dyn Keys>);
        let now = navicert_types::Timestamp::from_second(NOW).unwrap();
        described(&authenticators.authenticate(&Question::new(&key().token(claims), now)))
    };
    let plain = payload(|_| {});
    let system = payload(|claims| claims["username"] = json!("system:node:a"));
    assert_eq!(judged(json!({"url": "https://i"}), &system), "rejected: mapping");
    assert_eq!(judged(json!({"url": "https://i", "allowSystemPrefix": true}), &system), "system:node:a []");
    assert_eq!(judged(json!({"url": "https://i", "allowedAlgorithms": ["ES256"]}), &plain), "u []");
    assert_eq!(judged(json!({"url": "https://i", "allowedAlgorithms": ["RS256"]}), &plain), "rejected: alg");
}

// S83, S311: what hardened can express and kube-apiserver cannot.
#[test]
fn hardened_takes_expressions_that_kube_apiserver_cannot_use() {
    let groups = |expression: &str, profile: &Profile| {
        let config = config(|jwt| jwt["claimMappings"]["groups"] = json!({ "expression": expression }));
        if !is_valid(&config.to_string(), profile) {
            return "refused".to_owned();
        }
        let claims = payload(|claims| {
            claims["list"] = json!(["a", "b"]);
            claims["objects"] = json!([{"a.b": "c"}]);
        });
        outcome(&config, &jwks(|_| {}), &key().token(&claims), profile)
    };
    for (expression, kube, hardened) in [
        (r#"claims.list.map(x, "p:" + x)"#, "refused", r#"u ["p:a", "p:b"]"#),
        (r#"claims.list.exists(x, x == "a") ? ["yes"] : ["no"]"#, "refused", r#"u ["yes"]"#),
        ("dyn(claims.objects).map(x, x.a__dot__b)", "rejected: mapping", r#"u ["c"]"#),
        (r#"dyn(claims.objects).map(x, x["a.b"])"#, r#"u ["c"]"#, r#"u ["c"]"#),
    ] {
        assert_eq!(groups(expression, &Profile::KUBE), kube, "{expression}");
        assert_eq!(groups(expression, &Profile::HARDENED), hardened, "{expression}");
    }
}
