//! Tokens: one through the whole authenticator, the bare verifications in it, one that is remembered, and loading
//! configurations.

use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair, ParsedPublicKey,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, VerificationAlgorithm,
};
use navicert_authn::config::load;
use navicert_authn::jwks::{KeySet, KeysUnavailable, StaticKeys};
use navicert_authn::{Authenticators, AuthnOutcome, AuthnProfile, AuthnRequest};
use navicert_types::Timestamp;

use super::{Row, input};
use crate::authn::{Input, remembered};
use crate::race::{Contestant, Fault};

pub(super) const ROWS: [Row; 10] = [
    ("token-rs256-map", || token("rs256.jwt", "config-map.yaml")),
    ("token-rs256-cel", || token("rs256.jwt", "config-cel.yaml")),
    ("token-es256-map", || token("es256.jwt", "config-map.yaml")),
    ("token-es256-cel", || token("es256.jwt", "config-cel.yaml")),
    ("verify-rsa2048", verify_rsa),
    ("verify-p256", verify_p256),
    ("load-1", || loading(1)),
    ("load-16", || loading(16)),
    ("load-64", || loading(64)),
    ("token-cache-hit", || Ok(Box::new(remembered(&Input::read()?)?))),
];

/// Between every token's `nbf` and `exp`.
const NOW: i64 = 1_900_000_000;
const MESSAGE: &[u8] = b"race";

/// One token through the whole authenticator, nothing remembered.
fn token(token: &str, config: &str) -> Result<Contestant, Fault> {
    let (token, config, keys) = (input(token)?, input(config)?, input("jwks.json")?);
    let profile = AuthnProfile::KUBE;
    let keys = StaticKeys::new(KeySet::parse(keys.as_bytes(), &profile)?);
    let loaded = load(config.as_bytes(), &profile)?;
    let authenticators = Authenticators::new(loaded.compiled, |_| Arc::new(keys.clone()));
    let now = Timestamp::from_second(NOW)?;
    Ok(Box::new(move || {
        match authenticators.authenticate(&AuthnRequest::new(std::hint::black_box(token.trim()), now)) {
            AuthnOutcome::Authenticated(_) => Ok(()),
            AuthnOutcome::NoOpinion(why) => Err(why.to_string().into()),
            AuthnOutcome::Rejected(why) => Err(why.to_string().into()),
        }
    }))
}

fn verify_rsa() -> Result<Contestant, Fault> {
    let key = RsaKeyPair::generate(KeySize::Rsa2048)?;
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), MESSAGE, &mut signature)?;
    verify(&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref(), signature)
}

fn verify_p256() -> Result<Contestant, Fault> {
    let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING)?;
    let signature = key.sign(&SystemRandom::new(), MESSAGE)?.as_ref().to_vec();
    verify(&ECDSA_P256_SHA256_ASN1, key.public_key().as_ref(), signature)
}

fn verify(
    algorithm: &'static dyn VerificationAlgorithm,
    key: &[u8],
    signature: Vec<u8>,
) -> Result<Contestant, Fault> {
    let key = ParsedPublicKey::new(algorithm, key)?;
    Ok(Box::new(move || Ok(key.verify_sig(std::hint::black_box(MESSAGE), &signature)?)))
}

/// Reads, checks and builds a configuration with so many issuers, each with the expressions of `config-cel.yaml`.
fn loading(count: usize) -> Result<Contestant, Fault> {
    let text = issuers(&input("config-cel.yaml")?, count)?;
    let profile = AuthnProfile::KUBE;
    Ok(Box::new(move || {
        let loaded = load(std::hint::black_box(text.as_bytes()), &profile)?;
        let undiscovered = |_: &_| Arc::new(StaticKeys::unavailable(KeysUnavailable::NotReady)) as _;
        std::hint::black_box(Authenticators::new(loaded.compiled, undiscovered));
        Ok(())
    }))
}

fn issuers(text: &str, count: usize) -> Result<String, Fault> {
    let (head, issuer) = text.split_once("jwt:\n").ok_or("the configuration has no `jwt`")?;
    let one = |number| issuer.replacen("127.0.0.1:24443", &format!("127.0.0.1:24443/{number}"), 1);
    Ok(format!("{head}jwt:\n{}", (0..count).map(one).collect::<String>()))
}
