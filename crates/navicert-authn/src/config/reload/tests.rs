//! LV1–LV10, with files in a temporary folder, and a clock and issuers that the test decides on.

use navicert_testkit::jws::{Algorithm, SigningKey};
use navicert_types::clock::ManualClock;
use serde_json::{Value, json};
use std::sync::Mutex;

use super::*;
use crate::jwks::{ScriptedFetch, Stage};
use crate::metrics::Recorder;
use crate::outcome::Outcome;

/// Remembers reloads, in order.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl Recorder for Notes {
    fn record(&self, event: &Event<'_>) {
        let note = match event {
            Event::Reloaded { is_success } => (if *is_success { "success" } else { "failure" }).to_owned(),
            Event::Configuration { text } => format!("config of {} bytes", text.len()),
            Event::IssuerGone { issuer } => format!("gone: {issuer}"),
            _ => return,
        };
        self.0.lock().unwrap().push(note);
    }
}

struct Rig {
    folder: tempfile::TempDir,
    fetch: Arc<ScriptedFetch>,
    clock: Arc<ManualClock>,
    notes: Arc<Notes>,
    key: SigningKey,
}

impl Rig {
    fn new() -> Self {
        let rig = Rig {
            folder: tempfile::tempdir().unwrap(),
            fetch: Arc::default(),
            clock: Arc::new(ManualClock::at(1_700_000_000)),
            notes: Arc::default(),
            key: SigningKey::generate(Algorithm::Es256, "k1"),
        };
        for issuer in ["https://a", "https://b"] {
            rig.serve(issuer);
        }
        rig
    }

    fn serve(&self, issuer: &str) {
        let document = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")}).to_string();
        self.fetch.answer(&format!("{issuer}/.well-known/openid-configuration"), 200, &document);
        self.fetch.answer(&format!("{issuer}/keys"), 200, &json!({"keys": [self.key.jwk()]}).to_string());
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn open(&self, side_car: Option<&str>) -> Reloader {
        self.try_open(side_car).unwrap()
    }

    fn try_open(&self, side_car: Option<&str>) -> Result<Reloader, LoadError> {
        let sources = Sources {
            config: self.folder.path().join("config.yaml").into(),
            side_car: side_car.map(|text| self.write("navicert.yaml", text)),
            profile: None,
        };
        let around = Around {
            fetch: Arc::clone(&self.fetch) as _,
            clock: Arc::clone(&self.clock) as _,
            random: Arc::new(|| 0.5),
            recorder: Arc::clone(&self.notes) as _,
        };
        Reloader::open(sources, around)
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

async fn tend_all(live: &Live) {
    for keeper in live.keepers() {
        keeper.tend().await;
    }
}

async fn user(live: &Live, token: &str) -> String {
    match live.authenticate(token).await {
        Outcome::Authenticated(user) => user.username().to_owned(),
        Outcome::NoOpinion(_) => "no opinion".to_owned(),
        Outcome::Rejected(why) => format!("rejected: {}", why.refusal.class()),
    }
}

// LV1, LV6, LV9, H24, S188, S189
#[tokio::test]
async fn a_good_change_takes_over_at_once_and_unchanged_issuers_keep_their_keys() {
    let rig = Rig::new();
    rig.write("config.yaml", &config(&["https://a"], "one:"));
    let reloader = rig.open(None);
    let live = Arc::clone(reloader.live());
    tend_all(&live).await;
    assert_eq!(rig.notes(), [format!("config of {} bytes", config(&["https://a"], "one:").len())]);
    assert_eq!(user(&live, &rig.token("https://a")).await, "one:ann");

    // LV1: the same bytes.
    rig.write("config.yaml", &config(&["https://a"], "one:"));
    let keepers = live.keepers();
    assert_eq!(reloader.tend().await, Tended { reload: Reload::Unchanged, pause: POLL });
    assert_eq!(rig.notes(), [""; 0]);
    assert!(Arc::ptr_eq(&keepers[0], &live.keepers()[0]));

    // LV6, LV9: another mapping and another issuer, no time passes, and the cached decision does not stand.
    let fetches = rig.fetch.count("https://a/keys");
    rig.write("config.yaml", &config(&["https://a", "https://b"], "two:"));
    assert_eq!(reloader.tend().await.reload, Reload::Applied);
    let notes = rig.notes();
    assert_eq!((notes[0].as_str(), notes.len()), ("success", 2));
    assert_eq!(user(&live, &rig.token("https://a")).await, "two:ann");
    assert_eq!(user(&live, &rig.token("https://b")).await, "two:ann");
    assert_eq!(rig.fetch.count("https://a/keys"), fetches, "its keys were kept");
    assert!(live.keepers().iter().any(|keeper| Arc::ptr_eq(keeper, &keepers[0])));
}

// LV2, LV3, LV10, S183, S184
#[tokio::test]
async fn a_bad_file_changes_nothing_is_counted_once_and_says_why() {
    let rig = Rig::new();
    rig.write("config.yaml", &config(&["https://a"], ""));
    let reloader = rig.open(None);
    tend_all(reloader.live()).await;
    rig.notes();
    for (text, why) in [
        ("{", "line 1"),
        ("", "empty config data"),
        (&*config(&["http://a"], ""), "jwt[0].issuer.url: Invalid value"),
        (&*config(&["https://a", "https://a"], ""), "jwt[1].issuer.url: Duplicate value"),
    ] {
        rig.write("config.yaml", text);
        let Reload::Refused(said) = reloader.tend().await.reload else { panic!("{text} took over") };
        assert!(said.contains(why), "{said}");
        assert_eq!(reloader.problem(), Some(said));
        assert_eq!(rig.notes(), ["failure"], "{text}");
        assert_eq!(reloader.tend().await.reload, Reload::Unchanged, "{text}");
        assert_eq!(rig.notes(), [""; 0], "the same bad content is not counted again");
        assert_eq!(user(reloader.live(), &rig.token("https://a")).await, "ann");
    }
    rig.write("config.yaml", &config(&["https://a"], "new:"));
    assert_eq!(reloader.tend().await.reload, Reload::Applied);
    assert_eq!(
        (reloader.problem(), user(reloader.live(), &rig.token("https://a")).await),
        (None, "new:ann".into())
    );
}

// S192: opt-in.
#[tokio::test]
async fn a_start_with_a_bad_file_finds_the_last_good_one() {
    const SIDE_CAR: &str =
        "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nlastGoodCopy: copy.yaml\n";
    let rig = Rig::new();
    let good = config(&["https://a"], "good:");
    rig.write("config.yaml", "{");
    assert!(rig.try_open(Some(SIDE_CAR)).is_err(), "there is no copy yet");
    rig.write("config.yaml", &config(&["https://a"], "first:"));
    let reloader = rig.open(Some(SIDE_CAR));
    rig.write("config.yaml", &good);
    assert_eq!(reloader.tend().await.reload, Reload::Applied);
    let copy = rig.folder.path().join("copy.yaml");
    assert_eq!(fs::read_to_string(&copy).unwrap(), good);
    rig.write("config.yaml", "{");
    assert!(matches!(reloader.tend().await.reload, Reload::Refused(_)));
    assert_eq!(fs::read_to_string(&copy).unwrap(), good, "what is bad is not copied");

    for bad in [Some("{"), None] {
        match bad {
            Some(text) => drop(rig.write("config.yaml", text)),
            None => fs::remove_file(rig.folder.path().join("config.yaml")).unwrap(),
        }
        assert!(rig.try_open(None).is_err(), "nobody asked for a copy");
        let reloader = rig.open(Some(SIDE_CAR));
        tend_all(reloader.live()).await;
        assert_eq!(user(reloader.live(), &rig.token("https://a")).await, "good:ann");
        let problem = reloader.problem().unwrap();
        assert!(problem.contains("in use is the copy"), "{problem}");
        if bad.is_some() {
            assert_eq!(reloader.tend().await.reload, Reload::Unchanged, "S184: not tried again");
            assert!(reloader.problem().is_some());
        }
        // Mended: the copy has done its duty.
        rig.write("config.yaml", &config(&["https://a"], "mended:"));
        assert_eq!(reloader.tend().await.reload, Reload::Applied);
        assert_eq!(user(reloader.live(), &rig.token("https://a")).await, "mended:ann");
        assert_eq!(reloader.problem(), None);
        rig.write("config.yaml", &good);
        assert_eq!(reloader.tend().await.reload, Reload::Applied);
    }
}

// S192
#[tokio::test]
async fn a_copy_that_cannot_be_kept_is_told_and_stops_nothing() {
    let rig = Rig::new();
    rig.write("config.yaml", &config(&["https://a"], ""));
    let side_car =
        "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nlastGoodCopy: nowhere/copy.yaml\n";
    let reloader = rig.open(Some(side_car));
    tend_all(reloader.live()).await;
    assert_eq!(user(reloader.live(), &rig.token("https://a")).await, "ann");
    let problem = reloader.problem().unwrap();
    assert!(problem.starts_with("cannot keep a copy of the configuration in"), "{problem}");
}

// LV7: a file that comes back as it was is no problem any more.
#[tokio::test]
async fn a_file_that_was_gone_for_a_while_is_no_problem_afterwards() {
    let rig = Rig::new();
    let path = rig.write("config.yaml", &config(&["https://a"], ""));
    let reloader = rig.open(None);
    fs::remove_file(&path).unwrap();
    assert!(matches!(reloader.tend().await.reload, Reload::Refused(_)));
    assert!(reloader.problem().is_some());
    rig.write("config.yaml", &config(&["https://a"], ""));
    assert_eq!(reloader.tend().await.reload, Reload::Unchanged);
    assert_eq!(reloader.problem(), None);
}

// LV4, S185
#[tokio::test]
async fn anonymous_stays_as_it_was_at_the_start() {
    let rig = Rig::new();
    let with = |anonymous: Value| {
        let mut config: Value = serde_json::from_str(&config(&["https://a"], "")).unwrap();
        if !anonymous.is_null() {
            config["anonymous"] = anonymous;
        }
        config.to_string()
    };
    let versions = [Value::Null, json!({}), json!({"enabled": true})];
    for (start, initial) in versions.iter().enumerate() {
        rig.write("config.yaml", &with(initial.clone()));
        let reloader = rig.open(None);
        rig.notes();
        for (other, next) in versions.iter().enumerate().filter(|(other, _)| *other != start) {
            rig.write("config.yaml", &with(next.clone()));
            let Reload::Refused(why) = reloader.tend().await.reload else {
                panic!("{start} → {other} took over")
            };
            assert!(why.contains("changed from initial configuration file"), "{why}");
            assert_eq!(rig.notes(), ["failure"]);
        }
    }
}

// LV5, S186, S187, S314
#[tokio::test]
async fn an_issuer_that_cannot_be_reached_holds_a_change_up_for_a_minute_at_a_time() {
    let rig = Rig::new();
    rig.write("config.yaml", &config(&["https://a"], ""));
    let reloader = rig.open(None);
    tend_all(reloader.live()).await;
    rig.notes();
    rig.write("config.yaml", &config(&["https://a", "https://nobody"], "new:"));
    for _ in 0..2 {
        let mut waited = 0;
        loop {
            let tended = reloader.tend().await;
            if let Reload::Refused(why) = tended.reload {
                assert!(why.contains("`https://nobody` is not ready: discovery: nobody is at"), "{why}");
                break;
            }
            assert_eq!(tended, Tended { reload: Reload::Waiting, pause: SOON });
            assert_eq!(user(reloader.live(), &rig.token("https://a")).await, "ann");
            rig.clock.advance(SOON);
            waited += 1;
        }
        assert_eq!((waited, rig.notes()), (60, vec!["failure".to_owned()]));
        rig.clock.advance(POLL);
        // The token of this test does not live that long.
        rig.clock.set_wall(navicert_types::Timestamp::from_second(1_700_000_000).unwrap());
    }
    rig.serve("https://nobody");
    assert_eq!(reloader.tend().await.reload, Reload::Applied);
    assert_eq!(user(reloader.live(), &rig.token("https://nobody")).await, "new:ann");

    // An issuer that was ready and has gone since holds nothing up (`changed`), unless asked for (`all`).
    rig.fetch.fail("https://a/.well-known/openid-configuration", Stage::Connect);
    rig.write("config.yaml", &config(&["https://a"], "newer:"));
    assert_eq!(reloader.tend().await.reload, Reload::Applied);
}

// S192: nobody has to be ready if the side-car says so.
#[tokio::test]
async fn reload_health_none_waits_for_nobody() {
    let rig = Rig::new();
    rig.write("config.yaml", &config(&["https://a"], ""));
    let side_car = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nreloadHealth: none\n";
    let reloader = rig.open(Some(side_car));
    rig.write("config.yaml", &config(&["https://a", "https://nobody"], ""));
    assert_eq!(reloader.tend().await.reload, Reload::Applied);
    assert_eq!(user(reloader.live(), &rig.token("https://nobody")).await, "rejected: not_ready");
}

// S186 without H24: everything is built anew, and looked at every ten seconds.
#[tokio::test]
async fn profile_kube_keeps_no_keys_over_a_change() {
    let rig = Rig::new();
    rig.write("config.yaml", &config(&["https://a"], ""));
    let side_car = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nprofile: kube\n";
    let reloader = rig.open(Some(side_car));
    tend_all(reloader.live()).await;
    let before = reloader.live().keepers();
    rig.fetch.fail("https://a/.well-known/openid-configuration", Stage::Connect);
    rig.write("config.yaml", &config(&["https://a"], "new:"));
    assert_eq!(reloader.tend().await, Tended { reload: Reload::Waiting, pause: UPSTREAM_SOON });
    rig.serve("https://a");
    rig.clock.advance(UPSTREAM_SOON);
    assert_eq!(reloader.tend().await.reload, Reload::Applied);
    assert!(!Arc::ptr_eq(&before[0], &reloader.live().keepers()[0]));
}

// LV7, S183
#[tokio::test]
async fn a_file_that_is_gone_is_a_failure_every_time_until_it_is_back() {
    let rig = Rig::new();
    let path = rig.write("config.yaml", &config(&["https://a"], ""));
    let reloader = rig.open(None);
    tend_all(reloader.live()).await;
    rig.notes();
    fs::remove_file(&path).unwrap();
    for _ in 0..3 {
        assert!(matches!(reloader.tend().await.reload, Reload::Refused(why) if why.contains("config.yaml")));
        assert_eq!(rig.notes(), ["failure"]);
    }
    rig.write("config.yaml", &config(&["https://a"], ""));
    assert_eq!(reloader.tend().await.reload, Reload::Unchanged);
    rig.write("config.yaml", &config(&["https://a"], "back:"));
    assert_eq!(reloader.tend().await.reload, Reload::Applied);
    assert_eq!(user(reloader.live(), &rig.token("https://a")).await, "back:ann");
}

// LV8, PV20
#[tokio::test]
async fn an_issuer_that_is_removed_is_gone_with_its_keeper_and_its_cached_tokens() {
    let rig = Rig::new();
    rig.write("config.yaml", &config(&["https://a", "https://b"], ""));
    let reloader = rig.open(None);
    tend_all(reloader.live()).await;
    assert_eq!(user(reloader.live(), &rig.token("https://b")).await, "ann");
    rig.notes();
    rig.write("config.yaml", &config(&["https://a"], ""));
    assert_eq!(reloader.tend().await.reload, Reload::Applied);
    assert!(rig.notes().contains(&"gone: https://b".to_owned()));
    assert_eq!(user(reloader.live(), &rig.token("https://b")).await, "no opinion");
    assert_eq!(reloader.live().keepers().len(), 1);
    reloader.live().keepers_changed().await;
}

// S26, S171, S300, H25: the side-car and everything it names are watched and reloaded like the configuration.
#[tokio::test]
async fn the_side_car_its_keys_and_its_revocation_list_are_reloaded() {
    let rig = Rig::new();
    rig.write("config.yaml", &config(&["https://offline"], ""));
    let keys = rig.write("keys.json", &json!({"keys": [rig.key.jwk()]}).to_string());
    let list = rig.write("revoked.yaml", "apiVersion: navicert/v1alpha1\nkind: RevocationList\n");
    let side_car = |algorithms: &str| {
        format!(
            "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nrevocationList: {}\nissuers:\n\
             - {{url: 'https://offline', jwksFile: {}, allowedAlgorithms: [{algorithms}]}}\n",
            // Relative to the side-car's folder, or whole.
            list.file_name().unwrap().display(),
            keys.display()
        )
    };
    let reloader = rig.open(Some(&side_car("ES256")));
    let (live, token) = (Arc::clone(reloader.live()), rig.token("https://offline"));
    assert_eq!(reloader.watched().await.len(), 4);
    assert_eq!(user(&live, &token).await, "ann");
    assert!(live.health().iter().all(|(_, health)| health.is_ready) && live.keepers().is_empty());

    rig.write("navicert.yaml", &side_car("RS256"));
    assert_eq!(reloader.tend().await.reload, Reload::Applied);
    assert_eq!(user(&live, &token).await, "rejected: alg");
    rig.write("navicert.yaml", &side_car("ES256"));
    assert_eq!(reloader.tend().await.reload, Reload::Applied);
    assert_eq!(user(&live, &token).await, "ann");

    // A token that was just accepted is refused at once; a bad list leaves the good one; and it can be taken back.
    let revoked = "tokens: [{issuer: 'https://offline', jti: j1}]\n";
    let head = "apiVersion: navicert/v1alpha1\nkind: RevocationList\n";
    rig.write("revoked.yaml", &format!("{head}{revoked}"));
    assert_eq!(reloader.tend().await.reload, Reload::Applied);
    assert_eq!(user(&live, &token).await, "rejected: revoked");
    rig.write("revoked.yaml", &format!("{head}token: []\n"));
    assert!(
        matches!(reloader.tend().await.reload, Reload::Refused(why) if why.contains("token: unknown field"))
    );
    assert_eq!(user(&live, &token).await, "rejected: revoked");
    rig.write("revoked.yaml", head);
    assert_eq!(reloader.tend().await.reload, Reload::Applied);
    assert_eq!(user(&live, &token).await, "ann");

    // Other keys in the file.
    let other = SigningKey::generate(Algorithm::Es256, "k1");
    rig.write("keys.json", &json!({"keys": [other.jwk()]}).to_string());
    assert_eq!(reloader.tend().await.reload, Reload::Applied);
    assert_eq!(user(&live, &token).await, "rejected: signature");
    rig.write("keys.json", "no keys");
    assert!(
        matches!(reloader.tend().await.reload, Reload::Refused(why) if why.contains("not a JSON Web Key Set"))
    );

    // A setting for an issuer that nobody has protects nothing, and is refused.
    rig.write("keys.json", &json!({"keys": [rig.key.jwk()]}).to_string());
    rig.write("navicert.yaml", &side_car("ES256").replace("https://offline", "https://offline/"));
    assert!(
        matches!(reloader.tend().await.reload, Reload::Refused(why) if why.contains("issuers[0].url: no authenticator"))
    );
}

// §7: what a cached decision counts and what it does not.
#[tokio::test]
async fn a_cached_decision_is_a_hit_and_not_a_second_judgement() {
    let rig = Rig::new();
    rig.write("config.yaml", &config(&["https://a"], ""));
    let metrics = Arc::new(crate::metrics::Metrics::new("one", Arc::clone(&rig.clock) as _));
    let reloader = rig.open(None);
    let around = Around { recorder: Arc::clone(&metrics) as _, ..reloader.around.clone() };
    let reloader = Reloader::open(reloader.sources.clone(), around).unwrap();
    tend_all(reloader.live()).await;
    for _ in 0..3 {
        assert_eq!(user(reloader.live(), &rig.token("https://a")).await, "ann");
    }
    let signed_twice = rig.token("https://a");
    for _ in 0..2 {
        assert_eq!(user(reloader.live(), &signed_twice).await, "ann");
    }
    assert_eq!(user(reloader.live(), "nobody's").await, "no opinion");
    let page = metrics.render();
    let value = |start: &str| {
        let line =
            page.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}\n{page}"));
        line.rsplit(' ').next().unwrap().to_owned()
    };
    // Four different signatures, one of them seen twice; and one token that is nobody's.
    let hits: u64 = value("authentication_token_cache_request_total{status=\"hit\"}").parse().unwrap();
    let misses: u64 = value("authentication_token_cache_request_total{status=\"miss\"}").parse().unwrap();
    assert_eq!(hits + misses, 6);
    assert!(hits >= 1);
    let judged: u64 = page
        .lines()
        .find(|line| line.starts_with("apiserver_authentication_jwt_authenticator_latency_seconds_count"))
        .and_then(|line| line.rsplit(' ').next())
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(judged, misses - 1, "a hit is not judged, and a token that is nobody's is not counted");
    assert_eq!(value("authentication_attempts{result=\"success\"}"), "5");
    assert_eq!(value("authentication_attempts{result=\"failure\"}"), "1");
    assert_eq!(value("authenticated_user_requests{username=\"other\"}"), "5");
    assert_eq!(value("authentication_token_cache_active_fetch_count{status=\"in_flight\"}"), "0");
    assert_eq!(value("navicert_issuer_ready"), "1");
    let _ = rig.notes();
}
