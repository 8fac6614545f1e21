//! Key refresh, file reload and distributed claims over time, with real sockets, files and file system notifications.

#![expect(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, and take what is at hand"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use navicert_authn::config::{AuthnReloader, BaseProfile, ConfigSources};
use navicert_authn::jwks::JwksContext;
use navicert_authn::{AuthnOutcome, ReloadableAuthenticator};
use navicert_client::transport::{ProxyEnvironment, TokioTimer};
use navicert_server::background_tasks::BackgroundTasks;
use navicert_server::fetch::HttpFetch;
use navicert_testkit::pki::jws::{Algorithm, SigningKey};
use navicert_testkit::{Answer, Ca, Gate, HttpServer, Issuer, wait};
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};

fn around() -> JwksContext {
    JwksContext {
        fetch: Arc::new(HttpFetch::new(ProxyEnvironment::default())),
        clock: Arc::new(SystemClock),
        random: Arc::new(|| 0.5),
        recorder: Arc::new(()),
    }
}

fn config(issuers: &[(&str, &Ca)], username: &Value, groups: Option<Value>) -> String {
    let jwt: Vec<Value> = issuers
        .iter()
        .map(|(url, ca)| {
            let mut mappings = json!({"username": username});
            if let Some(groups) = &groups {
                mappings["groups"] = groups.clone();
            }
            json!({
                "issuer": {"url": url, "audiences": ["aud1"], "certificateAuthority": ca.pem()},
                "claimMappings": mappings,
            })
        })
        .collect();
    json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt})
        .to_string()
}

fn named(prefix: &str) -> Value {
    json!({"claim": "sub", "prefix": prefix})
}

fn sources(config: PathBuf, profile: BaseProfile) -> ConfigSources {
    ConfigSources { config: config.into(), navicert_config: None, profile: Some(profile), kube_version: None }
}

fn open(dir: &Path, text: &str, profile: BaseProfile) -> (Arc<AuthnReloader>, BackgroundTasks) {
    let path = dir.join("config.yaml");
    fs::write(&path, text).unwrap();
    let reloader = Arc::new(AuthnReloader::open(sources(path, profile), around()).unwrap());
    let tasks = BackgroundTasks::start(Arc::clone(&reloader), Arc::new(TokioTimer));
    (reloader, tasks)
}

fn described(outcome: &AuthnOutcome) -> String {
    match outcome {
        AuthnOutcome::Authenticated(user) => format!("{} {:?}", user.username(), user.groups()),
        AuthnOutcome::NoOpinion(_) => "no opinion".to_owned(),
        AuthnOutcome::Rejected(why) => format!("rejected: {}", why.refusal),
    }
}

/// Repeats the request until it has this result, within a limit.
async fn until(authenticator: &ReloadableAuthenticator, token: &str, expected: &str) {
    let mut last = String::new();
    let asking = async {
        loop {
            last = described(&authenticator.authenticate(token).await);
            if last == expected {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    wait::within(&format!("`{expected}`"), asking).await;
}

// S108, S161, S191, TV37: a token is rejected until its issuer is available, then accepted.
#[tokio::test]
async fn issuer_may_become_available_after_its_first_token() {
    let (ca, dir) = (Ca::new("late"), tempfile::tempdir().unwrap());
    let issuer = Issuer::start(&ca);
    let gate = Gate::new();
    issuer.answer_once(issuer.discovery_path(), Answer::json(&issuer.discovery_document()).after(&gate));
    let url = issuer.issuer_url();
    let (reloader, _tasks) =
        open(dir.path(), &config(&[(&url, &ca)], &named(""), None), BaseProfile::Hardened);
    let token = issuer.token(&issuer.claims("ann", "aud1", SystemClock.now()));
    let refused = described(&reloader.authenticator().authenticate(&token).await);
    assert_eq!(refused, "rejected: oidc: authenticator for this issuer is not initialized");
    assert!(!reloader.authenticator().health()[0].1.is_ready);
    gate.open();
    until(reloader.authenticator(), &token, "ann []").await;
    assert!(reloader.authenticator().health()[0].1.is_ready);
    // A token of another issuer is rejected.
    let other = Issuer::start(&ca);
    let foreign = other.token(&other.claims("ann", "aud1", SystemClock.now()));
    assert_eq!(described(&reloader.authenticator().authenticate(&foreign).await), "no opinion");
}

// Key IDs of different issuers never mix (S116, A60).
#[tokio::test]
async fn key_ids_are_scoped_to_their_issuer() {
    let (ca, dir) = (Ca::new("two"), tempfile::tempdir().unwrap());
    let (one, two) = (Issuer::start(&ca), Issuer::start(&ca));
    let (first, second) = (one.issuer_url(), two.issuer_url());
    let text = config(&[(&first, &ca), (&second, &ca)], &named(""), None);
    let (reloader, _tasks) = open(dir.path(), &text, BaseProfile::Hardened);
    assert_eq!(one.key().id(), two.key().id());
    until(reloader.authenticator(), &one.token(&one.claims("ann", "aud1", SystemClock.now())), "ann []")
        .await;
    until(reloader.authenticator(), &two.token(&two.claims("bob", "aud1", SystemClock.now())), "bob []")
        .await;
    let crossed = one.key().token(&two.claims("eve", "aud1", SystemClock.now()));
    let refused = described(&reloader.authenticator().authenticate(&crossed).await);
    assert_eq!(refused, "rejected: failed to verify id token signature");
}

// S168 (b), S170, RV2: finds a rotated key although the issuer allowed caching for an hour.
#[tokio::test]
async fn finds_new_keys_at_once_and_drops_removed_ones() {
    let (ca, dir) = (Ca::new("rotation"), tempfile::tempdir().unwrap());
    let issuer = Issuer::start(&ca);
    issuer.set_jwks_headers(&[("cache-control", "max-age=3600")]);
    let url = issuer.issuer_url();
    let (reloader, _tasks) =
        open(dir.path(), &config(&[(&url, &ca)], &named(""), None), BaseProfile::Hardened);
    let claims = issuer.claims("ann", "aud1", SystemClock.now());
    let (old, authenticator) = (issuer.token(&claims), reloader.authenticator());
    until(authenticator, &old, "ann []").await;
    issuer.replace_keys([SigningKey::generate(Algorithm::Es384, "key-2")]);
    assert_eq!(described(&authenticator.authenticate(&issuer.token(&claims)).await), "ann []");
    assert_eq!(issuer.count(issuer.jwks_path()), 2);
    let refused = described(&authenticator.authenticate(&old).await);
    assert!(refused.contains("no key with this `kid`"), "{refused}");
}

// The provider rotates its key under concurrent load: every token is accepted, whichever key signed it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn key_rotation_under_load_loses_no_request() {
    let (ca, dir) = (Ca::new("load"), tempfile::tempdir().unwrap());
    let issuer = Arc::new(Issuer::start(&ca));
    issuer.set_jwks_headers(&[("cache-control", "max-age=3600")]);
    let url = issuer.issuer_url();
    let (reloader, _tasks) =
        open(dir.path(), &config(&[(&url, &ca)], &named(""), None), BaseProfile::Hardened);
    until(
        reloader.authenticator(),
        &issuer.token(&issuer.claims("first", "aud1", SystemClock.now())),
        "first []",
    )
    .await;
    let asking: Vec<_> = (0..4)
        .map(|side| {
            let (authenticator, issuer) = (Arc::clone(reloader.authenticator()), Arc::clone(&issuer));
            tokio::spawn(async move {
                let mut refused = Vec::new();
                for number in 0..100 {
                    // The issuer rotates its key while tokens are signed and verified, once per worker.
                    if side > 0 && number == 25 * side {
                        issuer
                            .add_key(SigningKey::generate(Algorithm::Es256, &format!("key-{side}-{number}")));
                    }
                    let subject = format!("u-{side}-{number}");
                    let token = issuer.token(&issuer.claims(&subject, "aud1", SystemClock.now()));
                    let outcome = described(&authenticator.authenticate(&token).await);
                    if outcome != format!("{subject} []") {
                        refused.push(outcome);
                    }
                }
                refused
            })
        })
        .collect();
    for side in asking {
        assert_eq!(side.await.unwrap(), [""; 0]);
    }
    // One fetch of keys at the start, and one per new key.
    let fetches = issuer.count(issuer.jwks_path());
    assert!((2..=4).contains(&fetches), "{fetches}");
}

// LV6, S182: written in place, replaced by rename, and switched by a ConfigMap's symbolic link. Nothing here waits
// for a poll.
#[tokio::test]
async fn reloads_files_however_they_change() {
    let (ca, dir) = (Ca::new("files"), tempfile::tempdir().unwrap());
    let issuer = Issuer::start(&ca);
    let url = issuer.issuer_url();
    let text = |prefix: &str| config(&[(&url, &ca)], &named(prefix), None);
    let token = issuer.token(&issuer.claims("ann", "aud1", SystemClock.now()));

    let (reloader, tasks) = open(dir.path(), &text("one:"), BaseProfile::Hardened);
    until(reloader.authenticator(), &token, "one:ann []").await;
    fs::write(dir.path().join("config.yaml"), text("two:")).unwrap();
    until(reloader.authenticator(), &token, "two:ann []").await;
    fs::write(dir.path().join("next"), text("three:")).unwrap();
    fs::rename(dir.path().join("next"), dir.path().join("config.yaml")).unwrap();
    until(reloader.authenticator(), &token, "three:ann []").await;
    drop(tasks);

    let mounted = tempfile::tempdir().unwrap();
    let at = |name: &str| mounted.path().join(name);
    for (name, prefix) in [("..1", "four:"), ("..2", "five:")] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join("config.yaml"), text(prefix)).unwrap();
    }
    symlink("..1", at("..data")).unwrap();
    symlink("..data/config.yaml", at("config.yaml")).unwrap();
    let reloader =
        Arc::new(AuthnReloader::open(sources(at("config.yaml"), BaseProfile::Hardened), around()).unwrap());
    let _tasks = BackgroundTasks::start(Arc::clone(&reloader), Arc::new(TokioTimer));
    until(reloader.authenticator(), &token, "four:ann []").await;
    symlink("..2", at("..data_tmp")).unwrap();
    fs::rename(at("..data_tmp"), at("..data")).unwrap();
    until(reloader.authenticator(), &token, "five:ann []").await;
}

/// An issuer, a distributed claim source on the same host, and a token that refers to it.
struct Spread {
    ca: Ca,
    issuer: Issuer,
    dir: tempfile::TempDir,
}

impl Spread {
    fn new() -> Self {
        let ca = Ca::new("distributed");
        Spread { issuer: Issuer::start(&ca), ca, dir: tempfile::tempdir().unwrap() }
    }

    fn claims(&self) -> Value {
        self.issuer.claims("ann", "aud1", SystemClock.now())
    }

    /// The token that names a source for `groups`.
    fn token(&self, source: &Value) -> String {
        let mut claims = self.claims();
        claims["_claim_names"] = json!({"groups": "src"});
        claims["_claim_sources"] = json!({"src": source});
        self.issuer.token(&claims)
    }

    /// The source's valid response.
    fn answer(&self, by: &Issuer, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = by.claims("ann", "aud1", SystemClock.now());
        claims["groups"] = json!(["dg"]);
        change(&mut claims);
        by.token(&claims)
    }

    fn config(&self) -> String {
        let groups = json!({"claim": "groups", "prefix": "p:"});
        config(&[(&self.issuer.issuer_url(), &self.ca)], &named(""), Some(groups))
    }

    fn open(&self, profile: BaseProfile) -> (Arc<AuthnReloader>, BackgroundTasks) {
        open(self.dir.path(), &self.config(), profile)
    }

    async fn ready(&self, reloader: &AuthnReloader) {
        until(reloader.authenticator(), &self.issuer.token(&self.claims()), "ann []").await;
    }
}

// GV1, GV2, GV4, GV5, GV6, S172, S173, S174, S175 (GV1), S176 (GV4), S178, S180 (GV6), in profile `kube`.
#[tokio::test]
async fn resolves_distributed_groups_as_kube_apiserver_does() {
    let fixture = Spread::new();
    let plain = HttpServer::start_plain();
    let (reloader, _tasks) = fixture.open(BaseProfile::Kube);
    fixture.ready(&reloader).await;
    let authenticator = reloader.authenticator();
    let good = fixture.answer(&fixture.issuer, |_| {});
    fixture.issuer.answer("/groups", Answer::text(&good));
    let endpoint = |path: &str| json!({"endpoint": fixture.issuer.url_of(path), "access_token": "s3cret"});
    // GV1: the first token that names a new issuer finds no verifier; a later one does.
    let token = fixture.token(&endpoint("/groups"));
    let first = described(&authenticator.authenticate(&token).await);
    assert_eq!(first, "rejected: verifier not initialized for the issuer of a distributed claim");
    until(authenticator, &token, r#"ann ["p:dg"]"#).await;
    let asked = fixture.issuer.requests();
    let asked = asked.iter().find(|request| request.path() == "/groups").unwrap();
    assert_eq!(asked.header("authorization").unwrap(), "Bearer s3cret");

    // GV2
    fixture.issuer.answer("/226", Answer::text(&format!("{good}\n")).with_status(226));
    fixture.issuer.answer("/302", Answer::redirect(302, "/groups"));
    plain.answer("/groups", Answer::text(&good));
    for source in [endpoint("/226"), endpoint("/302"), json!({"endpoint": plain.url_of("/groups")})] {
        assert_eq!(
            described(&authenticator.authenticate(&fixture.token(&source)).await),
            r#"ann ["p:dg"]"#,
            "{source}"
        );
    }
    // GV4: any issuer may vouch for any user.
    let foreign = Issuer::start(&fixture.ca);
    fixture
        .issuer
        .answer("/foreign", Answer::text(&fixture.answer(&foreign, |claims| claims["sub"] = json!("eve"))));
    until(authenticator, &fixture.token(&endpoint("/foreign")), r#"ann ["p:dg"]"#).await;
    // GV5, GV6: a claim in the token takes precedence, even null; an aggregated claim is ignored.
    let count = fixture.issuer.count("/groups");
    for (groups, expected) in [(json!(["own"]), r#"ann ["p:own"]"#), (Value::Null, "ann []")] {
        let mut claims = fixture.claims();
        claims["groups"] = groups;
        claims["_claim_names"] = json!({"groups": "src"});
        claims["_claim_sources"] = json!({"src": endpoint("/groups")});
        assert_eq!(described(&authenticator.authenticate(&fixture.issuer.token(&claims)).await), expected);
    }
    assert_eq!(described(&authenticator.authenticate(&fixture.token(&json!({"JWT": good}))).await), "ann []");
    assert_eq!(fixture.issuer.count("/groups"), count);
}

// GV3, GV7, GV8
#[tokio::test]
async fn invalid_distributed_claim_fails_the_token() {
    let fixture = Spread::new();
    let (reloader, _tasks) = fixture.open(BaseProfile::Hardened);
    fixture.ready(&reloader).await;
    let authenticator = reloader.authenticator();
    let path = |path: &str| json!({"endpoint": fixture.issuer.url_of(path)});
    let removed = |name: &'static str| {
        fixture.answer(&fixture.issuer, move |claims| {
            claims.as_object_mut().unwrap().remove(name);
        })
    };
    let of = |answer: &str| Answer::text(answer);
    let other_audience = fixture.answer(&fixture.issuer, |claims| claims["aud"] = json!("other"));
    for (name, answer, why) in [
        ("/exp", of(&removed("exp")), "the token with a distributed claim has expired"),
        ("/aud", of(&other_audience), "the token with a distributed claim has another audience"),
        ("/claim", of(&removed("groups")), "the source of a distributed claim did not return the claim"),
        ("/json", Answer::json(&json!({"groups": ["dg"]})), "did not return a token"),
        ("/404", Answer::status(404), "the source of a distributed claim returned an error status"),
    ] {
        fixture.issuer.answer(name, answer);
        let outcome = described(&authenticator.authenticate(&fixture.token(&path(name))).await);
        assert!(outcome.starts_with("rejected: ") && outcome.contains(why), "{name}: {outcome}");
    }
    // GV7, GV8
    for (names, sources, accepted) in [
        (json!({"other": "none"}), json!({}), false),
        (json!({"other": "src"}), json!({"src": path("/404")}), true),
        (json!({}), Value::Null, false),
    ] {
        let mut claims = fixture.claims();
        claims["_claim_names"] = names.clone();
        if !sources.is_null() {
            claims["_claim_sources"] = sources;
        }
        let outcome = described(&authenticator.authenticate(&fixture.issuer.token(&claims)).await);
        assert_eq!(outcome == "ann []", accepted, "{names}: {outcome}");
    }
}

// GV9, GV10, S85, S178
#[tokio::test]
async fn expressions_see_resolved_claims_and_fetch_nothing() {
    let fixture = Spread::new();
    let mut text: Value = serde_json::from_str(&fixture.config()).unwrap();
    text["jwt"][0]["claimValidationRules"] =
        json!([{"expression": "!has(claims.groups) || \"dg\" in claims.groups", "message": "no dg"}]);
    let (reloader, _tasks) = open(fixture.dir.path(), &text.to_string(), BaseProfile::Hardened);
    fixture.ready(&reloader).await;
    let source = json!({"endpoint": fixture.issuer.url_of("/groups")});
    fixture.issuer.answer(
        "/groups",
        Answer::text(&fixture.answer(&fixture.issuer, |claims| claims["groups"] = json!(["no"]))),
    );
    let refused = described(&reloader.authenticator().authenticate(&fixture.token(&source)).await);
    assert!(refused.contains("no dg"), "{refused}");
    let fixture = Spread::new();
    text = serde_json::from_str(&fixture.config()).unwrap();
    text["jwt"][0]["claimMappings"]["groups"] = json!({"expression": "claims.?groups.orValue([])"});
    let (reloader, _tasks) = open(fixture.dir.path(), &text.to_string(), BaseProfile::Kube);
    fixture.ready(&reloader).await;
    fixture.issuer.answer("/groups", Answer::text(&fixture.answer(&fixture.issuer, |_| {})));
    let source = json!({"endpoint": fixture.issuer.url_of("/groups")});
    assert_eq!(described(&reloader.authenticator().authenticate(&fixture.token(&source)).await), "ann []");
    assert_eq!(fixture.issuer.count("/groups"), 0);
}

// H23, S179, GV4, A56
#[tokio::test]
async fn hardened_profile_contacts_only_configured_hosts() {
    let fixture = Spread::new();
    let (foreign, plain, elsewhere) =
        (Issuer::start(&fixture.ca), HttpServer::start_plain(), HttpServer::start(&fixture.ca));
    let config = fixture.dir.path().join("config.yaml");
    fs::write(&config, fixture.config()).unwrap();
    let navicert_config = fixture.dir.path().join("navicert.yaml");
    let allow = |issuers: &[String]| {
        let own = fixture.issuer.issuer_url();
        let settings = json!({
            "apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration",
            "issuers": [{"url": own, "distributedClaimIssuers": issuers}],
        });
        fs::write(&navicert_config, settings.to_string()).unwrap();
    };
    allow(&[]);
    let sources = ConfigSources {
        config: config.into(),
        navicert_config: Some(navicert_config.clone()),
        profile: None,
        kube_version: None,
    };
    let reloader = Arc::new(AuthnReloader::open(sources, around()).unwrap());
    let _tasks = BackgroundTasks::start(Arc::clone(&reloader), Arc::new(TokioTimer));
    fixture.ready(&reloader).await;
    let authenticator = reloader.authenticator();
    let good = fixture.answer(&fixture.issuer, |_| {});
    for server in [&*fixture.issuer, &plain, &elsewhere] {
        server.answer("/groups", Answer::text(&good));
    }
    fixture.issuer.answer("/away", Answer::redirect(302, &elsewhere.url_of("/groups")));
    fixture.issuer.answer("/foreign", Answer::text(&fixture.answer(&foreign, |_| {})));
    let eve = fixture.answer(&fixture.issuer, |claims| claims["sub"] = json!("eve"));
    fixture.issuer.answer("/eve", Answer::text(&eve));
    let own = |path: &str| fixture.issuer.url_of(path);
    for (endpoint, why) in [
        (plain.url_of("/groups"), "the source of a distributed claim is not an https URL"),
        (elsewhere.url_of("/groups"), "not a trusted host"),
        (own("/away"), "failed to reach the source"),
        (own("/foreign"), "signed by an issuer that is not trusted for it"),
        (own("/eve"), "has another subject"),
    ] {
        let outcome =
            described(&authenticator.authenticate(&fixture.token(&json!({"endpoint": endpoint}))).await);
        assert!(outcome.starts_with("rejected: ") && outcome.contains(why), "{endpoint}: {outcome}");
    }
    assert_eq!((plain.requests().len(), elsewhere.requests().len(), foreign.requests().len()), (0, 0, 0));

    // The issuer itself may vouch immediately, and its response is cached.
    let source = json!({"endpoint": own("/groups"), "access_token": "one"});
    let count = fixture.issuer.count("/groups");
    for _ in 0..3 {
        let mut claims = fixture.claims();
        claims["_claim_names"] = json!({"groups": "src"});
        claims["_claim_sources"] = json!({"src": source});
        claims["nonce"] = json!(format!("{:?}", SystemClock.monotonic()));
        assert_eq!(
            described(&authenticator.authenticate(&fixture.issuer.token(&claims)).await),
            r#"ann ["p:dg"]"#
        );
    }
    assert_eq!(
        fixture.issuer.count("/groups"),
        count + 1,
        "kept by issuer, subject, source and access token"
    );

    // A listed issuer may vouch, without a second attempt.
    allow(&[foreign.issuer_url()]);
    until(authenticator, &fixture.token(&json!({"endpoint": own("/foreign")})), r#"ann ["p:dg"]"#).await;
}

/// An unsigned token with this key id, as an attacker can make it.
fn forged(issuer: &Issuer, kid: &str) -> String {
    let token = issuer.token(&issuer.claims("eve", "aud1", SystemClock.now()));
    let payload = token.split('.').nth(1).unwrap();
    let header = json!({"alg": "ES256", "kid": kid, "typ": "JWT"}).to_string();
    let encode =
        |bytes: &[u8]| base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, bytes);
    format!("{}.{payload}.{}", encode(header.as_bytes()), encode(&[1; 64]))
}

// S169: random key ids while the issuer hangs. One request waits for the issuer, all others are answered.
#[tokio::test]
async fn hanging_issuer_and_random_key_ids_hold_up_one_request_only() {
    for profile in [BaseProfile::Hardened, BaseProfile::Kube] {
        let (ca, dir) = (Ca::new("hang"), tempfile::tempdir().unwrap());
        let (issuer, other) = (Issuer::start(&ca), Issuer::start(&ca));
        let (url, other_url) = (issuer.issuer_url(), other.issuer_url());
        let text = config(&[(&url, &ca), (&other_url, &ca)], &named(""), None);
        let (reloader, _tasks) = open(dir.path(), &text, profile);
        let authenticator = Arc::clone(reloader.authenticator());
        let token = |by: &Issuer| by.token(&by.claims("ann", "aud1", SystemClock.now()));
        until(&authenticator, &token(&issuer), "ann []").await;
        until(&authenticator, &token(&other), "ann []").await;
        let gate = Gate::new();
        issuer.answer(issuer.jwks_path(), Answer::json(&issuer.jwks()).after(&gate));
        let mut requests = tokio::task::JoinSet::new();
        for number in 0..500 {
            let (authenticator, token) =
                (Arc::clone(&authenticator), forged(&issuer, &format!("random-{number}")));
            requests.spawn(async move { described(&authenticator.authenticate(&token).await) });
        }
        // The same token again and again is no way around it.
        let same = forged(&issuer, "same");
        for _ in 0..500 {
            let (authenticator, token) = (Arc::clone(&authenticator), same.clone());
            requests.spawn(async move { described(&authenticator.authenticate(&token).await) });
        }
        let answered = async {
            for _ in 0..999 {
                let refused = requests.join_next().await.unwrap().unwrap();
                assert!(refused.starts_with("rejected: "), "{refused}");
            }
        };
        wait::within("999 of 1000 answers", answered).await;
        assert_eq!(described(&authenticator.authenticate(&token(&other)).await), "ann []");
        assert_eq!(
            described(&authenticator.authenticate(&token(&issuer)).await),
            "ann []",
            "its key is known"
        );
        // While the fetch hangs, an unknown key id is answered at once.
        let asking = async {
            for number in 0..100 {
                authenticator.authenticate(&forged(&issuer, &format!("later-{number}"))).await;
            }
        };
        wait::within("100 answers in turn", asking).await;
        assert!(issuer.count(issuer.jwks_path()) <= 3, "one fetch");
        gate.open();
        wait::within("the last answer", requests.join_next()).await.unwrap().unwrap();
    }
}

// A revocation waits for no issuer: four that never answer, in a configuration that is being loaded, do not delay it.
#[tokio::test]
async fn silent_issuers_in_a_new_configuration_do_not_delay_revocation() {
    let (ca, dir) = (Ca::new("silent"), tempfile::tempdir().unwrap());
    let issuer = Issuer::start(&ca);
    let url = issuer.issuer_url();
    let at = |name: &str| dir.path().join(name);
    let head = "apiVersion: navicert/v1alpha1\nkind: RevocationList\n";
    fs::write(at("revoked.yaml"), head).unwrap();
    let names = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nrevocationList: revoked.yaml\n";
    fs::write(at("navicert.yaml"), names).unwrap();
    fs::write(at("config.yaml"), config(&[(&url, &ca)], &named(""), None)).unwrap();
    let sources = ConfigSources {
        navicert_config: Some(at("navicert.yaml")),
        ..sources(at("config.yaml"), BaseProfile::Hardened)
    };
    let reloader = Arc::new(AuthnReloader::open(sources, around()).unwrap());
    let _tasks = BackgroundTasks::start(Arc::clone(&reloader), Arc::new(TokioTimer));
    let authenticator = reloader.authenticator();
    let token = issuer.token(&issuer.claims("ann", "aud1", SystemClock.now()));
    until(authenticator, &token, "ann []").await;

    let gate = Gate::new();
    let silent: Vec<Issuer> = (0..4).map(|_| Issuer::start(&ca)).collect();
    for one in &silent {
        one.answer(one.discovery_path(), Answer::json(&one.discovery_document()).after(&gate));
    }
    let urls: Vec<String> = silent.iter().map(Issuer::issuer_url).collect();
    let mut all: Vec<(&str, &Ca)> = urls.iter().map(|url| (url.as_str(), &ca)).collect();
    all.push((&url, &ca));
    fs::write(at("config.yaml"), config(&all, &named("new:"), None)).unwrap();
    let all_asked = async {
        while silent.iter().any(|one| one.count(one.discovery_path()) == 0) {
            tokio::task::yield_now().await;
        }
    };
    wait::within("requests to all new issuers at once", all_asked).await;
    let mut changes = authenticator.subscribe_revocations();
    let accepted = authenticator.decide(&token).await;
    fs::write(
        at("revoked.yaml"),
        format!(
            "{head}subjects: [{{issuer: '{url}', subject: ann, issuedBefore: '2100-01-01T00:00:00Z'}}]\n"
        ),
    )
    .unwrap();
    wait::within("the new list", changes.changed()).await.unwrap();
    assert!(authenticator.is_revoked(&accepted));
    assert_eq!(described(&authenticator.authenticate(&token).await), "rejected: the token has been revoked");
    // The configuration that waits is reported, and used when its issuers respond.
    let reported = async {
        while reloader.waiting_for().is_none() {
            tokio::task::yield_now().await;
        }
    };
    wait::within("a report of the waiting configuration", reported).await;
    assert!(reloader.waiting_for().unwrap().contains("it has not responded yet"));
    fs::write(at("revoked.yaml"), head).unwrap();
    gate.open();
    until(authenticator, &token, "new:ann []").await;
    assert_eq!(reloader.waiting_for(), None);
}
