//! Which decisions are cached, for how long, and what invalidates them.

use super::*;
use crate::config::load;
use crate::jwks::{BoxFuture, KeySet, KeysUnavailable, RefreshReason, RefreshResult};
use crate::jwt::JwsAlgorithmSet;
use crate::model::outcome::Rejection;
use crate::profile::AuthnProfile;
use crate::{Authenticators, AuthnRequest};
use navicert_testkit::pki::jws::{Algorithm, SigningKey};
use navicert_types::FieldPath;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

const EPOCH: CacheEpoch = CacheEpoch { generation: 1, revocations: 1 };

fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + milliseconds).unwrap()
}

/// Keys with a version and a trust period chosen by the test.
#[derive(Debug, Default)]
struct TestKeys {
    version: AtomicU64,
    trusted: Option<Duration>,
}

impl KeySource for TestKeys {
    fn current(&self) -> Result<Arc<KeySet>, KeysUnavailable> {
        Ok(Arc::default())
    }
    fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }
    fn trusted_for(&self) -> Option<Duration> {
        self.trusted
    }
    fn refresh<'f>(&'f self, _: RefreshReason<'f>, _: u64) -> BoxFuture<'f, RefreshResult> {
        Box::pin(std::future::ready(RefreshResult::Unchanged))
    }
}

/// A decision on a token that expires so many seconds after the start. Only mappings construct users, so this
/// authenticates a token.
fn accepted(expires: i64) -> AuthnDecision {
    let key = SigningKey::generate(Algorithm::Es256, "k");
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {"url": "https://i", "audiences": ["a"]},
            "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
        }],
    });
    let compiled = load(config.to_string().as_bytes(), &AuthnProfile::KUBE).unwrap().compiled;
    let keys =
        KeySet::parse(json!({"keys": [key.jwk()]}).to_string().as_bytes(), &AuthnProfile::KUBE).unwrap();
    let keys = Arc::new(crate::jwks::StaticKeys::new(keys));
    let authenticators = Authenticators::new(compiled, |_| Arc::clone(&keys) as _);
    let claims = json!({
        "iss": "https://i", "aud": ["a", "b"], "sub": "ann", "jti": "j", "exp": 1_700_000_000 + expires,
    });
    let token = key.token(&claims);
    let decision = decide(&authenticators, &token);
    assert!(matches!(decision.outcome, AuthnOutcome::Authenticated(_)), "{decision:?}");
    decision
}

/// The decision of authenticators that never have to wait.
fn decide(authenticators: &Authenticators, token: &str) -> AuthnDecision {
    let request = AuthnRequest::new(token, at(0));
    let decided = std::pin::pin!(authenticators.decide(&request));
    match decided.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(fresh) => fresh.decision,
        Poll::Pending => panic!("keys are at hand"),
    }
}

fn validity(keys: &Arc<TestKeys>) -> Option<CacheValidity> {
    let keys = Arc::clone(keys);
    Some(CacheValidity { version: keys.version(), keys })
}

// The cached decision is the whole one.
#[test]
fn cached_decision_has_audiences_expiry_jti_and_issuer() {
    let (cache, keys) = (TokenCache::new(), Arc::<TestKeys>::default());
    let name = cache.digest("token");
    cache.insert(name, EPOCH, at(0), &accepted(300), validity(&keys));
    let found = cache.find(&name, EPOCH, at(1)).unwrap();
    assert_eq!(found.audiences(), ["a", "b"]);
    assert_eq!(
        (found.expires(), found.jti(), found.issuer()),
        (Some(1_700_000_300), Some("j"), Some("https://i"))
    );
}

// S309, S147, PV19
#[test]
fn accepted_token_is_cached_for_ten_seconds_or_until_it_expires() {
    let keys = Arc::<TestKeys>::default();
    let fading = Arc::new(TestKeys { trusted: Some(Duration::from_secs(3)), ..TestKeys::default() });
    for (expires, keys, last) in
        [(300, &keys, 9_999), (4, &keys, 3_999), (300, &fading, 2_999), (0, &keys, -1)]
    {
        let cache = TokenCache::new();
        let name = cache.digest("token");
        cache.insert(name, EPOCH, at(0), &accepted(expires), validity(keys));
        assert_eq!(cache.find(&name, EPOCH, at(0)).is_some(), last > 0);
        assert_eq!(cache.find(&name, EPOCH, at(last)).is_some(), last > 0, "{expires}");
        assert!(cache.find(&name, EPOCH, at(last + 1)).is_none(), "{expires}");
        assert!(cache.find(&name, EPOCH, at(-1)).is_none(), "the clock was set back");
        assert!(cache.find(&cache.digest("tokem"), EPOCH, at(0)).is_none());
    }
}

// S309, S189, S300, A63
#[test]
fn reload_new_revocation_list_or_new_keys_invalidate_entries() {
    let (cache, keys) = (TokenCache::new(), Arc::<TestKeys>::default());
    let name = cache.digest("token");
    cache.insert(name, EPOCH, at(0), &accepted(300), validity(&keys));
    assert!(cache.find(&name, EPOCH, at(1)).is_some());
    assert!(cache.find(&name, CacheEpoch { generation: 2, ..EPOCH }, at(1)).is_none());
    assert!(cache.find(&name, CacheEpoch { revocations: 2, ..EPOCH }, at(1)).is_none());
    keys.version.store(7, Ordering::Relaxed);
    assert!(cache.find(&name, EPOCH, at(1)).is_none());
}

// S279, S309: only permanent rejections, for one second.
#[test]
fn only_permanent_rejections_are_cached() {
    let refused = |refusal| {
        let cache = TokenCache::new();
        let name = cache.digest("token");
        let authenticator = FieldPath::root().field("jwt").index(0);
        let outcome = AuthnOutcome::Rejected(Box::new(Rejection { authenticator, refusal }));
        let decision = AuthnDecision::without_issuer(outcome);
        cache.insert(name, EPOCH, at(0), &decision, None);
        let outcome = decision.outcome;
        let found = |now| match cache.find(&name, EPOCH, now).map(|found| found.outcome) {
            Some(AuthnOutcome::Rejected(found)) => Some((found.to_string(), found.authenticator.to_string())),
            Some(other) => panic!("{other:?}"),
            None => None,
        };
        assert_eq!(found(at(1_000)), None);
        found(at(999))
            .inspect(|(text, path)| assert_eq!((text, path.as_str()), (&outcome_text(&outcome), "jwt[0]")))
    };
    for refusal in
        [Refusal::Signature, Refusal::Malformed("x"), Refusal::Algorithm { allowed: JwsAlgorithmSet::ALL }]
    {
        assert!(refused(refusal).is_some());
    }
    for refusal in [
        Refusal::NotReady,
        Refusal::UnknownKey,
        Refusal::Expired,
        Refusal::NotYetValid { leeway: 60, by: "Kubernetes 1.37" },
        Refusal::Revoked,
        Refusal::Audience,
        Refusal::Keys(String::new()),
        Refusal::Distributed("x"),
    ] {
        assert!(refused(refusal).is_none());
    }
}

fn outcome_text(outcome: &AuthnOutcome) -> String {
    match outcome {
        AuthnOutcome::Rejected(rejection) => rejection.to_string(),
        _ => String::new(),
    }
}

// S148: bounded; expired entries are evicted first.
#[test]
fn cache_size_is_bounded() {
    let (cache, keys, outcome) = (TokenCache::new(), Arc::<TestKeys>::default(), accepted(300));
    for number in 0..2 * MAX_ACCEPTED_ENTRIES {
        cache.insert(cache.digest(&number.to_string()), EPOCH, at(0), &outcome, validity(&keys));
    }
    assert!(cache.len() <= MAX_ACCEPTED_ENTRIES, "{}", cache.len());
    assert!(cache.len() > MAX_ACCEPTED_ENTRIES / 2);
    for number in 0..10_000 {
        cache.insert(cache.digest(&format!("later {number}")), EPOCH, at(20_000), &outcome, validity(&keys));
    }
    assert!(cache.len() <= 10_000 + SHARDS, "expired entries are evicted: {}", cache.len());
}

// S282: the key is not the token, and differs between caches.
#[test]
fn digest_does_not_reveal_the_token() {
    let (one, other) = (TokenCache::new(), TokenCache::new());
    assert_ne!(one.digest("token").0, other.digest("token").0);
    assert_eq!(one.digest("token").0, one.digest("token").0);
    assert!(!format!("{one:?}").contains("token\""));
}
