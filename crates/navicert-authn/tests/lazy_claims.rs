//! S181: with `lazyDistributedClaims`, a distributed claim is fetched once when an expression uses it, and never
//! otherwise.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::sync::Arc;

use navicert_authn::config::{AuthnReloader, ConfigSources};
use navicert_authn::jwks::{JwksContext, ScriptedFetch};
use navicert_authn::metrics::AuthnMetrics;
use navicert_authn::{AuthnOutcome, Refusal};
use navicert_testkit::pki::jws::{Algorithm, SigningKey};
use navicert_types::clock::ManualClock;
use serde_json::{Value, json};

const NOW: i64 = 1_800_000_000;

struct Fixture {
    key: SigningKey,
    fetch: Arc<ScriptedFetch>,
}

impl Fixture {
    fn new() -> Self {
        Fixture { key: SigningKey::generate(Algorithm::Es256, "k"), fetch: Arc::default() }
    }

    /// Serves a claim at an endpoint of the issuer.
    fn serve(&self, claim: &str, value: &Value) {
        let mut claims = json!({"iss": "https://i", "aud": "a", "sub": "ann", "exp": NOW + 300});
        claims.as_object_mut().unwrap().insert(claim.to_owned(), value.clone());
        self.fetch.answer(&format!("https://i/{claim}"), 200, &self.key.token(&claims));
    }

    /// The outcome of a token with distributed claims `team` and `rank`, under one rule.
    async fn outcome(&self, rule: &str, is_lazy: bool) -> String {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let write = |name: &str, value: &Value| std::fs::write(at(name), value.to_string()).unwrap();
        write(
            "config.yaml",
            &json!({
                "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
                "jwt": [{
                    "issuer": {"url": "https://i", "audiences": ["a"]},
                    "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
                    "claimValidationRules": [{"expression": rule}],
                }],
            }),
        );
        write("keys.json", &json!({"keys": [self.key.jwk()]}));
        write(
            "navicert.yaml",
            &json!({
                "apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration",
                "issuers": [{"url": "https://i", "jwksFile": at("keys.json"), "lazyDistributedClaims": is_lazy}],
            }),
        );
        let clock = Arc::new(ManualClock::at(NOW));
        let context = JwksContext {
            fetch: Arc::clone(&self.fetch) as _,
            recorder: Arc::new(AuthnMetrics::new("test", Arc::clone(&clock) as _)),
            clock,
            random: Arc::new(|| 0.5),
        };
        let sources = ConfigSources {
            config: at("config.yaml").into(),
            navicert_config: Some(at("navicert.yaml")),
            profile: None,
            kube_version: None,
        };
        let token = self.key.token(&json!({
            "iss": "https://i", "aud": "a", "sub": "ann", "exp": NOW + 300,
            "_claim_names": {"team": "t", "rank": "r", "nowhere": "n"},
            "_claim_sources": {
                "t": {"endpoint": "https://i/team"}, "r": {"endpoint": "https://i/rank"}, "n": {"JWT": "x"},
            },
        }));
        match AuthnReloader::open(sources, context).unwrap().authenticator().authenticate(&token).await {
            AuthnOutcome::Authenticated(user) => user.username().to_owned(),
            AuthnOutcome::Rejected(why) => match &why.refusal {
                Refusal::Evaluation { error, .. } => error.to_string(),
                other => other.class().to_string(),
            },
            AuthnOutcome::NoOpinion(why) => why.to_string(),
        }
    }

    /// Number of fetches of each claim since `earlier`.
    fn fetched(&self, earlier: [usize; 2]) -> [usize; 2] {
        let [team, rank] = earlier;
        [self.fetch.count("https://i/team") - team, self.fetch.count("https://i/rank") - rank]
    }

    fn counts(&self) -> [usize; 2] {
        self.fetched([0, 0])
    }
}

// S181, S306
#[tokio::test]
async fn claim_is_fetched_once_when_an_expression_uses_it() {
    let fixture = Fixture::new();
    fixture.serve("team", &json!("red"));
    fixture.serve("rank", &json!(7));
    for (rule, outcome, fetches) in [
        ("claims.team == 'red'", "ann", [1, 0]),
        ("claims.team == 'blue'", "claim_rule", [1, 0]),
        ("claims.team == 'red' && claims.team != 'blue' && claims.rank > 5", "ann", [1, 1]),
        ("claims.?team.orValue('') == 'red'", "ann", [1, 0]),
        ("has(claims.team) && has(claims.rank)", "ann", [0, 0]),
        ("has(claims.nowhere)", "claim_rule", [0, 0]),
        ("claims.sub == 'ann'", "ann", [0, 0]),
        ("claims.sub == 'ann' || claims.team == 'red'", "ann", [0, 0]),
    ] {
        let earlier = fixture.counts();
        assert_eq!(fixture.outcome(rule, true).await, outcome, "{rule}");
        assert_eq!(fixture.fetched(earlier), fetches, "{rule}");
    }
}

// S181: an error applies to its claim only, and another claim may still decide.
#[tokio::test]
async fn failed_fetch_fails_the_expression_that_uses_the_claim() {
    const UNREACHABLE: &str = "failed to reach the source of a distributed claim";
    let fixture = Fixture::new();
    fixture.serve("rank", &json!(7));
    for (rule, outcome, fetches) in [
        ("claims.team == 'red'", UNREACHABLE, [1, 0]),
        ("claims.team == 'red' || claims.rank == 7", "ann", [1, 1]),
        ("claims.team == 'red' || claims.rank == 8", UNREACHABLE, [1, 1]),
    ] {
        let earlier = fixture.counts();
        assert_eq!(fixture.outcome(rule, true).await, outcome, "{rule}");
        assert_eq!(fixture.fetched(earlier), fetches, "{rule}");
    }
}

// S181: off by default, in both profiles.
#[tokio::test]
async fn nothing_is_fetched_for_expressions_by_default() {
    let fixture = Fixture::new();
    fixture.serve("team", &json!("red"));
    assert_eq!(fixture.outcome("has(claims.team)", false).await, "claim_rule");
    assert_eq!(fixture.outcome("claims.team == 'red'", false).await, "no such key: team");
    assert_eq!(fixture.counts(), [0, 0]);
}
