//! LV1–LV10, with files in a temporary folder, a manual clock and scripted issuers.

use navicert_testkit::Ca;
use navicert_testkit::pki::jws::{Algorithm, SigningKey};
use navicert_types::clock::ManualClock;
use serde_json::{Value, json};
use std::sync::Mutex;

use super::*;
use crate::jwks::{FetchStage, ScriptedFetch};
use crate::metrics::AuthnRecorder;
use crate::model::outcome::AuthnOutcome;

/// Records reload events, in order.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl AuthnRecorder for Notes {
    fn record(&self, event: &AuthnEvent<'_>) {
        let note = match event {
            AuthnEvent::Reloaded { is_success } => {
                (if *is_success { "success" } else { "failure" }).to_owned()
            }
            AuthnEvent::Configuration { text } => format!("config of {} bytes", text.len()),
            AuthnEvent::IssuerRemoved { issuer } => format!("gone: {issuer}"),
            _ => return,
        };
        self.0.lock().unwrap().push(note);
    }
}

struct Fixture {
    dir: tempfile::TempDir,
    fetch: Arc<ScriptedFetch>,
    clock: Arc<ManualClock>,
    notes: Arc<Notes>,
    key: SigningKey,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Fixture {
            dir: tempfile::tempdir().unwrap(),
            fetch: Arc::default(),
            clock: Arc::new(ManualClock::at(1_700_000_000)),
            notes: Arc::default(),
            key: SigningKey::generate(Algorithm::Es256, "k1"),
        };
        for issuer in ["https://a", "https://b"] {
            fixture.serve(issuer);
        }
        fixture
    }

    fn serve(&self, issuer: &str) {
        let document = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")}).to_string();
        self.fetch.answer(&format!("{issuer}/.well-known/openid-configuration"), 200, &document);
        self.fetch.answer(&format!("{issuer}/keys"), 200, &json!({"keys": [self.key.jwk()]}).to_string());
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn open(&self, navicert_config: Option<&str>) -> AuthnReloader {
        self.try_open(navicert_config).unwrap()
    }

    fn try_open(&self, navicert_config: Option<&str>) -> Result<AuthnReloader, AuthnLoadError> {
        let sources = ConfigSources {
            config: self.dir.path().join("config.yaml").into(),
            navicert_config: navicert_config.map(|text| self.write("navicert.yaml", text)),
            profile: None,
            kube_version: None,
        };
        let context = JwksContext {
            fetch: Arc::clone(&self.fetch) as _,
            clock: Arc::clone(&self.clock) as _,
            random: Arc::new(|| 0.5),
            recorder: Arc::clone(&self.notes) as _,
        };
        AuthnReloader::open(sources, context)
    }

    fn notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.0.lock().unwrap())
    }

    fn token(&self, issuer: &str) -> String {
        self.key.token(&json!({
            "iss": issuer, "aud": "aud1", "sub": "ann", "jti": "j1", "iat": 1_699_999_000, "exp": 1_700_000_300,
        }))
    }
}

fn config(issuers: &[&str], prefix: &str) -> String {
    let jwt: Vec<Value> = issuers
        .iter()
        .map(|url| {
            json!({
                "issuer": {"url": url, "audiences": ["aud1"]},
                "claimMappings": {"username": {"claim": "sub", "prefix": prefix}},
            })
        })
        .collect();
    json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt})
        .to_string()
}

async fn tend_all(live: &ReloadableAuthenticator) {
    for refresher in live.refreshers() {
        refresher.run_due().await;
    }
}

async fn user(live: &ReloadableAuthenticator, token: &str) -> String {
    match live.authenticate(token).await {
        AuthnOutcome::Authenticated(user) => user.username().to_owned(),
        AuthnOutcome::NoOpinion(_) => "no opinion".to_owned(),
        AuthnOutcome::Rejected(why) => format!("rejected: {}", why.refusal.class()),
    }
}

// LV1, LV6, LV9, H24, S188, S189
#[tokio::test]
async fn valid_change_is_applied_and_unchanged_issuers_keep_their_keys() {
    let fixture = Fixture::new();
    fixture.write("config.yaml", &config(&["https://a"], "one:"));
    let reloader = fixture.open(None);
    let live = Arc::clone(reloader.authenticator());
    tend_all(&live).await;
    assert_eq!(fixture.notes(), [format!("config of {} bytes", config(&["https://a"], "one:").len())]);
    assert_eq!(user(&live, &fixture.token("https://a")).await, "one:ann");

    // LV1: the same bytes.
    fixture.write("config.yaml", &config(&["https://a"], "one:"));
    let refreshers = live.refreshers();
    assert_eq!(
        reloader.check().await,
        ReloadCheck { reload: ReloadOutcome::Unchanged, pause: POLL_INTERVAL }
    );
    assert_eq!(fixture.notes(), [""; 0]);
    assert!(Arc::ptr_eq(&refreshers[0], &live.refreshers()[0]));

    // LV6, LV9: another mapping and another issuer; no time passes, and the cached decision is not used.
    let fetches = fixture.fetch.count("https://a/keys");
    fixture.write("config.yaml", &config(&["https://a", "https://b"], "two:"));
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    let notes = fixture.notes();
    assert_eq!((notes[0].as_str(), notes.len()), ("success", 2));
    assert_eq!(user(&live, &fixture.token("https://a")).await, "two:ann");
    assert_eq!(user(&live, &fixture.token("https://b")).await, "two:ann");
    assert_eq!(fixture.fetch.count("https://a/keys"), fetches, "its keys were kept");
    assert!(live.refreshers().iter().any(|refresher| Arc::ptr_eq(refresher, &refreshers[0])));
}

// LV2, LV3, LV10, S183, S184
#[tokio::test]
async fn invalid_file_changes_nothing_and_is_counted_once() {
    let fixture = Fixture::new();
    fixture.write("config.yaml", &config(&["https://a"], ""));
    let reloader = fixture.open(None);
    tend_all(reloader.authenticator()).await;
    fixture.notes();
    for (text, why) in [
        ("{", "line 1"),
        ("", "empty config data"),
        (&*config(&["http://a"], ""), "jwt[0].issuer.url: Invalid value"),
        (&*config(&["https://a", "https://a"], ""), "jwt[1].issuer.url: Duplicate value"),
    ] {
        fixture.write("config.yaml", text);
        let ReloadOutcome::Refused(reported) = reloader.check().await.reload else {
            panic!("{text} was applied")
        };
        assert!(reported.contains(why), "{reported}");
        assert_eq!(reloader.problem(), Some(reported));
        assert_eq!(fixture.notes(), ["failure"], "{text}");
        assert_eq!(reloader.check().await.reload, ReloadOutcome::Unchanged, "{text}");
        assert_eq!(fixture.notes(), [""; 0], "the same bad content is not counted again");
        assert_eq!(user(reloader.authenticator(), &fixture.token("https://a")).await, "ann");
    }
    fixture.write("config.yaml", &config(&["https://a"], "new:"));
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    assert_eq!(
        (reloader.problem(), user(reloader.authenticator(), &fixture.token("https://a")).await),
        (None, "new:ann".into())
    );
}

// S192: opt-in.
#[tokio::test]
async fn startup_with_invalid_file_uses_the_last_good_copy() {
    const NAVICERT_CONFIG: &str =
        "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nlastGoodCopy: copy.yaml\n";
    let fixture = Fixture::new();
    let good = config(&["https://a"], "good:");
    fixture.write("config.yaml", "{");
    assert!(fixture.try_open(Some(NAVICERT_CONFIG)).is_err(), "there is no copy yet");
    fixture.write("config.yaml", &config(&["https://a"], "first:"));
    let reloader = fixture.open(Some(NAVICERT_CONFIG));
    fixture.write("config.yaml", &good);
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    let copy = fixture.dir.path().join("copy.yaml");
    assert_eq!(fs::read_to_string(&copy).unwrap(), good);
    fixture.write("config.yaml", "{");
    assert!(matches!(reloader.check().await.reload, ReloadOutcome::Refused(_)));
    assert_eq!(fs::read_to_string(&copy).unwrap(), good, "an invalid file is not copied");

    for bad in [Some("{"), None] {
        match bad {
            Some(text) => drop(fixture.write("config.yaml", text)),
            None => fs::remove_file(fixture.dir.path().join("config.yaml")).unwrap(),
        }
        assert!(fixture.try_open(None).is_err(), "no copy is configured");
        let reloader = fixture.open(Some(NAVICERT_CONFIG));
        tend_all(reloader.authenticator()).await;
        assert_eq!(user(reloader.authenticator(), &fixture.token("https://a")).await, "good:ann");
        let problem = reloader.problem().unwrap();
        assert!(problem.contains("using the last good copy"), "{problem}");
        if bad.is_some() {
            assert_eq!(reloader.check().await.reload, ReloadOutcome::Unchanged, "S184: not tried again");
            assert!(reloader.problem().is_some());
        }
        // Fixed: the copy is not used any more.
        fixture.write("config.yaml", &config(&["https://a"], "fixed:"));
        assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
        assert_eq!(user(reloader.authenticator(), &fixture.token("https://a")).await, "fixed:ann");
        assert_eq!(reloader.problem(), None);
        fixture.write("config.yaml", &good);
        assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    }
}

// S192
#[tokio::test]
async fn failure_to_write_the_copy_is_reported_and_stops_nothing() {
    let fixture = Fixture::new();
    fixture.write("config.yaml", &config(&["https://a"], ""));
    let navicert_config =
        "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nlastGoodCopy: nowhere/copy.yaml\n";
    let reloader = fixture.open(Some(navicert_config));
    tend_all(reloader.authenticator()).await;
    assert_eq!(user(reloader.authenticator(), &fixture.token("https://a")).await, "ann");
    let problem = reloader.problem().unwrap();
    assert!(problem.starts_with("failed to write a copy of the configuration to"), "{problem}");
}

// LV7: a file that is restored unchanged is no problem any more.
#[tokio::test]
async fn restored_file_clears_the_problem() {
    let fixture = Fixture::new();
    let path = fixture.write("config.yaml", &config(&["https://a"], ""));
    let reloader = fixture.open(None);
    fs::remove_file(&path).unwrap();
    assert!(matches!(reloader.check().await.reload, ReloadOutcome::Refused(_)));
    assert!(reloader.problem().is_some());
    fixture.write("config.yaml", &config(&["https://a"], ""));
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Unchanged);
    assert_eq!(reloader.problem(), None);
}

// LV4, S185
#[tokio::test]
async fn anonymous_cannot_change() {
    let fixture = Fixture::new();
    let with = |anonymous: Value| {
        let mut config: Value = serde_json::from_str(&config(&["https://a"], "")).unwrap();
        if !anonymous.is_null() {
            config["anonymous"] = anonymous;
        }
        config.to_string()
    };
    let versions = [Value::Null, json!({}), json!({"enabled": true})];
    for (start, initial) in versions.iter().enumerate() {
        fixture.write("config.yaml", &with(initial.clone()));
        let reloader = fixture.open(None);
        fixture.notes();
        for (other, next) in versions.iter().enumerate().filter(|(other, _)| *other != start) {
            fixture.write("config.yaml", &with(next.clone()));
            let ReloadOutcome::Refused(why) = reloader.check().await.reload else {
                panic!("{start} → {other} was applied")
            };
            assert!(why.contains("changed from initial configuration file"), "{why}");
            assert_eq!(fixture.notes(), ["failure"]);
        }
    }
}

// LV5, S186, S187, S314
#[tokio::test]
async fn unreachable_issuer_delays_a_change_for_a_minute_at_a_time() {
    let fixture = Fixture::new();
    fixture.write("config.yaml", &config(&["https://a"], ""));
    let reloader = fixture.open(None);
    tend_all(reloader.authenticator()).await;
    fixture.notes();
    fixture.write("config.yaml", &config(&["https://a", "https://offline"], "new:"));
    for _ in 0..2 {
        let mut waited = 0;
        loop {
            let checked = reloader.check().await;
            if let ReloadOutcome::Refused(why) = checked.reload {
                assert!(
                    why.contains("`https://offline` is not ready: discovery failed: connection to"),
                    "{why}"
                );
                break;
            }
            assert_eq!(
                checked,
                ReloadCheck { reload: ReloadOutcome::Waiting, pause: PENDING_CHECK_INTERVAL }
            );
            assert_eq!(user(reloader.authenticator(), &fixture.token("https://a")).await, "ann");
            fixture.clock.advance(PENDING_CHECK_INTERVAL);
            waited += 1;
        }
        assert_eq!((waited, fixture.notes()), (60, vec!["failure".to_owned()]));
        fixture.clock.advance(POLL_INTERVAL);
        // The token of this test expires before that.
        fixture.clock.set_wall(navicert_types::Timestamp::from_second(1_700_000_000).unwrap());
    }
    fixture.serve("https://offline");
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    assert_eq!(user(reloader.authenticator(), &fixture.token("https://offline")).await, "new:ann");

    // An issuer that was ready and is unreachable now delays nothing (`changed`), except with `all`.
    fixture.fetch.fail("https://a/.well-known/openid-configuration", FetchStage::Connect);
    fixture.write("config.yaml", &config(&["https://a"], "newer:"));
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
}

// A configuration that waits for an issuer says so within seconds.
#[tokio::test]
async fn waiting_configuration_is_reported_within_five_seconds() {
    let fixture = Fixture::new();
    fixture.write("config.yaml", &config(&["https://a"], ""));
    let reloader = fixture.open(None);
    tend_all(reloader.authenticator()).await;
    fixture.write("config.yaml", &config(&["https://a", "https://offline"], ""));
    for second in 0..5 {
        assert_eq!(reloader.check().await.reload, ReloadOutcome::Waiting);
        assert_eq!(reloader.waiting_for().is_some(), second >= 3, "after {second} seconds");
        fixture.clock.advance(PENDING_CHECK_INTERVAL);
    }
    let why = reloader.waiting_for().unwrap();
    assert!(why.contains("issuer `https://offline` is not ready: discovery failed"), "{why}");
    assert_eq!(reloader.problem(), None, "the files are valid");
    fixture.serve("https://offline");
    fixture.clock.advance(Duration::from_secs(60));
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    assert_eq!(reloader.waiting_for(), None);
}

// S300: a configuration that names another list, or none, takes effect with the configuration.
#[tokio::test]
async fn revocation_list_follows_the_configuration() {
    let fixture = Fixture::new();
    fixture.write("config.yaml", &config(&["https://a"], ""));
    let head = "apiVersion: navicert/v1alpha1\nkind: RevocationList\n";
    fixture.write("one.yaml", &format!("{head}tokens: [{{issuer: 'https://a', jti: j1}}]\n"));
    fixture.write("two.yaml", head);
    let names = |list: &str| format!("apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\n{list}");
    let reloader = fixture.open(Some(&names("revocationList: one.yaml\n")));
    let (live, token) = (Arc::clone(reloader.authenticator()), fixture.token("https://a"));
    tend_all(&live).await;
    assert_eq!(user(&live, &token).await, "rejected: revoked");
    for (list, expected) in [
        ("revocationList: two.yaml\n", "ann"),
        ("revocationList: one.yaml\n", "rejected: revoked"),
        ("", "ann"),
        ("revocationList: one.yaml\n", "rejected: revoked"),
    ] {
        fixture.write("navicert.yaml", &names(list));
        assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
        assert_eq!(user(&live, &token).await, expected, "{list}");
    }
    // An invalid NavicertConfiguration does not stop the list of the one in use.
    fixture.write("navicert.yaml", "{");
    assert!(matches!(reloader.check().await.reload, ReloadOutcome::Refused(_)));
    fixture.write("one.yaml", head);
    assert_eq!(reloader.check_revocations(), ReloadOutcome::Applied);
    assert_eq!(user(&live, &token).await, "ann");
    fixture.write("one.yaml", &format!("{head}tokens: [{{issuer: 'https://a', jti: j1}}]\n"));
    let accepted = live.decide(&token).await;
    let mut changes = live.subscribe_revocations();
    assert!(!live.is_revoked(&accepted) && !changes.has_changed().unwrap());
    assert_eq!(reloader.check_revocations(), ReloadOutcome::Applied);
    assert!(live.is_revoked(&accepted) && changes.has_changed().unwrap());
    changes.mark_unchanged();
    assert!(!live.is_revoked(&live.decide(&token).await), "a rejected token has nothing to revoke");
}

// S192: no issuer has to be ready with `reloadHealth: none`.
#[tokio::test]
async fn reload_health_none_waits_for_no_issuer() {
    let fixture = Fixture::new();
    fixture.write("config.yaml", &config(&["https://a"], ""));
    let navicert_config = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nreloadHealth: none\n";
    let reloader = fixture.open(Some(navicert_config));
    fixture.write("config.yaml", &config(&["https://a", "https://offline"], ""));
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    assert_eq!(
        user(reloader.authenticator(), &fixture.token("https://offline")).await,
        "rejected: not_ready"
    );
}

// S186 without H24: all refreshers are new, and checked every ten seconds.
#[tokio::test]
async fn profile_kube_drops_keys_on_every_change() {
    let fixture = Fixture::new();
    fixture.write("config.yaml", &config(&["https://a"], ""));
    let navicert_config = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nprofile: kube\n";
    let reloader = fixture.open(Some(navicert_config));
    tend_all(reloader.authenticator()).await;
    let before = reloader.authenticator().refreshers();
    fixture.fetch.fail("https://a/.well-known/openid-configuration", FetchStage::Connect);
    fixture.write("config.yaml", &config(&["https://a"], "new:"));
    assert_eq!(
        reloader.check().await,
        ReloadCheck { reload: ReloadOutcome::Waiting, pause: UPSTREAM_PENDING_CHECK_INTERVAL }
    );
    fixture.serve("https://a");
    fixture.clock.advance(UPSTREAM_PENDING_CHECK_INTERVAL);
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    assert!(!Arc::ptr_eq(&before[0], &reloader.authenticator().refreshers()[0]));
}

// LV7, S183
#[tokio::test]
async fn missing_file_is_a_failure_until_it_is_restored() {
    let fixture = Fixture::new();
    let path = fixture.write("config.yaml", &config(&["https://a"], ""));
    let reloader = fixture.open(None);
    tend_all(reloader.authenticator()).await;
    fixture.notes();
    fs::remove_file(&path).unwrap();
    for _ in 0..3 {
        assert!(
            matches!(reloader.check().await.reload, ReloadOutcome::Refused(why) if why.contains("config.yaml"))
        );
        assert_eq!(fixture.notes(), ["failure"]);
    }
    fixture.write("config.yaml", &config(&["https://a"], ""));
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Unchanged);
    fixture.write("config.yaml", &config(&["https://a"], "back:"));
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    assert_eq!(user(reloader.authenticator(), &fixture.token("https://a")).await, "back:ann");
}

// LV8, PV20
#[tokio::test]
async fn removed_issuer_loses_its_refresher_and_cached_tokens() {
    let fixture = Fixture::new();
    fixture.write("config.yaml", &config(&["https://a", "https://b"], ""));
    let reloader = fixture.open(None);
    tend_all(reloader.authenticator()).await;
    assert_eq!(user(reloader.authenticator(), &fixture.token("https://b")).await, "ann");
    fixture.notes();
    fixture.write("config.yaml", &config(&["https://a"], ""));
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    assert!(fixture.notes().contains(&"gone: https://b".to_owned()));
    assert_eq!(user(reloader.authenticator(), &fixture.token("https://b")).await, "no opinion");
    assert_eq!(reloader.authenticator().refreshers().len(), 1);
    reloader.authenticator().refreshers_changed().await;
}

// A cluster trust bundle that the kubelet keeps up to date.
#[tokio::test]
async fn certificate_authority_file_is_reloaded_and_a_second_authority_is_an_error() {
    let fixture = Fixture::new();
    let configuration = config(&["https://a"], "");
    fixture.write("config.yaml", &configuration);
    let (one, two) = (Ca::new("one").pem(), Ca::new("two").pem());
    let path = fixture.write("ca.pem", &one);
    let navicert_config = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nissuers:\n\
                           - {url: 'https://a', certificateAuthorityFile: ca.pem}\n";
    let reloader = fixture.open(Some(navicert_config));
    assert!(reloader.watched().await.contains(&path));
    tend_all(reloader.authenticator()).await;
    let roots = || fixture.fetch.requests().last().unwrap().roots;
    assert_eq!(roots(), 1);
    fixture.write("ca.pem", &(one.clone() + &two));
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    assert_eq!(roots(), 2);

    fixture.write("ca.pem", "no certificate");
    let refused = |checked: ReloadCheck| match checked.reload {
        ReloadOutcome::Refused(why) => why,
        other => format!("{other:?}"),
    };
    let why = refused(reloader.check().await);
    assert!(
        why.starts_with("invalid certificate authority `") && why.contains("ca.pem`: data does not"),
        "{why}"
    );
    assert_eq!(user(reloader.authenticator(), &fixture.token("https://a")).await, "ann");
    fs::remove_file(&path).unwrap();
    let why = refused(reloader.check().await);
    assert!(why.starts_with("failed to read `") && why.contains("ca.pem`"), "{why}");

    fixture.write("ca.pem", &one);
    let mut both: Value = serde_json::from_str(&configuration).unwrap();
    both["jwt"][0]["issuer"]["certificateAuthority"] = json!(two);
    fixture.write("config.yaml", &both.to_string());
    assert_eq!(
        refused(reloader.check().await),
        "issuers[0].certificateAuthorityFile: the issuer already has a `certificateAuthority`; remove one of the two"
    );
}

// S26, S171, S300, H25: the `NavicertConfiguration` and the files it names are reloaded like the configuration.
#[tokio::test]
async fn navicert_config_key_files_and_revocation_list_are_reloaded() {
    let fixture = Fixture::new();
    fixture.write("config.yaml", &config(&["https://offline"], ""));
    let keys = fixture.write("keys.json", &json!({"keys": [fixture.key.jwk()]}).to_string());
    let list = fixture.write("revoked.yaml", "apiVersion: navicert/v1alpha1\nkind: RevocationList\n");
    let navicert_config = |algorithms: &str| {
        format!(
            "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nrevocationList: {}\nissuers:\n\
             - {{url: 'https://offline', jwksFile: {}, allowedAlgorithms: [{algorithms}]}}\n",
            // Relative to the folder of the file, or absolute.
            list.file_name().unwrap().display(),
            keys.display()
        )
    };
    let reloader = fixture.open(Some(&navicert_config("ES256")));
    let (live, token) = (Arc::clone(reloader.authenticator()), fixture.token("https://offline"));
    assert_eq!(reloader.watched().await.len(), 4);
    assert_eq!(user(&live, &token).await, "ann");
    assert!(live.health().iter().all(|(_, health)| health.is_ready) && live.refreshers().is_empty());

    fixture.write("navicert.yaml", &navicert_config("RS256"));
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    assert_eq!(user(&live, &token).await, "rejected: alg");
    fixture.write("navicert.yaml", &navicert_config("ES256"));
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    assert_eq!(user(&live, &token).await, "ann");

    // A token accepted just before is rejected at once; an invalid list keeps the valid one; and a revocation can be undone.
    let revoked = "tokens: [{issuer: 'https://offline', jti: j1}]\n";
    let head = "apiVersion: navicert/v1alpha1\nkind: RevocationList\n";
    fixture.write("revoked.yaml", &format!("{head}{revoked}"));
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    assert_eq!(user(&live, &token).await, "rejected: revoked");
    fixture.write("revoked.yaml", &format!("{head}token: []\n"));
    assert!(
        matches!(reloader.check().await.reload, ReloadOutcome::Refused(why) if why.contains("token: unknown field"))
    );
    assert_eq!(user(&live, &token).await, "rejected: revoked");
    fixture.write("revoked.yaml", head);
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    assert_eq!(user(&live, &token).await, "ann");

    // Other keys in the file.
    let other = SigningKey::generate(Algorithm::Es256, "k1");
    fixture.write("keys.json", &json!({"keys": [other.jwk()]}).to_string());
    assert_eq!(reloader.check().await.reload, ReloadOutcome::Applied);
    assert_eq!(user(&live, &token).await, "rejected: signature");
    fixture.write("keys.json", "no keys");
    assert!(
        matches!(reloader.check().await.reload, ReloadOutcome::Refused(why) if why.contains("not a JSON Web Key Set"))
    );

    // Settings for an unknown issuer have no effect and are rejected.
    fixture.write("keys.json", &json!({"keys": [fixture.key.jwk()]}).to_string());
    fixture.write("navicert.yaml", &navicert_config("ES256").replace("https://offline", "https://offline/"));
    assert!(
        matches!(reloader.check().await.reload, ReloadOutcome::Refused(why) if why.contains("issuers[0].url: no authenticator"))
    );
}

// §7: what a cached decision counts and what it does not.
#[tokio::test]
async fn cached_decision_is_a_hit_and_not_evaluated_again() {
    let fixture = Fixture::new();
    fixture.write("config.yaml", &config(&["https://a"], ""));
    let metrics = Arc::new(crate::metrics::AuthnMetrics::new("one", Arc::clone(&fixture.clock) as _));
    let reloader = fixture.open(None);
    let context = JwksContext { recorder: Arc::clone(&metrics) as _, ..reloader.context.clone() };
    let reloader = AuthnReloader::open(reloader.sources.clone(), context).unwrap();
    tend_all(reloader.authenticator()).await;
    for _ in 0..3 {
        assert_eq!(user(reloader.authenticator(), &fixture.token("https://a")).await, "ann");
    }
    let signed_twice = fixture.token("https://a");
    for _ in 0..2 {
        assert_eq!(user(reloader.authenticator(), &signed_twice).await, "ann");
    }
    assert_eq!(user(reloader.authenticator(), "opaque").await, "no opinion");
    let page = metrics.render();
    let value = |start: &str| {
        let line =
            page.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}\n{page}"));
        line.rsplit(' ').next().unwrap().to_owned()
    };
    // Four different signatures, one of them seen twice; and one token of an unknown issuer.
    let hits: u64 = value("authentication_token_cache_request_total{status=\"hit\"}").parse().unwrap();
    let misses: u64 = value("authentication_token_cache_request_total{status=\"miss\"}").parse().unwrap();
    assert_eq!(hits + misses, 6);
    assert!(hits >= 1);
    let evaluated: u64 = page
        .lines()
        .find(|line| line.starts_with("apiserver_authentication_jwt_authenticator_latency_seconds_count"))
        .and_then(|line| line.rsplit(' ').next())
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(
        evaluated,
        misses - 1,
        "a hit is not evaluated, and a token of an unknown issuer is not counted"
    );
    assert_eq!(value("authentication_attempts{result=\"success\"}"), "5");
    assert_eq!(value("authentication_attempts{result=\"failure\"}"), "1");
    assert_eq!(value("authenticated_user_requests{username=\"other\"}"), "5");
    assert_eq!(value("authentication_token_cache_active_fetch_count{status=\"in_flight\"}"), "0");
    assert_eq!(value("navicert_issuer_ready"), "1");
    let _ = fixture.notes();
}

// H25: the list has no effect under profile `kube`, and that is reported.
#[tokio::test]
async fn allowed_algorithms_without_effect_are_reported() {
    let fixture = Fixture::new();
    fixture.write("config.yaml", &config(&["https://a"], "one:"));
    let text = |profile: &str| {
        format!(
            "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\n{profile}\n\
             issuers: [{{url: 'https://a', allowedAlgorithms: [RS256]}}]\n"
        )
    };
    for (profile, reports, outcome) in [
        ("profile: kube", 1, "one:ann"),
        ("profile: hardened", 0, "rejected: alg"),
        ("profile: kube\nrules: {H25: on}", 0, "rejected: alg"),
    ] {
        let reloader = fixture.open(Some(&text(profile)));
        let live = reloader.authenticator();
        tend_all(live).await;
        assert_eq!(live.ignored_settings().len(), reports, "{profile}");
        assert_eq!(user(live, &fixture.token("https://a")).await, outcome, "{profile}");
    }
}

// H17
#[tokio::test]
async fn text_of_a_program_has_the_settings_of_its_issuers() {
    let fixture = Fixture::new();
    let context = || JwksContext {
        fetch: Arc::clone(&fixture.fetch) as _,
        clock: Arc::clone(&fixture.clock) as _,
        random: Arc::new(|| 0.5),
        recorder: Arc::clone(&fixture.notes) as _,
    };
    let text = config(&["https://a"], "system:");
    let allowed = IssuerSettings {
        url: "https://a".to_owned(),
        allow_system_prefix: true,
        ..IssuerSettings::default()
    };
    for (issuers, expected) in [(vec![], "rejected: mapping"), (vec![allowed], "system:ann")] {
        let config = ConfigOrigin::Text { text: text.clone(), issuers };
        let sources = ConfigSources { config, navicert_config: None, profile: None, kube_version: None };
        let reloader = AuthnReloader::open(sources, context()).unwrap();
        tend_all(reloader.authenticator()).await;
        assert_eq!(user(reloader.authenticator(), &fixture.token("https://a")).await, expected);
        assert_eq!(reloader.check().await.reload, ReloadOutcome::Unchanged);
    }
}
