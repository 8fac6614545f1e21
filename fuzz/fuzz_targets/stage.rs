//! A stage for tokens whose signature is right, so that what is fuzzed is what is behind it: one key, one configuration with
//! every sort of mapping and rule, and both profiles.

use std::sync::OnceLock;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use navicert_authn::explain::{explain, log_line};
use navicert_authn::{Authenticators, Outcome, Profile, Question, batch};
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
        let question = json!({"config": CONFIG, "jwks": jwks});
        let ready = |profile| batch::authenticators(&question, &profile).expect("the configuration is valid");
        Stage { kube: ready(Profile::KUBE), hardened: ready(Profile::HARDENED), key }
    })
}

/// Signs a token and has it judged: what is accepted in hardened is accepted in kube (§13), kube-apiserver would have logged
/// something exactly if it rejects, and a second look at the same token ends as the first.
pub fn judge(header: &[u8], payload: &[u8]) {
    let stage = stage();
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
    let signature = stage.key.sign(&SystemRandom::new(), message.as_bytes()).expect("a signature");
    let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature));
    let asked = Question::new(&token, Timestamp::from_second(1_900_000_000).expect("a time"));
    let accepts = |authenticators: &Authenticators| {
        let explained = matches!(explain(authenticators, &asked).outcome, Outcome::Authenticated(_));
        let decided = matches!(authenticators.authenticate(&asked), Outcome::Authenticated(_));
        assert_eq!(explained, decided, "an explanation ends otherwise than the decision");
        decided
    };
    let (kube, hardened) = (accepts(&stage.kube), accepts(&stage.hardened));
    assert!(kube || !hardened, "hardened accepts what kube rejects");
    assert_eq!(log_line(&stage.kube, &asked, |_| None).is_none(), kube);
}
