//! What is remembered, for how long, and what ends it.

use super::*;
use crate::config::load;
use crate::jwks::{BoxFuture, KeySet, KeysUnavailable, Refreshed, Wanted};
use crate::jwt::Algorithms;
use crate::profile::Profile;
use crate::{Authenticators, Question};
use navicert_testkit::jws::{Algorithm, SigningKey};
use navicert_types::FieldPath;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};

const GROUNDS: Grounds = Grounds { generation: 1, revocations: 1 };

fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + milliseconds).unwrap()
}

/// Keys whose version and trust a test decides on.
#[derive(Debug, Default)]
struct TestKeys {
    version: AtomicU64,
    trusted: Option<Duration>,
}

impl Keys for TestKeys {
    fn current(&self) -> Result<Arc<KeySet>, KeysUnavailable> {
        Ok(Arc::default())
    }
    fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }
    fn trusted_for(&self) -> Option<Duration> {
        self.trusted
    }
    fn refresh<'f>(&'f self, _: Wanted<'f>, _: u64) -> BoxFuture<'f, Refreshed> {
        Box::pin(std::future::ready(Refreshed::Same))
    }
}

/// Users are made by mappings alone, so one is made.
fn accepted() -> Judgement {
    let key = SigningKey::generate(Algorithm::Es256, "k");
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {"url": "https://i", "audiences": ["a"]},
            "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
        }],
    });
    let compiled = load(config.to_string().as_bytes(), &Profile::KUBE).unwrap().compiled;
    let keys = KeySet::parse(json!({"keys": [key.jwk()]}).to_string().as_bytes(), &Profile::KUBE).unwrap();
    let keys = Arc::new(crate::jwks::FixedKeys::new(keys));
    let authenticators = Authenticators::new(compiled, |_| Arc::clone(&keys) as _);
    let token = key.token(&json!({"iss": "https://i", "aud": "a", "sub": "ann", "exp": 1_700_000_300}));
    let outcome = authenticators.authenticate(&Question::new(&token, at(0)));
    assert!(matches!(outcome, Outcome::Authenticated(_)), "{outcome:?}");
    Judgement { outcome, authenticator: None }
}

fn evidence(expires: i64, keys: &Arc<TestKeys>) -> Option<Evidence> {
    let keys = Arc::clone(keys);
    Some(Evidence { expires: 1_700_000_000 + expires, version: keys.version(), keys })
}

// S309, S147, PV19
#[test]
fn an_accepted_token_is_remembered_for_ten_seconds_or_until_it_expires() {
    let keys = Arc::<TestKeys>::default();
    let fading = Arc::new(TestKeys { trusted: Some(Duration::from_secs(3)), ..TestKeys::default() });
    for (expires, keys, last) in
        [(300, &keys, 9_999), (4, &keys, 3_999), (300, &fading, 2_999), (0, &keys, -1)]
    {
        let cache = TokenCache::new();
        let name = cache.name("token");
        cache.keep(name, GROUNDS, at(0), &accepted(), evidence(expires, keys));
        assert_eq!(cache.find(&name, GROUNDS, at(0)).is_some(), last > 0);
        assert_eq!(cache.find(&name, GROUNDS, at(last)).is_some(), last > 0, "{expires}");
        assert!(cache.find(&name, GROUNDS, at(last + 1)).is_none(), "{expires}");
        assert!(cache.find(&name, GROUNDS, at(-1)).is_none(), "the clock was set back");
        assert!(cache.find(&cache.name("tokem"), GROUNDS, at(0)).is_none());
    }
}

// S309, S189, S300, A63
#[test]
fn a_new_configuration_a_new_list_or_new_keys_end_it() {
    let (cache, keys) = (TokenCache::new(), Arc::<TestKeys>::default());
    let name = cache.name("token");
    cache.keep(name, GROUNDS, at(0), &accepted(), evidence(300, &keys));
    assert!(cache.find(&name, GROUNDS, at(1)).is_some());
    assert!(cache.find(&name, Grounds { generation: 2, ..GROUNDS }, at(1)).is_none());
    assert!(cache.find(&name, Grounds { revocations: 2, ..GROUNDS }, at(1)).is_none());
    keys.version.store(7, Ordering::Relaxed);
    assert!(cache.find(&name, GROUNDS, at(1)).is_none());
}

// S279, S309: only what no time heals, for a second.
#[test]
fn only_nonsense_is_remembered_as_refused() {
    let refused = |refusal| {
        let cache = TokenCache::new();
        let name = cache.name("token");
        let authenticator = FieldPath::root().field("jwt").index(0);
        let outcome = Outcome::Rejected(Box::new(Rejection { authenticator, refusal }));
        let judgement = Judgement { outcome, authenticator: None };
        cache.keep(name, GROUNDS, at(0), &judgement, None);
        let outcome = judgement.outcome;
        let found = |now| match cache.find(&name, GROUNDS, now).map(|found| found.outcome) {
            Some(Outcome::Rejected(found)) => Some((found.to_string(), found.authenticator.to_string())),
            Some(other) => panic!("{other:?}"),
            None => None,
        };
        assert_eq!(found(at(1_000)), None);
        found(at(999))
            .inspect(|(text, path)| assert_eq!((text, path.as_str()), (&outcome_text(&outcome), "jwt[0]")))
    };
    for refusal in
        [Refusal::Signature, Refusal::Malformed("x"), Refusal::Algorithm { allowed: Algorithms::ALL }]
    {
        assert!(refused(refusal).is_some());
    }
    for refusal in [
        Refusal::NotReady,
        Refusal::UnknownKey,
        Refusal::Expired,
        Refusal::NotYetValid,
        Refusal::Revoked,
        Refusal::Audience,
        Refusal::Keys(String::new()),
        Refusal::Distributed("x"),
    ] {
        assert!(refused(refusal).is_none());
    }
}

fn outcome_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Rejected(rejection) => rejection.to_string(),
        _ => String::new(),
    }
}

// S148: bounded, and what has ended makes room first.
#[test]
fn the_cache_does_not_grow_without_end() {
    let (cache, keys, outcome) = (TokenCache::new(), Arc::<TestKeys>::default(), accepted());
    for number in 0..2 * MOST_ACCEPTED {
        cache.keep(cache.name(&number.to_string()), GROUNDS, at(0), &outcome, evidence(300, &keys));
    }
    assert!(cache.len() <= MOST_ACCEPTED, "{}", cache.len());
    assert!(cache.len() > MOST_ACCEPTED / 2);
    for number in 0..10_000 {
        cache.keep(
            cache.name(&format!("later {number}")),
            GROUNDS,
            at(20_000),
            &outcome,
            evidence(300, &keys),
        );
    }
    assert!(cache.len() <= 10_000 + SHARDS, "what had ended is gone: {}", cache.len());
}

// S282: what is remembered is not the token, and two caches call it differently.
#[test]
fn a_name_says_nothing_about_the_token() {
    let (one, other) = (TokenCache::new(), TokenCache::new());
    assert_ne!(one.name("token").0, other.name("token").0);
    assert_eq!(one.name("token").0, one.name("token").0);
    assert!(!format!("{one:?}").contains("token\""));
}
