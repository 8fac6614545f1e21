//! Signs tokens so that fuzzing reaches the code after signature verification: one key, one configuration with every kind
//! of mapping and rule, and both profiles.

use std::sync::OnceLock;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use navicert_authn::explain::{UpstreamDecision, explain, upstream_decision};
use navicert_authn::{Authenticators, AuthnOutcome, AuthnProfile, AuthnRequest, batch};
use navicert_types::Timestamp;
use serde_json::json;

const CONFIG: &str = r#"
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: https://i, audiences: [a]}
  claimMappings:
    username: {expression: 'claims.?email.orValue("") != "" ? claims.email : string(claims.sub)'}
    groups: {claim: groups, prefix: 'g:'}
    uid: {expression: 'claims.?uid.orValue("")'}
    extra: [{key: example.com/all, valueExpression: 'dyn(claims.?list.orValue([])).map(x, string(x))'}]
  claimValidationRules:
  - {expression: 'claims.?email_verified.orValue(true) == true'}
  userValidationRules:
  - {expression: 'user.groups.all(g, g != "g:root")'}
"#;

struct Stage {
    key: EcdsaKeyPair,
    kube: Authenticators,
    hardened: Authenticators,
}

fn stage() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| {
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        let point = key.public_key().as_ref();
        let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..65]));
        let jwks = json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": "k", "x": x, "y": y}]});
        let line = json!({"config": CONFIG, "jwks": jwks});
        let ready = |profile| batch::authenticators(&line, &profile).expect("the configuration is valid");
        Stage { kube: ready(AuthnProfile::KUBE), hardened: ready(AuthnProfile::HARDENED), key }
    })
}

/// Signs and authenticates a token: hardened accepts only what kube accepts, kube-apiserver logs a line exactly if it
/// rejects, and the explanation agrees with the decision.
// §13
pub fn judge(header: &[u8], payload: &[u8]) {
    let stage = stage();
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
    let signature = stage.key.sign(&SystemRandom::new(), message.as_bytes()).expect("a signature");
    let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature));
    let request = AuthnRequest::new(&token, Timestamp::from_second(1_900_000_000).expect("a time"));
    let accepts = |authenticators: &Authenticators| {
        let explained = matches!(explain(authenticators, &request).outcome, AuthnOutcome::Authenticated(_));
        let decided = matches!(authenticators.authenticate(&request), AuthnOutcome::Authenticated(_));
        assert_eq!(explained, decided, "the explanation differs from the decision");
        decided
    };
    let (kube, hardened) = (accepts(&stage.kube), accepts(&stage.hardened));
    assert!(kube || !hardened, "hardened accepts what kube rejects");
    let decision = upstream_decision(&stage.kube, &request, |_| None);
    assert_eq!(matches!(decision, UpstreamDecision::Accepts), kube);
}
