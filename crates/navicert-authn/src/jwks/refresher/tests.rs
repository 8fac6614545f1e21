//! What a refresher does over time, with a manual clock and scripted responses.

use navicert_testkit::jws::{Algorithm, SigningKey};
use navicert_types::clock::ManualClock;
use serde_json::json;

use super::*;
use crate::jwks::FetchStage;
use crate::jwks::scripted::{ScriptedFetch, issuer};

const DISCOVERY: &str = "https://i/.well-known/openid-configuration";
const KEYS: &str = "https://i/keys";

struct Rig {
    fetch: Arc<ScriptedFetch>,
    clock: Arc<ManualClock>,
    refresher: Arc<JwksRefresher>,
}

fn rig(profile: AuthnProfile) -> Rig {
    let (fetch, clock) = (Arc::new(ScriptedFetch::default()), Arc::new(ManualClock::at(1_700_000_000)));
    let context = JwksContext {
        fetch: Arc::clone(&fetch) as _,
        clock: Arc::clone(&clock) as _,
        random: Arc::new(|| 0.5),
        recorder: Arc::new(()),
    };
    fetch.answer(DISCOVERY, 200, r#"{"issuer": "https://i", "jwks_uri": "https://i/keys"}"#);
    Rig { fetch, clock, refresher: Arc::new(JwksRefresher::new(issuer("https://i"), profile, context)) }
}

impl Rig {
    fn publish(&self, kids: &[&str], headers: &[(&str, &str)]) {
        self.fetch.answer_with(KEYS, 200, headers, &jwks(kids));
    }

    fn kids(&self) -> Vec<String> {
        let keys = self.refresher.current().unwrap_or_default();
        keys.keys().iter().map(|key| key.kid().to_owned()).collect()
    }

    async fn refresh(&self, wanted: RefreshReason<'_>) -> RefreshResult {
        self.refresher.refresh(wanted, self.refresher.version()).await
    }

    fn fetches(&self) -> usize {
        self.fetch.count(KEYS)
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

/// One real key under several key IDs: generating keys is slow, and only the IDs matter here.
fn jwks(kids: &[&str]) -> String {
    static KEY: std::sync::OnceLock<SigningKey> = std::sync::OnceLock::new();
    let key = KEY.get_or_init(|| SigningKey::generate(Algorithm::Es256, "k"));
    let keys: Vec<_> = kids.iter().map(|kid| key.renamed(kid).jwk()).collect();
    json!({ "keys": keys }).to_string()
}

// S161, H20, S162
#[tokio::test]
async fn unreachable_issuer_is_retried_with_growing_back_off() {
    let rig = rig(AuthnProfile::HARDENED);
    rig.fetch.fail(DISCOVERY, FetchStage::Connect);
    assert_eq!(rig.refresher.current().unwrap_err(), KeysUnavailable::NotReady);
    assert_eq!(rig.refresher.health(), IssuerHealth::default());
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let pause = rig.refresher.run_due().await;
        pauses.push(pause.as_secs_f64());
        rig.clock.advance(pause);
    }
    assert_eq!(pauses, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
    assert_eq!(rig.fetch.count(DISCOVERY), 8);
    let health = rig.refresher.health();
    assert!(
        !health.is_ready && health.last_error.unwrap().starts_with("discovery failed: no route to"),
        "says why"
    );
    assert_eq!(rig.refresher.current().unwrap_err(), KeysUnavailable::NotReady);

    rig.fetch.answer(DISCOVERY, 200, r#"{"issuer": "https://i", "jwks_uri": "https://i/keys"}"#);
    rig.publish(&["k1"], &[]);
    rig.refresher.run_due().await;
    assert_eq!(rig.kids(), ["k1"]);
    let health = rig.refresher.health();
    assert!(health.is_ready && health.is_discovered && health.last_error.is_none());
    assert_eq!((health.usable_keys, health.fetched), (1, Some(rig.clock.now())));
}

// S161: upstream retries every ten seconds, and discovers once.
#[tokio::test]
async fn profile_kube_retries_every_ten_seconds_and_discovers_once() {
    let rig = rig(AuthnProfile::KUBE);
    rig.fetch.fail(DISCOVERY, FetchStage::Connect);
    for _ in 0..3 {
        assert_eq!(rig.refresher.run_due().await, Duration::from_secs(10));
        rig.advance(10);
    }
    rig.fetch.answer(DISCOVERY, 200, r#"{"issuer": "https://i", "jwks_uri": "https://i/keys"}"#);
    rig.refresher.run_due().await;
    let health = rig.refresher.health();
    assert!(health.is_ready && health.usable_keys == 0, "healthy means discovered, nothing else (S162)");
    assert_eq!(rig.fetches(), 0, "the first token that needs keys fetches them (S163)");
    for _ in 0..5 {
        rig.advance(24 * 3600);
        rig.refresher.run_due().await;
    }
    assert_eq!((rig.fetch.count(DISCOVERY), rig.fetches()), (4, 0));
}

// H20: a failed fetch that a token caused is retried as soon as any other.
#[tokio::test]
async fn failed_fetch_caused_by_a_token_reschedules_the_refresher() {
    let rig = rig(AuthnProfile::HARDENED);
    rig.publish(&["k1"], &[]);
    assert!(rig.refresher.run_due().await > Duration::from_secs(60));
    rig.fetch.answer(KEYS, 500, "");
    assert!(matches!(rig.refresh(RefreshReason::Kid("k2")).await, RefreshResult::Failed(_)));
    rig.refresher.schedule_changed().await;
    assert_eq!(rig.refresher.run_due().await, Duration::from_secs(1));
    rig.publish(&["k1", "k2"], &[]);
    rig.advance(1);
    rig.refresher.run_due().await;
    assert_eq!(rig.kids(), ["k1", "k2"]);
    assert_eq!(rig.refresher.health().last_error, None);
}

// Jitter: from a fifth less to a fifth more.
#[tokio::test]
async fn back_off_has_jitter() {
    for (share, expected) in [(0.0, 0.8), (1.0, 1.2), (9.0, 1.2)] {
        let rig = rig(AuthnProfile::HARDENED);
        rig.fetch.fail(DISCOVERY, FetchStage::Tls);
        let context = JwksContext { random: Arc::new(move || share), ..rig.refresher.context.clone() };
        let refresher = JwksRefresher::new(issuer("https://i"), AuthnProfile::HARDENED, context);
        assert!((refresher.run_due().await.as_secs_f64() - expected).abs() < 1e-6);
    }
}

// S170, H22
#[tokio::test]
async fn keys_are_refreshed_at_nine_tenths_of_their_lifetime() {
    for (headers, minutes) in [
        (&[][..], 9),
        (&[("cache-control", "max-age=3600")], 54),
        (&[("cache-control", "max-age=1")], 0),
        (&[("cache-control", "max-age=99999999")], 54 * 24),
    ] {
        let rig = rig(AuthnProfile::HARDENED);
        rig.publish(&["k1"], headers);
        let pause = rig.refresher.run_due().await;
        let expected = if minutes == 0 { Duration::from_secs(54) } else { Duration::from_secs(minutes * 60) };
        assert_eq!(pause, expected, "{headers:?}");
        rig.publish(&["k2"], headers);
        rig.clock.advance(pause - Duration::from_secs(1));
        rig.refresher.run_due().await;
        assert_eq!(rig.kids(), ["k1"]);
        rig.advance(1);
        let before = rig.refresher.version();
        rig.refresher.run_due().await;
        assert_eq!(rig.kids(), ["k2"], "keys missing from the new set are dropped (A63)");
        assert_ne!(rig.refresher.version(), before);
    }
}

// S168 (d), H22: stale-if-error, with a limit.
#[tokio::test]
async fn keys_survive_an_outage_for_a_day() {
    let rig = rig(AuthnProfile::HARDENED);
    rig.publish(&["k1"], &[]);
    rig.refresher.run_due().await;
    let version = rig.refresher.version();
    rig.fetch.answer(KEYS, 500, "oops");
    let mut elapsed = Duration::ZERO;
    let limit = Duration::from_secs(600 + 24 * 3600);
    while elapsed < limit - Duration::from_secs(61) {
        let pause = rig.refresher.run_due().await.min(limit - Duration::from_secs(61) - elapsed);
        elapsed += pause;
        rig.clock.advance(pause);
    }
    assert_eq!((rig.kids(), rig.refresher.version()), (vec!["k1".to_owned()], version));
    assert!(rig.refresher.trusted_for().unwrap() <= Duration::from_secs(61));
    let health = rig.refresher.health();
    assert!(health.is_ready && health.last_error.unwrap().contains("500"));
    assert!(rig.fetch.count(DISCOVERY) > 2, "discovery is repeated, the keys may have moved (H20)");
    rig.advance(61);
    rig.refresher.run_due().await;
    assert!(
        matches!(rig.refresher.current(), Err(KeysUnavailable::Failed(why)) if why.contains("have expired"))
    );
    assert!(!rig.refresher.health().is_ready && rig.refresher.version() != version);
    rig.publish(&["k1"], &[]);
    rig.advance(60);
    rig.refresher.run_due().await;
    assert_eq!(rig.kids(), ["k1"]);
}

// H20: after five minutes without keys, or after a day, discovery is repeated; the keys may have moved.
#[tokio::test]
async fn moved_keys_are_found() {
    let rig = rig(AuthnProfile::HARDENED);
    rig.publish(&["k1"], &[]);
    rig.refresher.run_due().await;
    rig.fetch.answer(KEYS, 404, "");
    rig.fetch.answer(DISCOVERY, 200, r#"{"issuer": "https://i", "jwks_uri": "https://i/new"}"#);
    rig.fetch.answer("https://i/new", 200, &jwks(&["k2"]));
    let mut passed = Duration::ZERO;
    loop {
        let pause = rig.refresher.run_due().await;
        if rig.kids() == ["k2"] {
            break;
        }
        passed += pause;
        rig.clock.advance(pause);
        assert!(passed <= Duration::from_secs(540 + 360), "found within six minutes of the move");
    }
    // And after a day in any case.
    rig.fetch.answer(DISCOVERY, 200, r#"{"issuer": "https://i", "jwks_uri": "https://i/newest"}"#);
    rig.fetch.answer("https://i/newest", 200, &jwks(&["k3"]));
    rig.advance(24 * 3600);
    rig.refresher.run_due().await;
    assert_eq!(rig.kids(), ["k3"]);
}

// S170, RV1, RV2 (hardened), A10, A64
#[tokio::test]
async fn unknown_key_is_fetched_within_the_rate_limit() {
    let rig = rig(AuthnProfile::HARDENED);
    rig.publish(&["k1"], &[("cache-control", "max-age=3600")]);
    rig.refresher.run_due().await;
    rig.publish(&["k1", "k2"], &[("cache-control", "max-age=3600")]);
    assert_eq!(
        rig.refresh(RefreshReason::Signature).await,
        RefreshResult::Unchanged,
        "a bad signature is no reason to fetch"
    );
    assert_eq!(rig.fetches(), 1);
    assert_eq!(rig.refresh(RefreshReason::Kid("k2")).await, RefreshResult::Newer);
    assert_eq!((rig.kids().len(), rig.fetches()), (2, 2));
    for _ in 0..100 {
        assert_eq!(rig.refresh(RefreshReason::Kid("none")).await, RefreshResult::Unchanged);
    }
    assert_eq!(rig.fetches(), 3, "an unknown key ID causes one request");
    for number in 0..1000 {
        rig.refresh(RefreshReason::Kid(&format!("none-{number}"))).await;
    }
    assert_eq!(rig.fetches(), 4, "many key IDs cause as many requests as the bucket allows");
    rig.advance(10);
    for number in 0..1000 {
        rig.refresh(RefreshReason::Kid(&format!("other-{number}"))).await;
    }
    assert_eq!(rig.fetches(), 5, "one per ten seconds");
}

// S166–S168, RV1, RV2, RV3
#[tokio::test]
async fn profile_kube_fetches_when_verification_fails_and_the_response_is_stale() {
    for (headers, fetches) in [
        (&[][..], true),
        (&[("cache-control", "no-cache")], true),
        (&[("cache-control", "max-age=20")], true),
        (&[("cache-control", "max-age=bogus")], true),
        (&[("cache-control", "max-age=3600")], false),
        (&[("cache-control", "no-store, max-age=3600")], false),
    ] {
        let rig = rig(AuthnProfile::KUBE);
        rig.publish(&["k1"], headers);
        rig.refresher.run_due().await;
        assert_eq!(
            rig.refresh(RefreshReason::Kid("k1")).await,
            RefreshResult::Newer,
            "the first token fetches (S163)"
        );
        assert_eq!((rig.kids(), rig.fetches()), (vec!["k1".to_owned()], 1));
        rig.publish(&["k2"], headers);
        let expected = if fetches { (RefreshResult::Newer, 2) } else { (RefreshResult::Unchanged, 1) };
        assert_eq!((rig.refresh(RefreshReason::Signature).await, rig.fetches()), expected, "{headers:?}");
        // RV3: a failure keeps the current keys.
        rig.fetch.answer(KEYS, 500, "");
        let kids = rig.kids();
        let refreshed = rig.refresh(RefreshReason::Kid("k9")).await;
        assert_eq!(matches!(refreshed, RefreshResult::Failed(why) if why.contains("500")), fetches);
        assert_eq!(rig.kids(), kids);
    }
}

// S169
#[tokio::test]
async fn waiting_requests_share_one_fetch() {
    let rig = rig(AuthnProfile::KUBE);
    rig.publish(&["k1"], &[]);
    rig.refresher.run_due().await;
    let held = rig.refresher.state.lock().await;
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let refresher = Arc::clone(&rig.refresher);
            tokio::spawn(async move { refresher.refresh(RefreshReason::Kid("k1"), 0).await })
        })
        .collect();
    // Every task waits once each has been polled.
    tokio::task::yield_now().await;
    drop(held);
    for one in waiting {
        assert!(matches!(one.await.unwrap(), RefreshResult::Newer | RefreshResult::AlreadyNewer));
    }
    assert_eq!(rig.fetches(), 1);
}

// S165, H21, JV3
#[tokio::test]
async fn invalid_key_set_keeps_the_current_keys() {
    let rig = rig(AuthnProfile::HARDENED);
    rig.publish(&["k1"], &[]);
    rig.refresher.run_due().await;
    for body in ["", "[]", "<html>"] {
        rig.fetch.answer(KEYS, 200, body);
        rig.advance(600);
        rig.refresher.run_due().await;
        assert_eq!(rig.kids(), ["k1"], "{body}");
        assert!(rig.refresher.health().last_error.unwrap().contains("failed to decode keys"), "{body}");
    }
}

// An unchanged document does not invalidate cached decisions.
#[tokio::test]
async fn version_changes_only_with_the_keys() {
    let rig = rig(AuthnProfile::HARDENED);
    rig.publish(&["k1"], &[]);
    rig.refresher.run_due().await;
    let version = rig.refresher.version();
    rig.advance(540);
    rig.refresher.run_due().await;
    assert_eq!((rig.fetches(), rig.refresher.version()), (2, version));
}

// S153, S155, H18
#[tokio::test]
async fn requests_carry_trust_roots_and_limits() {
    let rig = rig(AuthnProfile::HARDENED);
    let mut private = issuer("https://i");
    private.certificate_authority = vec![vec![1], vec![2]];
    let refresher = JwksRefresher::new(private, AuthnProfile::HARDENED, rig.refresher.context.clone());
    rig.publish(&["k1"], &[]);
    refresher.run_due().await;
    let asked = rig.fetch.requests();
    assert_eq!(asked.len(), 2);
    for one in asked {
        assert_eq!((one.roots, one.limits.bytes, one.limits.redirects), (2, 1 << 20, 5));
        assert!(one.limits.keeps_scheme && !one.has_bearer);
    }
}

// A caller that tried old keys learns of newer ones without a request.
#[tokio::test]
async fn refresh_reports_keys_that_arrived_after_the_attempt() {
    for profile in [AuthnProfile::HARDENED, AuthnProfile::KUBE] {
        let rig = rig(profile);
        rig.publish(&["k1"], &[]);
        rig.refresher.run_due().await;
        let tried = rig.refresher.version();
        rig.publish(&["k1", "k2"], &[]);
        assert_eq!(rig.refresh(RefreshReason::Kid("k2")).await, RefreshResult::Newer);
        let fetches = rig.fetches();
        assert_eq!(rig.refresher.refresh(RefreshReason::Kid("k2"), tried).await, RefreshResult::AlreadyNewer);
        assert_eq!(rig.fetches(), fetches);
    }
}

// XV8, S157
#[tokio::test]
async fn discovery_needs_status_200_and_a_valid_document() {
    for profile in [AuthnProfile::KUBE, AuthnProfile::HARDENED] {
        for (status, body) in
            [(201, r#"{"issuer": "https://i", "jwks_uri": "https://i/keys"}"#), (200, "<html>"), (404, "")]
        {
            let rig = rig(profile);
            rig.fetch.answer(DISCOVERY, status, body);
            rig.refresher.run_due().await;
            assert!(!rig.refresher.health().is_discovered, "{status} {body}");
        }
    }
}
