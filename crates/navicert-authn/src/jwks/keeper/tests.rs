//! What a keeper does as time passes, with a clock and answers that the test decides on.

use navicert_testkit::jws::{Algorithm, SigningKey};
use navicert_types::clock::ManualClock;
use serde_json::json;

use super::*;
use crate::jwks::Stage;
use crate::jwks::scripted::{ScriptedFetch, issuer};

const DISCOVERY: &str = "https://i/.well-known/openid-configuration";
const KEYS: &str = "https://i/keys";

struct Rig {
    fetch: Arc<ScriptedFetch>,
    clock: Arc<ManualClock>,
    keeper: Arc<Keeper>,
}

fn rig(profile: Profile) -> Rig {
    let (fetch, clock) = (Arc::new(ScriptedFetch::default()), Arc::new(ManualClock::at(1_700_000_000)));
    let around = Around {
        fetch: Arc::clone(&fetch) as _,
        clock: Arc::clone(&clock) as _,
        random: Arc::new(|| 0.5),
        recorder: Arc::new(()),
    };
    fetch.answer(DISCOVERY, 200, r#"{"issuer": "https://i", "jwks_uri": "https://i/keys"}"#);
    Rig { fetch, clock, keeper: Arc::new(Keeper::new(issuer("https://i"), profile, around)) }
}

impl Rig {
    fn publish(&self, kids: &[&str], headers: &[(&str, &str)]) {
        self.fetch.answer_with(KEYS, 200, headers, &jwks(kids));
    }

    fn kids(&self) -> Vec<String> {
        let keys = self.keeper.current().unwrap_or_default();
        keys.keys().iter().map(|key| key.kid().to_owned()).collect()
    }

    async fn refresh(&self, wanted: Wanted<'_>) -> Refreshed {
        self.keeper.refresh(wanted, self.keeper.version()).await
    }

    fn fetches(&self) -> usize {
        self.fetch.count(KEYS)
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

/// One real key under several names: making keys takes time, and names are what matters here.
fn jwks(kids: &[&str]) -> String {
    static KEY: std::sync::OnceLock<SigningKey> = std::sync::OnceLock::new();
    let key = KEY.get_or_init(|| SigningKey::generate(Algorithm::Es256, "k"));
    let keys: Vec<_> = kids.iter().map(|kid| key.renamed(kid).jwk()).collect();
    json!({ "keys": keys }).to_string()
}

// S161, H20, S162
#[tokio::test]
async fn an_issuer_that_is_down_is_asked_again_after_pauses_that_grow() {
    let rig = rig(Profile::HARDENED);
    rig.fetch.fail(DISCOVERY, Stage::Connect);
    assert_eq!(rig.keeper.current().unwrap_err(), KeysUnavailable::NotReady);
    assert_eq!(rig.keeper.health(), Health::default());
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let pause = rig.keeper.tend().await;
        pauses.push(pause.as_secs_f64());
        rig.clock.advance(pause);
    }
    assert_eq!(pauses, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
    assert_eq!(rig.fetch.count(DISCOVERY), 8);
    let health = rig.keeper.health();
    assert!(!health.is_ready && health.last_error.unwrap().starts_with("discovery: no way to"), "says why");
    assert_eq!(rig.keeper.current().unwrap_err(), KeysUnavailable::NotReady);

    rig.fetch.answer(DISCOVERY, 200, r#"{"issuer": "https://i", "jwks_uri": "https://i/keys"}"#);
    rig.publish(&["k1"], &[]);
    rig.keeper.tend().await;
    assert_eq!(rig.kids(), ["k1"]);
    let health = rig.keeper.health();
    assert!(health.is_ready && health.is_discovered && health.last_error.is_none());
    assert_eq!((health.usable_keys, health.fetched), (1, Some(rig.clock.now())));
}

// S161: upstream waits ten seconds every time, and discovers once.
#[tokio::test]
async fn profile_kube_asks_every_ten_seconds_and_never_again() {
    let rig = rig(Profile::KUBE);
    rig.fetch.fail(DISCOVERY, Stage::Connect);
    for _ in 0..3 {
        assert_eq!(rig.keeper.tend().await, Duration::from_secs(10));
        rig.advance(10);
    }
    rig.fetch.answer(DISCOVERY, 200, r#"{"issuer": "https://i", "jwks_uri": "https://i/keys"}"#);
    rig.keeper.tend().await;
    let health = rig.keeper.health();
    assert!(health.is_ready && health.usable_keys == 0, "healthy means discovered, nothing else (S162)");
    assert_eq!(rig.fetches(), 0, "keys are asked for by the first token that needs them (S163)");
    for _ in 0..5 {
        rig.advance(24 * 3600);
        rig.keeper.tend().await;
    }
    assert_eq!((rig.fetch.count(DISCOVERY), rig.fetches()), (4, 0));
}

// H20: a failure that a token met is tried again as soon as any other, though the next look was far away.
#[tokio::test]
async fn whoever_tends_hears_of_a_failure_that_a_token_met() {
    let rig = rig(Profile::HARDENED);
    rig.publish(&["k1"], &[]);
    assert!(rig.keeper.tend().await > Duration::from_secs(60));
    rig.fetch.answer(KEYS, 500, "");
    assert!(matches!(rig.refresh(Wanted::Kid("k2")).await, Refreshed::Failed(_)));
    rig.keeper.asked().await;
    assert_eq!(rig.keeper.tend().await, Duration::from_secs(1));
    rig.publish(&["k1", "k2"], &[]);
    rig.advance(1);
    rig.keeper.tend().await;
    assert_eq!(rig.kids(), ["k1", "k2"]);
    assert_eq!(rig.keeper.health().last_error, None);
}

// Jitter: from a fifth less to a fifth more.
#[tokio::test]
async fn pauses_are_spread() {
    for (share, expected) in [(0.0, 0.8), (1.0, 1.2), (9.0, 1.2)] {
        let rig = rig(Profile::HARDENED);
        rig.fetch.fail(DISCOVERY, Stage::Tls);
        let around = Around { random: Arc::new(move || share), ..rig.keeper.around.clone() };
        let keeper = Keeper::new(issuer("https://i"), Profile::HARDENED, around);
        assert!((keeper.tend().await.as_secs_f64() - expected).abs() < 1e-6);
    }
}

// S170, H22
#[tokio::test]
async fn keys_are_renewed_at_nine_tenths_of_their_life() {
    for (headers, minutes) in [
        (&[][..], 9),
        (&[("cache-control", "max-age=3600")], 54),
        (&[("cache-control", "max-age=1")], 0),
        (&[("cache-control", "max-age=99999999")], 54 * 24),
    ] {
        let rig = rig(Profile::HARDENED);
        rig.publish(&["k1"], headers);
        let pause = rig.keeper.tend().await;
        let expected = if minutes == 0 { Duration::from_secs(54) } else { Duration::from_secs(minutes * 60) };
        assert_eq!(pause, expected, "{headers:?}");
        rig.publish(&["k2"], headers);
        rig.clock.advance(pause - Duration::from_secs(1));
        rig.keeper.tend().await;
        assert_eq!(rig.kids(), ["k1"]);
        rig.advance(1);
        let before = rig.keeper.version();
        rig.keeper.tend().await;
        assert_eq!(rig.kids(), ["k2"], "what the new set omits is gone at once (A63)");
        assert_ne!(rig.keeper.version(), before);
    }
}

// S168 (d), H22: stale while there is an error, and not for ever.
#[tokio::test]
async fn keys_survive_an_outage_for_a_day() {
    let rig = rig(Profile::HARDENED);
    rig.publish(&["k1"], &[]);
    rig.keeper.tend().await;
    let version = rig.keeper.version();
    rig.fetch.answer(KEYS, 500, "oops");
    let mut elapsed = Duration::ZERO;
    let limit = Duration::from_secs(600 + 24 * 3600);
    while elapsed < limit - Duration::from_secs(61) {
        let pause = rig.keeper.tend().await.min(limit - Duration::from_secs(61) - elapsed);
        elapsed += pause;
        rig.clock.advance(pause);
    }
    assert_eq!((rig.kids(), rig.keeper.version()), (vec!["k1".to_owned()], version));
    assert!(rig.keeper.trusted_for().unwrap() <= Duration::from_secs(61));
    let health = rig.keeper.health();
    assert!(health.is_ready && health.last_error.unwrap().contains("500"));
    assert!(rig.fetch.count(DISCOVERY) > 2, "they may have moved: discovery is repeated (H20)");
    rig.advance(61);
    rig.keeper.tend().await;
    assert!(matches!(rig.keeper.current(), Err(KeysUnavailable::Failed(why)) if why.contains("too old")));
    assert!(!rig.keeper.health().is_ready && rig.keeper.version() != version);
    rig.publish(&["k1"], &[]);
    rig.advance(60);
    rig.keeper.tend().await;
    assert_eq!(rig.kids(), ["k1"]);
}

// H20: five minutes without keys, or a day, and the issuer is discovered anew; its keys may be elsewhere.
#[tokio::test]
async fn keys_that_moved_are_found() {
    let rig = rig(Profile::HARDENED);
    rig.publish(&["k1"], &[]);
    rig.keeper.tend().await;
    rig.fetch.answer(KEYS, 404, "");
    rig.fetch.answer(DISCOVERY, 200, r#"{"issuer": "https://i", "jwks_uri": "https://i/new"}"#);
    rig.fetch.answer("https://i/new", 200, &jwks(&["k2"]));
    let mut passed = Duration::ZERO;
    loop {
        let pause = rig.keeper.tend().await;
        if rig.kids() == ["k2"] {
            break;
        }
        passed += pause;
        rig.clock.advance(pause);
        assert!(passed <= Duration::from_secs(540 + 360), "found within six minutes of the move");
    }
    // And a day later in any case.
    rig.fetch.answer(DISCOVERY, 200, r#"{"issuer": "https://i", "jwks_uri": "https://i/newest"}"#);
    rig.fetch.answer("https://i/newest", 200, &jwks(&["k3"]));
    rig.advance(24 * 3600);
    rig.keeper.tend().await;
    assert_eq!(rig.kids(), ["k3"]);
}

// S170, RV1, RV2 (hardened), A10, A64
#[tokio::test]
async fn an_unknown_key_is_asked_for_but_not_by_everybody() {
    let rig = rig(Profile::HARDENED);
    rig.publish(&["k1"], &[("cache-control", "max-age=3600")]);
    rig.keeper.tend().await;
    rig.publish(&["k1", "k2"], &[("cache-control", "max-age=3600")]);
    assert_eq!(rig.refresh(Wanted::Signature).await, Refreshed::Same, "a bad signature is no reason");
    assert_eq!(rig.fetches(), 1);
    assert_eq!(rig.refresh(Wanted::Kid("k2")).await, Refreshed::Newer);
    assert_eq!((rig.kids().len(), rig.fetches()), (2, 2));
    for _ in 0..100 {
        assert_eq!(rig.refresh(Wanted::Kid("none")).await, Refreshed::Same);
    }
    assert_eq!(rig.fetches(), 3, "a name that is known to be unknown costs one request");
    for number in 0..1000 {
        rig.refresh(Wanted::Kid(&format!("none-{number}"))).await;
    }
    assert_eq!(rig.fetches(), 4, "and many names cost what the bucket holds");
    rig.advance(10);
    for number in 0..1000 {
        rig.refresh(Wanted::Kid(&format!("other-{number}"))).await;
    }
    assert_eq!(rig.fetches(), 5, "one in ten seconds");
}

// S166–S168, RV1, RV2, RV3
#[tokio::test]
async fn profile_kube_asks_when_a_token_cannot_be_verified_and_the_answer_is_old() {
    for (headers, asks) in [
        (&[][..], true),
        (&[("cache-control", "no-cache")], true),
        (&[("cache-control", "max-age=20")], true),
        (&[("cache-control", "max-age=bogus")], true),
        (&[("cache-control", "max-age=3600")], false),
        (&[("cache-control", "no-store, max-age=3600")], false),
    ] {
        let rig = rig(Profile::KUBE);
        rig.publish(&["k1"], headers);
        rig.keeper.tend().await;
        assert_eq!(rig.refresh(Wanted::Kid("k1")).await, Refreshed::Newer, "the first token asks (S163)");
        assert_eq!((rig.kids(), rig.fetches()), (vec!["k1".to_owned()], 1));
        rig.publish(&["k2"], headers);
        let expected = if asks { (Refreshed::Newer, 2) } else { (Refreshed::Same, 1) };
        assert_eq!((rig.refresh(Wanted::Signature).await, rig.fetches()), expected, "{headers:?}");
        // RV3: a failure keeps what there is.
        rig.fetch.answer(KEYS, 500, "");
        let kids = rig.kids();
        let refreshed = rig.refresh(Wanted::Kid("k9")).await;
        assert_eq!(matches!(refreshed, Refreshed::Failed(why) if why.contains("500")), asks);
        assert_eq!(rig.kids(), kids);
    }
}

// S169
#[tokio::test]
async fn those_who_wait_share_one_request() {
    let rig = rig(Profile::KUBE);
    rig.publish(&["k1"], &[]);
    rig.keeper.tend().await;
    let held = rig.keeper.work.lock().await;
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let keeper = Arc::clone(&rig.keeper);
            tokio::spawn(async move { keeper.refresh(Wanted::Kid("k1"), 0).await })
        })
        .collect();
    // Everybody has begun to wait when everybody has been polled once.
    tokio::task::yield_now().await;
    drop(held);
    for one in waiting {
        assert!(matches!(one.await.unwrap(), Refreshed::Newer | Refreshed::Meanwhile));
    }
    assert_eq!(rig.fetches(), 1);
}

// S165, H21, JV3
#[tokio::test]
async fn a_document_that_is_no_key_set_changes_nothing() {
    let rig = rig(Profile::HARDENED);
    rig.publish(&["k1"], &[]);
    rig.keeper.tend().await;
    for body in ["", "[]", "<html>"] {
        rig.fetch.answer(KEYS, 200, body);
        rig.advance(600);
        rig.keeper.tend().await;
        assert_eq!(rig.kids(), ["k1"], "{body}");
        assert!(rig.keeper.health().last_error.unwrap().contains("failed to decode keys"), "{body}");
    }
}

// The same document again is no change: nothing that was decided with it has to be decided again.
#[tokio::test]
async fn the_version_changes_only_with_the_keys() {
    let rig = rig(Profile::HARDENED);
    rig.publish(&["k1"], &[]);
    rig.keeper.tend().await;
    let version = rig.keeper.version();
    rig.advance(540);
    rig.keeper.tend().await;
    assert_eq!((rig.fetches(), rig.keeper.version()), (2, version));
}

// S153, S155, H18
#[tokio::test]
async fn requests_carry_the_roots_and_the_limits() {
    let rig = rig(Profile::HARDENED);
    let mut private = issuer("https://i");
    private.certificate_authority = vec![vec![1], vec![2]];
    let keeper = Keeper::new(private, Profile::HARDENED, rig.keeper.around.clone());
    rig.publish(&["k1"], &[]);
    keeper.tend().await;
    let asked = rig.fetch.asked();
    assert_eq!(asked.len(), 2);
    for one in asked {
        assert_eq!((one.roots, one.limits.bytes, one.limits.redirects), (2, 1 << 20, 5));
        assert!(one.limits.keeps_scheme && !one.has_bearer);
    }
}

// Whoever tried old keys is told of newer ones that came meanwhile, without a request.
#[tokio::test]
async fn keys_that_came_between_a_try_and_a_question_are_newer() {
    for profile in [Profile::HARDENED, Profile::KUBE] {
        let rig = rig(profile);
        rig.publish(&["k1"], &[]);
        rig.keeper.tend().await;
        let tried = rig.keeper.version();
        rig.publish(&["k1", "k2"], &[]);
        assert_eq!(rig.refresh(Wanted::Kid("k2")).await, Refreshed::Newer);
        let fetches = rig.fetches();
        assert_eq!(rig.keeper.refresh(Wanted::Kid("k2"), tried).await, Refreshed::Meanwhile);
        assert_eq!(rig.fetches(), fetches);
    }
}

// XV8, S157
#[tokio::test]
async fn only_200_and_a_document_are_discovery() {
    for profile in [Profile::KUBE, Profile::HARDENED] {
        for (status, body) in
            [(201, r#"{"issuer": "https://i", "jwks_uri": "https://i/keys"}"#), (200, "<html>"), (404, "")]
        {
            let rig = rig(profile);
            rig.fetch.answer(DISCOVERY, status, body);
            rig.keeper.tend().await;
            assert!(!rig.keeper.health().is_discovered, "{status} {body}");
        }
    }
}
