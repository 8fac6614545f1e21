//! Every hardening rule has an effect of its own: for each, one case that differs with and without it, everything else as in
//! profile `kube`.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use navicert_authn::config::{AuthnReloader, CompiledIssuer, ConfigSources, NavicertConfiguration, load};
use navicert_authn::jwks::{
    FetchLimits, FetchStage, JwksContext, JwksRefresher, KeySet, KeySource, RefreshReason, RefreshResult,
    ScriptedFetch, StaticKeys,
};
use navicert_authn::{Authenticators, AuthnOutcome, AuthnProfile, AuthnRequest, Hardening};
use navicert_testkit::pki::jws::{Algorithm, SigningKey};
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

/// Whether a configuration is valid.
fn is_valid(text: &str, profile: &AuthnProfile) -> bool {
    load(text.as_bytes(), profile).is_ok()
}

/// The outcome of a token.
fn outcome(config: &Value, jwks: &Value, token: &str, profile: &AuthnProfile) -> String {
    let compiled = load(config.to_string().as_bytes(), profile).unwrap().compiled;
    let keys = match KeySet::parse(jwks.to_string().as_bytes(), profile) {
        Ok(keys) => StaticKeys::new(keys),
        Err(error) => {
            StaticKeys::unavailable(navicert_authn::jwks::KeysUnavailable::Failed(error.to_string()))
        }
    };
    let authenticators = Authenticators::new(compiled, |_| Arc::new(keys.clone()));
    described(
        &authenticators
            .authenticate(&AuthnRequest::new(token, navicert_types::Timestamp::from_second(NOW).unwrap())),
    )
}

fn described(outcome: &AuthnOutcome) -> String {
    match outcome {
        AuthnOutcome::Authenticated(user) => format!("{} {:?}", user.username(), user.groups()),
        AuthnOutcome::NoOpinion(why) => why.to_string(),
        AuthnOutcome::Rejected(why) => format!("rejected: {}", why.refusal.class()),
    }
}

/// The outcome of a token with these claims.
fn claimed(claims: &Value, profile: &AuthnProfile) -> String {
    outcome(&config(|_| {}), &jwks(|_| {}), &key().token(claims), profile)
}

/// With an expression for the username.
fn expressed(expression: &str, profile: &AuthnProfile) -> bool {
    let named = config(|jwt| jwt["claimMappings"]["username"] = json!({ "expression": expression }));
    is_valid(&named.to_string(), profile)
}

fn headed(change: impl FnOnce(&mut Value), profile: &AuthnProfile) -> String {
    let mut header = json!({"alg": "ES256", "kid": "k1"});
    change(&mut header);
    let token = key().token_of_bytes(header.to_string().as_bytes(), payload(|_| {}).to_string().as_bytes());
    outcome(&config(|_| {}), &jwks(|_| {}), &token, profile)
}

struct RefresherRig {
    fetch: Arc<ScriptedFetch>,
    refresher: JwksRefresher,
}

fn refresher_rig(profile: &AuthnProfile) -> RefresherRig {
    let (fetch, clock) = (Arc::new(ScriptedFetch::default()), Arc::new(ManualClock::at(NOW)));
    let context = context(&fetch, &clock);
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
    RefresherRig { refresher: JwksRefresher::new(issuer, *profile, context), fetch }
}

fn context(fetch: &Arc<ScriptedFetch>, clock: &Arc<ManualClock>) -> JwksContext {
    JwksContext {
        fetch: Arc::clone(fetch) as _,
        clock: Arc::clone(clock) as _,
        random: Arc::new(|| 0.5),
        recorder: Arc::new(()),
    }
}

/// The effect of a rule as text, under a profile with or without it.
async fn shown(rule: Hardening, profile: &AuthnProfile) -> String {
    let accepted = |yes: bool| (if yes { "taken" } else { "refused" }).to_owned();
    match rule {
        Hardening::SingleDocument => {
            accepted(is_valid(&format!("---\n{}\n---\na: 1\n", config(|_| {})), profile))
        }
        Hardening::StrictIssuerUrls => accepted(is_valid(
            &config(|jwt| jwt["issuer"]["url"] = json!("https:opaque")).to_string(),
            profile,
        )),
        Hardening::StrictEmailRule => accepted(expressed(r#"claims["email"]"#, profile)),
        // The other way round: it accepts more.
        Hardening::ExtendedLibraries => accepted(!expressed("cel.bind(x, claims.sub, x + x)", profile)),
        Hardening::NoClaimsIteration => {
            accepted(expressed(r#"claims.exists(k, k == "s") ? "a" : "b""#, profile))
        }
        // S90: without it an expression runs on, regardless of the clock.
        Hardening::ExpressionDeadline => deadline(profile).await,
        Hardening::ExactClaimNames => {
            let claims = r#"{"iss":"https://i","aud":"bad","AUD":"aud1","exp":1700000009,"username":"u"}"#;
            let token = key().token_of_bytes(br#"{"alg":"ES256","kid":"k1"}"#, claims.as_bytes());
            outcome(&config(|_| {}), &jwks(|_| {}), &token, profile)
        }
        Hardening::NoCriticalHeaders => headed(|header| header["crit"] = json!([]), profile),
        Hardening::CanonicalEncoding => {
            let token = format!(" {}", key().token(&payload(|_| {})));
            outcome(&config(|_| {}), &jwks(|_| {}), &token, profile)
        }
        Hardening::KeyUsage => {
            let keys = jwks(|keys| keys["keys"][0]["use"] = json!("enc"));
            outcome(&config(|_| {}), &keys, &key().token(&payload(|_| {})), profile)
        }
        Hardening::KeyStrength => weak_key(profile),
        Hardening::StrictTimestamps => {
            claimed(&payload(|claims| claims["exp"] = json!(format!("{}", NOW + 5))), profile)
        }
        Hardening::NonEmptyUsername => claimed(&payload(|claims| claims["username"] = json!("")), profile),
        Hardening::PrintableIdentity => {
            claimed(&payload(|claims| claims["username"] = json!("a\u{7}b")), profile)
        }
        Hardening::DropEmptyGroups => {
            claimed(&payload(|claims| claims["groups"] = json!(["a", ""])), profile)
        }
        // Errors contain no claim values in either profile: there is nothing to switch, see `outcome.rs`.
        Hardening::RedactedErrors => {
            let required = config(|jwt| {
                jwt["claimValidationRules"] = json!([{"claim": "hd", "requiredValue": "want"}]);
            });
            let compiled = load(required.to_string().as_bytes(), profile).unwrap().compiled;
            let keys = KeySet::parse(jwks(|_| {}).to_string().as_bytes(), profile).unwrap();
            let keys = StaticKeys::new(keys);
            let authenticators = Authenticators::new(compiled, |_| Arc::new(keys.clone()));
            let token = key().token(&payload(|claims| claims["hd"] = json!("s3cret")));
            let now = navicert_types::Timestamp::from_second(NOW).unwrap();
            let text = format!("{:?}", authenticators.authenticate(&AuthnRequest::new(&token, now)));
            assert!(!text.contains("s3cret"), "{text}");
            format!("{}", profile.has(Hardening::RedactedErrors))
        }
        Hardening::ReservedSystemPrefix => {
            claimed(&payload(|claims| claims["groups"] = json!(["system:masters"])), profile)
        }
        Hardening::BoundedResponses => format!("{}", FetchLimits::for_profile(profile).bytes == 1 << 20),
        Hardening::HttpsKeys => {
            let fixture = refresher_rig(profile);
            let plain = r#"{"issuer": "https://i", "jwks_uri": "http://i/keys"}"#;
            fixture.fetch.answer("https://i/.well-known/openid-configuration", 200, plain);
            fixture.refresher.run_due().await;
            accepted(fixture.refresher.health().is_discovered)
        }
        Hardening::DiscoveryRetry => {
            let fixture = refresher_rig(profile);
            fixture.fetch.fail("https://i/.well-known/openid-configuration", FetchStage::Connect);
            format!("again in {:?}", fixture.refresher.run_due().await)
        }
        Hardening::SkipUnusableKeys => {
            let keys = jwks(|keys| keys["keys"].as_array_mut().unwrap().push(json!({"kty": "odd"})));
            outcome(&config(|_| {}), &keys, &key().token(&payload(|_| {})), profile)
        }
        Hardening::KeyLifetime => {
            let fixture = refresher_rig(profile);
            fixture.refresher.run_due().await;
            let first =
                fixture.refresher.refresh(RefreshReason::Signature, fixture.refresher.version()).await
                    == RefreshResult::Newer;
            format!("a token fetches keys: {first}")
        }
        Hardening::DistributedClaimSources => distributed(profile).await,
        Hardening::IncrementalReload => format!("keys kept over a reload: {}", reloaded(profile).await),
        Hardening::AlgorithmAllowlist => headed(|header| header["jku"] = json!("https://evil"), profile),
    }
}

/// An expensive expression, and a clock that advances a second per reading.
async fn deadline(profile: &AuthnProfile) -> String {
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
    let dir = tempfile::tempdir().unwrap();
    let slow = config(|jwt| {
        let expression = "dyn(claims.list).all(a, dyn(claims.list).all(b, a == b))";
        jwt["claimValidationRules"] = json!([{"expression": expression, "message": "no"}]);
    });
    let navicert_config = json!({
        "apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration", "profile": "kube",
        "rules": {"H6": profile.has(Hardening::ExpressionDeadline)},
        "issuers": [{"url": "https://i", "jwksFile": dir.path().join("keys.json")}],
    });
    let write = |name: &str, value: &Value| std::fs::write(dir.path().join(name), value.to_string()).unwrap();
    write("config.yaml", &slow);
    write("navicert.yaml", &navicert_config);
    write("keys.json", &jwks(|_| {}));
    let sources = ConfigSources {
        config: dir.path().join("config.yaml").into(),
        navicert_config: Some(dir.path().join("navicert.yaml")),
        profile: None,
        kube_version: None,
    };
    let fetch = Arc::new(ScriptedFetch::default());
    let context = JwksContext {
        clock: Arc::new(Hasty(ManualClock::at(NOW))),
        ..context(&fetch, &Arc::new(ManualClock::at(NOW)))
    };
    let reloader = AuthnReloader::open(sources, context).unwrap();
    let list: Vec<u32> = vec![1; 200];
    let token = key().token(&payload(|claims| claims["list"] = json!(list)));
    described(&reloader.authenticator().authenticate(&token).await)
}

/// A signature that only profile `kube` accepts, made by another library.
fn weak_key(profile: &AuthnProfile) -> String {
    let rare: Value = serde_json::from_str(include_str!("data/rare-signatures.json")).unwrap();
    let tokens = rare["tokens"].as_array().unwrap();
    let token = tokens.iter().find(|token| token["kube"] == true && token["hardened"] == false).unwrap();
    let config = "apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt: [{issuer: {url: \
        https://issuer.example.com, audiences: [kube]}, claimMappings: {username: {claim: sub, prefix: ''}}}]
";
    let request =
        json!({"config": config, "jwks": rare["jwks"], "token": token["token"], "now": 1_800_000_000});
    navicert_authn::batch::eval(&request, profile)["outcome"].to_string()
}

/// Whether groups are fetched over http.
async fn distributed(profile: &AuthnProfile) -> String {
    let dir = tempfile::tempdir().unwrap();
    let (fetch, clock) = (Arc::new(ScriptedFetch::default()), Arc::new(ManualClock::at(NOW)));
    let navicert_config = json!({
        "apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration", "profile": "kube",
        "rules": {"H23": profile.has(Hardening::DistributedClaimSources)},
        "issuers": [{"url": "https://i", "jwksFile": dir.path().join("keys.json")}],
    });
    let write = |name: &str, value: &Value| std::fs::write(dir.path().join(name), value.to_string()).unwrap();
    write("config.yaml", &config(|_| {}));
    write("navicert.yaml", &navicert_config);
    write("keys.json", &jwks(|_| {}));
    let sources = ConfigSources {
        config: dir.path().join("config.yaml").into(),
        navicert_config: Some(dir.path().join("navicert.yaml")),
        profile: None,
        kube_version: None,
    };
    let reloader = AuthnReloader::open(sources, context(&fetch, &clock)).unwrap();
    let token = key().token(&payload(|claims| {
        claims["_claim_names"] = json!({"groups": "s"});
        claims["_claim_sources"] = json!({"s": {"endpoint": "http://somewhere/groups"}});
    }));
    reloader.authenticator().authenticate(&token).await;
    format!("fetched {} times", fetch.count("http://somewhere/groups"))
}

async fn reloaded(profile: &AuthnProfile) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let (fetch, clock) = (Arc::new(ScriptedFetch::default()), Arc::new(ManualClock::at(NOW)));
    let write = |name: &str, value: &Value| std::fs::write(dir.path().join(name), value.to_string()).unwrap();
    write("config.yaml", &config(|_| {}));
    let rules = json!({"H24": profile.has(Hardening::IncrementalReload)});
    write(
        "navicert.yaml",
        &json!({
            "apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration", "profile": "kube", "rules": rules,
        }),
    );
    let sources = ConfigSources {
        config: dir.path().join("config.yaml").into(),
        navicert_config: Some(dir.path().join("navicert.yaml")),
        profile: None,
        kube_version: None,
    };
    let document = r#"{"issuer": "https://i", "jwks_uri": "https://i/keys"}"#;
    fetch.answer("https://i/.well-known/openid-configuration", 200, document);
    let reloader = AuthnReloader::open(sources, context(&fetch, &clock)).unwrap();
    let before = reloader.authenticator().refreshers();
    before[0].run_due().await;
    write("config.yaml", &config(|jwt| jwt["claimMappings"]["username"]["prefix"] = json!("new:")));
    reloader.check().await;
    Arc::ptr_eq(&before[0], &reloader.authenticator().refreshers()[0])
}

// §13
#[tokio::test]
async fn every_rule_has_an_effect() {
    let mut shown_rules = Vec::new();
    for rule in Hardening::ALL {
        let without = shown(rule, &AuthnProfile::KUBE).await;
        let with = shown(rule, &AuthnProfile::KUBE.with(rule, true)).await;
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
        "H22: a token fetches keys: true → a token fetches keys: false",
        "H23: fetched 1 times → fetched 0 times",
        "H24: keys kept over a reload: false → keys kept over a reload: true",
        "H25: u [] → rejected: malformed",
    ];
    assert_eq!(shown_rules, expected);
}

// H17, H25, S312: what the `NavicertConfiguration` allows or forbids for one issuer.
#[test]
fn navicert_config_allows_and_forbids_per_issuer() {
    let navicert_config = |settings: Value| {
        let text = json!({"apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration", "issuers": [settings]});
        NavicertConfiguration::parse(text.to_string().as_bytes()).unwrap()
    };
    let judged = |settings: Value, claims: &Value| {
        let navicert_config = navicert_config(settings);
        let profile = navicert_config.profile(None, None);
        let mut compiled = load(config(|_| {}).to_string().as_bytes(), &profile).unwrap().compiled;
        navicert_config.apply(&mut compiled).unwrap();
        let keys = KeySet::parse(jwks(|_| {}).to_string().as_bytes(), &profile).unwrap();
        let keys = StaticKeys::new(keys);
        let authenticators =
            Authenticators::new(compiled, |_: &CompiledIssuer| Arc::new(keys.clone()) as Arc<dyn KeySource>);
        let now = navicert_types::Timestamp::from_second(NOW).unwrap();
        described(&authenticators.authenticate(&AuthnRequest::new(&key().token(claims), now)))
    };
    let plain = payload(|_| {});
    let system = payload(|claims| claims["username"] = json!("system:node:a"));
    assert_eq!(judged(json!({"url": "https://i"}), &system), "rejected: mapping");
    assert_eq!(judged(json!({"url": "https://i", "allowSystemPrefix": true}), &system), "system:node:a []");
    let masters = payload(|claims| claims["groups"] = json!(["system:masters"]));
    for (settings, expected) in [
        (json!({"url": "https://i"}), "rejected: mapping"),
        (json!({"url": "https://i", "allowSystemPrefix": true}), "rejected: mapping"),
        (json!({"url": "https://i", "allowSystemMasters": true}), r#"u ["system:masters"]"#),
    ] {
        assert_eq!(judged(settings.clone(), &masters), expected, "{settings}");
    }
    let other = payload(|claims| claims["groups"] = json!(["system:masters", "system:nodes"]));
    let only_masters = json!({"url": "https://i", "allowSystemMasters": true});
    assert_eq!(judged(only_masters, &other), "rejected: mapping");
    assert_eq!(judged(json!({"url": "https://i", "allowedAlgorithms": ["ES256"]}), &plain), "u []");
    assert_eq!(judged(json!({"url": "https://i", "allowedAlgorithms": ["RS256"]}), &plain), "rejected: alg");
}

// S83, S311: expressions that hardened supports and kube-apiserver does not.
#[test]
fn hardened_accepts_expressions_that_kube_apiserver_cannot_use() {
    let groups = |expression: &str, profile: &AuthnProfile| {
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
        assert_eq!(groups(expression, &AuthnProfile::KUBE), kube, "{expression}");
        assert_eq!(groups(expression, &AuthnProfile::HARDENED), hardened, "{expression}");
    }
}
