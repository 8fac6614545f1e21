//! Any bytes as the payload of a token whose signature is right: what is accepted in hardened is accepted in kube (§13).

#![no_main]

use std::sync::OnceLock;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use libfuzzer_sys::fuzz_target;
use navicert_authn::explain::{explain, log_line};
use navicert_authn::{Authenticators, Outcome, Profile, Question, batch};
use navicert_types::Timestamp;
use serde_json::json;

/// Every sort of mapping and rule.
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
const HEADER: &str = r#"{"alg":"ES256"}"#;

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
        let question = json!({"config": CONFIG, "jwks": jwks});
        let ready = |profile| batch::authenticators(&question, &profile).expect("the configuration is valid");
        Stage { kube: ready(Profile::KUBE), hardened: ready(Profile::HARDENED), key }
    })
}

fuzz_target!(|bytes: &[u8]| {
    let stage = stage();
    let (header, payload) = (HEADER.as_bytes(), bytes);
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
    let signature = stage.key.sign(&SystemRandom::new(), message.as_bytes()).expect("a signature");
    let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature));
    let now = Timestamp::from_second(1_900_000_000).expect("a time");
    let asked = Question::new(&token, now);
    let accepts = |authenticators: &Authenticators| {
        matches!(explain(authenticators, &asked).outcome, Outcome::Authenticated(_))
    };
    let (kube, hardened) = (accepts(&stage.kube), accepts(&stage.hardened));
    assert!(kube || !hardened, "hardened accepts what kube rejects");
    assert_eq!(log_line(&stage.kube, &asked, |_| None).is_none(), kube);
});
