//! What a refresher does over time, with a manual clock and scripted responses.

use navicert_testkit::pki::jws::{Algorithm, SigningKey};
use navicert_types::clock::ManualClock;
use serde_json::json;

use super::*;
use crate::jwks::FetchStage;
use crate::jwks::scripted::{ScriptedFetch, issuer};

const DISCOVERY: &str = "https://i/.well-known/openid-configuration";
const KEYS: &str = "https://i/keys";

struct Fixture {
    fetch: Arc<ScriptedFetch>,
    clock: Arc<ManualClock>,
    refresher: Arc<JwksRefresher>,
}

fn fixture(profile: AuthnProfile) -> Fixture {
    let (fetch, clock) = (Arc::new(ScriptedFetch::default()), Arc::new(ManualClock::at(1_700_000_000)));
    let context = JwksContext {
        fetch: Arc::clone(&fetch) as _,
        clock: Arc::clone(&clock) as _,
        random: Arc::new(|| 0.5),
        recorder: Arc::new(()),
    };
    fetch.answer(DISCOVERY, 200, r#"{"issuer": "https://i", "jwks_uri": "https://i/keys"}"#);
    Fixture { fetch, clock, refresher: Arc::new(JwksRefresher::new(issuer("https://i"), profile, context)) }
}

impl Fixture {
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
    let fixture = fixture(AuthnProfile::HARDENED);
    fixture.fetch.fail(DISCOVERY, FetchStage::Connect);
    assert_eq!(fixture.refresher.current().unwrap_err(), KeysUnavailable::NotReady);
    assert_eq!(fixture.refresher.health(), IssuerHealth::default());
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let pause = fixture.refresher.run_due().await;
        pauses.push(pause.as_secs_f64());
        fixture.clock.advance(pause);
    }
    assert_eq!(pauses, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
    assert_eq!(fixture.fetch.count(DISCOVERY), 8);
    let health = fixture.refresher.health();
    assert!(
        !health.is_ready && health.last_error.unwrap().starts_with("discovery failed: no route to"),
        "says why"
    );
    assert_eq!(fixture.refresher.current().unwrap_err(), KeysUnavailable::NotReady);

    fixture.fetch.answer(DISCOVERY, 200, r#"{"issuer": "https://i", "jwks_uri": "https://i/keys"}"#);
    fixture.publish(&["k1"], &[]);
    fixture.refresher.run_due().await;
    assert_eq!(fixture.kids(), ["k1"]);
    let health = fixture.refresher.health();
    assert!(health.is_ready && health.is_discovered && health.last_error.is_none());
    assert_eq!((health.usable_keys, health.fetched), (1, Some(fixture.clock.now())));
}

// S161: upstream retries every ten seconds, and discovers once.
#[tokio::test]
async fn profile_kube_retries_every_ten_seconds_and_discovers_once() {
    let fixture = fixture(AuthnProfile::KUBE);
    fixture.fetch.fail(DISCOVERY, FetchStage::Connect);
    for _ in 0..3 {
        assert_eq!(fixture.refresher.run_due().await, Duration::from_secs(10));
        fixture.advance(10);
    }
    fixture.fetch.answer(DISCOVERY, 200, r#"{"issuer": "https://i", "jwks_uri": "https://i/keys"}"#);
    fixture.refresher.run_due().await;
    let health = fixture.refresher.health();
    assert!(health.is_ready && health.usable_keys == 0, "healthy means discovered, nothing else (S162)");
    assert_eq!(fixture.fetches(), 0, "the first token that needs keys fetches them (S163)");
    for _ in 0..5 {
        fixture.advance(24 * 3600);
        fixture.refresher.run_due().await;
    }
    assert_eq!((fixture.fetch.count(DISCOVERY), fixture.fetches()), (4, 0));
}

// H20: a failed fetch that a token caused is retried as soon as any other.
#[tokio::test]
async fn failed_fetch_caused_by_a_token_reschedules_the_refresher() {
    let fixture = fixture(AuthnProfile::HARDENED);
    fixture.publish(&["k1"], &[]);
    assert!(fixture.refresher.run_due().await > Duration::from_secs(60));
    fixture.fetch.answer(KEYS, 500, "");
    assert!(matches!(fixture.refresh(RefreshReason::Kid("k2")).await, RefreshResult::Failed(_)));
    fixture.refresher.schedule_changed().await;
    assert_eq!(fixture.refresher.run_due().await, Duration::from_secs(1));
    fixture.publish(&["k1", "k2"], &[]);
    fixture.advance(1);
    fixture.refresher.run_due().await;
    assert_eq!(fixture.kids(), ["k1", "k2"]);
    assert_eq!(fixture.refresher.health().last_error, None);
}

// Jitter: from a fifth less to a fifth more.
#[tokio::test]
async fn back_off_has_jitter() {
    for (share, expected) in [(0.0, 0.8), (1.0, 1.2), (9.0, 1.2)] {
        let fixture = fixture(AuthnProfile::HARDENED);
        fixture.fetch.fail(DISCOVERY, FetchStage::Tls);
        let context = JwksContext { random: Arc::new(move || share), ..fixture.refresher.context.clone() };
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
        let fixture = fixture(AuthnProfile::HARDENED);
        fixture.publish(&["k1"], headers);
        let pause = fixture.refresher.run_due().await;
        let expected = if minutes == 0 { Duration::from_secs(54) } else { Duration::from_secs(minutes * 60) };
        assert_eq!(pause, expected, "{headers:?}");
        fixture.publish(&["k2"], headers);
        fixture.clock.advance(pause - Duration::from_secs(1));
        fixture.refresher.run_due().await;
        assert_eq!(fixture.kids(), ["k1"]);
        fixture.advance(1);
        let before = fixture.refresher.version();
        fixture.refresher.run_due().await;
        assert_eq!(fixture.kids(), ["k2"], "keys missing from the new set are dropped (A63)");
        assert_ne!(fixture.refresher.version(), before);
    }
}

// S168 (d), H22: stale-if-error, with a limit.
#[tokio::test]
async fn keys_survive_an_outage_for_a_day() {
    let fixture = fixture(AuthnProfile::HARDENED);
    fixture.publish(&["k1"], &[]);
    fixture.refresher.run_due().await;
    let version = fixture.refresher.version();
    fixture.fetch.answer(KEYS, 500, "oops");
    let mut elapsed = Duration::ZERO;
    let limit = Duration::from_secs(600 + 24 * 3600);
    while elapsed < limit - Duration::from_secs(61) {
        let pause = fixture.refresher.run_due().await.min(limit - Duration::from_secs(61) - elapsed);
        elapsed += pause;
        fixture.clock.advance(pause);
    }
    assert_eq!((fixture.kids(), fixture.refresher.version()), (vec!["k1".to_owned()], version));
    assert!(fixture.refresher.trusted_for().unwrap() <= Duration::from_secs(61));
    let health = fixture.refresher.health();
    assert!(health.is_ready && health.last_error.unwrap().contains("500"));
    assert!(fixture.fetch.count(DISCOVERY) > 2, "discovery is repeated, the keys may have moved (H20)");
    fixture.advance(61);
    fixture.refresher.run_due().await;
    assert!(
        matches!(fixture.refresher.current(), Err(KeysUnavailable::Failed(why)) if why.contains("have expired"))
    );
    assert!(!fixture.refresher.health().is_ready && fixture.refresher.version() != version);
    fixture.publish(&["k1"], &[]);
    fixture.advance(60);
    fixture.refresher.run_due().await;
    assert_eq!(fixture.kids(), ["k1"]);
}

// H20: after five minutes without keys, or after a day, discovery is repeated; the keys may have moved.
#[tokio::test]
async fn moved_keys_are_found() {
    let fixture = fixture(AuthnProfile::HARDENED);
    fixture.publish(&["k1"], &[]);
    fixture.refresher.run_due().await;
    fixture.fetch.answer(KEYS, 404, "");
    fixture.fetch.answer(DISCOVERY, 200, r#"{"issuer": "https://i", "jwks_uri": "https://i/new"}"#);
    fixture.fetch.answer("https://i/new", 200, &jwks(&["k2"]));
    let mut passed = Duration::ZERO;
    loop {
        let pause = fixture.refresher.run_due().await;
        if fixture.kids() == ["k2"] {
            break;
        }
        passed += pause;
        fixture.clock.advance(pause);
        assert!(passed <= Duration::from_secs(540 + 360), "found within six minutes of the move");
    }
    // And after a day in any case.
    fixture.fetch.answer(DISCOVERY, 200, r#"{"issuer": "https://i", "jwks_uri": "https://i/newest"}"#);
    fixture.fetch.answer("https://i/newest", 200, &jwks(&["k3"]));
    fixture.advance(24 * 3600);
    fixture.refresher.run_due().await;
    assert_eq!(fixture.kids(), ["k3"]);
}

// S170, RV1, RV2 (hardened), A10, A64
#[tokio::test]
async fn unknown_key_is_fetched_within_the_rate_limit() {
    let fixture = fixture(AuthnProfile::HARDENED);
    fixture.publish(&["k1"], &[("cache-control", "max-age=3600")]);
    fixture.refresher.run_due().await;
    fixture.publish(&["k1", "k2"], &[("cache-control", "max-age=3600")]);
    assert_eq!(
        fixture.refresh(RefreshReason::Signature).await,
        RefreshResult::Unchanged,
        "a bad signature is no reason to fetch"
    );
    assert_eq!(fixture.fetches(), 1);
    assert_eq!(fixture.refresh(RefreshReason::Kid("k2")).await, RefreshResult::Newer);
    assert_eq!((fixture.kids().len(), fixture.fetches()), (2, 2));
    for _ in 0..100 {
        assert_eq!(fixture.refresh(RefreshReason::Kid("none")).await, RefreshResult::Unchanged);
    }
    assert_eq!(fixture.fetches(), 3, "an unknown key ID causes one request");
    for number in 0..1000 {
        fixture.refresh(RefreshReason::Kid(&format!("none-{number}"))).await;
    }
    assert_eq!(fixture.fetches(), 5, "many key IDs cause as many requests as the bucket allows");
    fixture.advance(10);
    for number in 0..1000 {
        fixture.refresh(RefreshReason::Kid(&format!("other-{number}"))).await;
    }
    assert_eq!(fixture.fetches(), 6, "one per ten seconds");
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
        let fixture = fixture(AuthnProfile::KUBE);
        fixture.publish(&["k1"], headers);
        fixture.refresher.run_due().await;
        assert_eq!(
            fixture.refresh(RefreshReason::Kid("k1")).await,
            RefreshResult::Newer,
            "the first token fetches (S163)"
        );
        assert_eq!((fixture.kids(), fixture.fetches()), (vec!["k1".to_owned()], 1));
        fixture.publish(&["k2"], headers);
        let expected = if fetches { (RefreshResult::Newer, 2) } else { (RefreshResult::Unchanged, 1) };
        assert_eq!(
            (fixture.refresh(RefreshReason::Signature).await, fixture.fetches()),
            expected,
            "{headers:?}"
        );
        // RV3: a failure keeps the current keys.
        fixture.fetch.answer(KEYS, 500, "");
        let kids = fixture.kids();
        let refreshed = fixture.refresh(RefreshReason::Kid("k9")).await;
        assert_eq!(matches!(refreshed, RefreshResult::Failed(why) if why.contains("500")), fetches);
        assert_eq!(fixture.kids(), kids);
    }
}

// S169
#[tokio::test]
async fn waiting_requests_share_one_fetch() {
    let fixture = fixture(AuthnProfile::KUBE);
    fixture.publish(&["k1"], &[]);
    fixture.refresher.run_due().await;
    let held = fixture.refresher.state.lock().await;
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let refresher = Arc::clone(&fixture.refresher);
            tokio::spawn(async move { refresher.refresh(RefreshReason::Kid("k1"), 0).await })
        })
        .collect();
    // Every task waits once each has been polled.
    tokio::task::yield_now().await;
    drop(held);
    for one in waiting {
        assert!(matches!(one.await.unwrap(), RefreshResult::Newer | RefreshResult::AlreadyNewer));
    }
    assert_eq!(fixture.fetches(), 1);
}

// S165, H21, JV3
#[tokio::test]
async fn invalid_key_set_keeps_the_current_keys() {
    let fixture = fixture(AuthnProfile::HARDENED);
    fixture.publish(&["k1"], &[]);
    fixture.refresher.run_due().await;
    for body in ["", "[]", "<html>"] {
        fixture.fetch.answer(KEYS, 200, body);
        fixture.advance(600);
        fixture.refresher.run_due().await;
        assert_eq!(fixture.kids(), ["k1"], "{body}");
        assert!(fixture.refresher.health().last_error.unwrap().contains("failed to decode keys"), "{body}");
    }
}

// An unchanged document does not invalidate cached decisions.
#[tokio::test]
async fn version_changes_only_with_the_keys() {
    let fixture = fixture(AuthnProfile::HARDENED);
    fixture.publish(&["k1"], &[]);
    fixture.refresher.run_due().await;
    let version = fixture.refresher.version();
    fixture.advance(540);
    fixture.refresher.run_due().await;
    assert_eq!((fixture.fetches(), fixture.refresher.version()), (2, version));
}

// S153, S155, H18
#[tokio::test]
async fn requests_carry_trust_roots_and_limits() {
    let fixture = fixture(AuthnProfile::HARDENED);
    let mut private = issuer("https://i");
    private.certificate_authority = vec![vec![1], vec![2]];
    let refresher = JwksRefresher::new(private, AuthnProfile::HARDENED, fixture.refresher.context.clone());
    fixture.publish(&["k1"], &[]);
    refresher.run_due().await;
    let asked = fixture.fetch.requests();
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
        let fixture = fixture(profile);
        fixture.publish(&["k1"], &[]);
        fixture.refresher.run_due().await;
        let tried = fixture.refresher.version();
        fixture.publish(&["k1", "k2"], &[]);
        assert_eq!(fixture.refresh(RefreshReason::Kid("k2")).await, RefreshResult::Newer);
        let fetches = fixture.fetches();
        assert_eq!(
            fixture.refresher.refresh(RefreshReason::Kid("k2"), tried).await,
            RefreshResult::AlreadyNewer
        );
        assert_eq!(fixture.fetches(), fetches);
    }
}

// XV8, S157
#[tokio::test]
async fn discovery_needs_status_200_and_a_valid_document() {
    for profile in [AuthnProfile::KUBE, AuthnProfile::HARDENED] {
        for (status, body) in
            [(201, r#"{"issuer": "https://i", "jwks_uri": "https://i/keys"}"#), (200, "<html>"), (404, "")]
        {
            let fixture = fixture(profile);
            fixture.fetch.answer(DISCOVERY, status, body);
            fixture.refresher.run_due().await;
            assert!(!fixture.refresher.health().is_discovered, "{status} {body}");
        }
    }
}

/// A fetch that hangs until it is released, for the key set.
#[derive(Debug)]
struct HangingFetch {
    inner: Arc<ScriptedFetch>,
    released: watch::Sender<bool>,
}

impl Fetch for HangingFetch {
    fn get<'f>(
        &'f self,
        request: FetchRequest<'f>,
    ) -> BoxFuture<'f, Result<crate::jwks::FetchResponse, crate::jwks::FetchError>> {
        Box::pin(async move {
            let answer = self.inner.get(request).await;
            if request.url == KEYS {
                let _ = self.released.subscribe().wait_for(|released| *released).await;
            }
            answer
        })
    }
}

/// A refresher with keys, driven by a task of its own, whose next fetch hangs.
async fn hanging(profile: AuthnProfile) -> (Fixture, Arc<HangingFetch>, tokio::task::JoinHandle<()>) {
    let mut fixture = fixture(profile);
    fixture.publish(&["k1"], &[]);
    let fetch =
        Arc::new(HangingFetch { inner: Arc::clone(&fixture.fetch), released: watch::Sender::new(true) });
    let context = JwksContext { fetch: Arc::clone(&fetch) as _, ..fixture.refresher.context.clone() };
    fixture.refresher = Arc::new(JwksRefresher::new(issuer("https://i"), profile, context));
    fixture.refresher.run_due().await;
    fixture.refresh(RefreshReason::Kid("k1")).await;
    fetch.released.send_replace(false);
    let refresher = Arc::clone(&fixture.refresher);
    let driver = tokio::spawn(async move {
        let _driver = refresher.attach_driver();
        loop {
            refresher.run_due().await;
            refresher.schedule_changed().await;
        }
    });
    // The task attaches itself when it is first polled.
    tokio::task::yield_now().await;
    (fixture, fetch, driver)
}

fn ask(refresher: &Arc<JwksRefresher>, kid: String) -> tokio::task::JoinHandle<RefreshResult> {
    let refresher = Arc::clone(refresher);
    tokio::spawn(async move { refresher.refresh(RefreshReason::Kid(&kid), refresher.version()).await })
}

async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

fn is_busy(result: &RefreshResult) -> bool {
    matches!(result, RefreshResult::Failed(why) if why.contains("has not answered yet"))
}

// S169: an issuer that hangs holds up one request, others for a second, and too many or later ones not at all.
#[tokio::test]
async fn hanging_fetch_holds_up_requests_for_a_second_at_most() {
    for profile in [AuthnProfile::HARDENED, AuthnProfile::KUBE] {
        let (fixture, fetch, driver) = hanging(profile).await;
        let before = fixture.fetches();
        let first = ask(&fixture.refresher, "first".to_owned());
        settle().await;
        let waiting: Vec<_> =
            (0..300).map(|number| ask(&fixture.refresher, format!("random-{number}"))).collect();
        settle().await;
        let answered = waiting.iter().filter(|one| one.is_finished()).count();
        assert_eq!(answered, 300 - 255, "the number of waiting requests is bounded");
        fixture.advance(1);
        assert_eq!(fixture.refresher.deadlines().expire(), None);
        settle().await;
        for one in waiting {
            assert!(one.is_finished() && is_busy(&one.await.unwrap()), "a second is enough");
        }
        for number in 0..300 {
            let result = fixture.refresh(RefreshReason::Kid(&format!("late-{number}"))).await;
            assert!(is_busy(&result), "answered at once: {result:?}");
        }
        assert!(!first.is_finished(), "the request that caused the fetch waits for it");
        assert_eq!(fixture.fetches(), before + 1);
        // A cancelled request cancels no fetch, and its keys arrive.
        first.abort();
        fixture.publish(&["k1", "k2"], &[]);
        settle().await;
        fetch.released.send_replace(true);
        settle().await;
        assert_eq!(fixture.fetches(), before + 1, "the same fetch");
        driver.abort();
        assert!(driver.await.is_err());
    }
}

// A driver that ends leaves no request behind.
#[tokio::test]
async fn requests_do_not_wait_for_a_driver_that_ended() {
    let (fixture, _fetch, driver) = hanging(AuthnProfile::KUBE).await;
    let waiting = ask(&fixture.refresher, "k2".to_owned());
    settle().await;
    assert!(!waiting.is_finished());
    driver.abort();
    assert!(driver.await.is_err());
    settle().await;
    assert!(waiting.is_finished());
}

/// After how many tenths of a second a token that asks every tenth gets keys which are published after `published` tenths.
async fn found_after(fixture: &Fixture, wanted: RefreshReason<'_>, published: u32) -> u32 {
    for tenth in 0..300 {
        if tenth == published {
            fixture.publish(&["k1", "k2"], &[("cache-control", "max-age=3600")]);
        }
        if fixture.refresh(wanted).await == RefreshResult::Newer {
            return tenth;
        }
        fixture.clock.advance(Duration::from_millis(100));
    }
    panic!("the key is not found within half a minute");
}

// S170: a key that is published after its first token is found soon, at whatever moment it is published.
#[tokio::test]
async fn late_key_is_found_by_the_next_retry() {
    for published in [1, 8, 30, 31, 32, 33, 45, 70, 120] {
        let fixture = fixture(AuthnProfile::HARDENED);
        fixture.publish(&["k1"], &[("cache-control", "max-age=3600")]);
        fixture.refresher.run_due().await;
        let found = found_after(&fixture, RefreshReason::Kid("k2"), published).await;
        let latest = published + (published / 10).max(2);
        assert!((published..=latest).contains(&found), "published after {published}, found after {found}");
        assert!(fixture.fetches() <= 2 + 40, "{} fetches", fixture.fetches());
    }
}

// S170: rotations in quick succession are all found at once.
#[tokio::test]
async fn every_rotation_is_found_at_once() {
    let fixture = fixture(AuthnProfile::HARDENED);
    fixture.publish(&["k0"], &[]);
    fixture.refresher.run_due().await;
    for number in 1..10 {
        let kid = format!("k{number}");
        fixture.publish(&[&kid], &[]);
        assert_eq!(fixture.refresh(RefreshReason::Kid(&kid)).await, RefreshResult::Newer, "{kid}");
    }
}

// S170: an outage costs a token that needs keys little more than its own length, with keys and without any.
#[tokio::test]
async fn outage_is_over_for_tokens_soon() {
    for (outage, latest) in [(3, 4), (30, 31), (120, 123)] {
        let known = fixture(AuthnProfile::HARDENED);
        known.publish(&["k1"], &[]);
        known.refresher.run_due().await;
        let new = fixture(AuthnProfile::HARDENED);
        for (fixture, wanted) in [(known, RefreshReason::Kid("k2")), (new, RefreshReason::NoKeys)] {
            fixture.fetch.answer(KEYS, 500, "");
            let found = found_after(&fixture, wanted, outage).await;
            assert!((outage..=latest).contains(&found), "{wanted:?} after {found} tenths of a second");
        }
    }
}

// S161, S108: upstream discovers by its schedule only.
#[tokio::test]
async fn profile_kube_does_not_discover_on_demand() {
    let fixture = fixture(AuthnProfile::KUBE);
    fixture.fetch.answer(DISCOVERY, 500, "");
    fixture.refresher.run_due().await;
    for _ in 0..20 {
        assert_eq!(fixture.refresh(RefreshReason::NoKeys).await, RefreshResult::Unchanged);
        fixture.clock.advance(Duration::from_millis(100));
    }
    assert_eq!(fixture.fetch.count(DISCOVERY), 1);
}
