//! What a broken or malicious issuer publishes. Hostile answers that are not particular to issuers (giant, slow,
//! truncated, redirected, no JSON) are made with [`Answer`](crate::Answer).

use serde_json::{Value, json};

use crate::pki::jws::{Algorithm, SigningKey, encode};

/// An entry of a key set that is no use for verifying a token.
#[derive(Clone, Debug)]
pub struct OddKey {
    /// What is odd about it.
    pub name: &'static str,
    /// The entry.
    pub jwk: Value,
    /// Whether kube-apiserver refuses the whole set because of it (S165) rather than ignoring the entry.
    pub poisons: bool,
}

/// One of each odd kind. None of them has a `kid`, unless that is the odd thing.
///
/// ```
/// let odd = navicert_testkit::services::issuer::hostile::odd_keys();
/// assert!(odd.iter().any(|key| key.name == "symmetric" && !key.poisons));
/// ```
pub fn odd_keys() -> Vec<OddKey> {
    let p256 = SigningKey::generate(Algorithm::Es256, "odd").jwk();
    let (x, y) = (&p256["x"], &p256["y"]);
    let short = encode(&[7; 31]);
    let wide = encode(&[7; 32]);
    let n = encode(&[0xc5; 256]);
    let harmless = [
        ("Ed25519", json!({"kty": "OKP", "crv": "Ed25519", "x": wide})),
        ("symmetric", json!({"kty": "oct", "k": encode(b"a shared secret of 32 bytes, yes")})),
        ("RSA with exponent 1", json!({"kty": "RSA", "n": n, "e": "AQ"})),
        ("RSA with an empty modulus", json!({"kty": "RSA", "n": "", "e": "AQAB"})),
    ];
    let poisonous = [
        ("X25519", json!({"kty": "OKP", "crv": "X25519", "x": wide})),
        ("Ed448", json!({"kty": "OKP", "crv": "Ed448", "x": encode(&[7; 57])})),
        ("unknown kind", json!({"kty": "quantum", "q": "x"})),
        ("no kind", json!({"n": n, "e": "AQAB"})),
        ("null", Value::Null),
        ("secp256k1", json!({"kty": "EC", "crv": "secp256k1", "x": x, "y": y})),
        ("short EC coordinate", json!({"kty": "EC", "crv": "P-256", "x": short, "y": y})),
        ("EC point off its curve", json!({"kty": "EC", "crv": "P-256", "x": wide, "y": wide})),
        ("RSA without modulus", json!({"kty": "RSA", "e": "AQAB"})),
        ("RSA without exponent", json!({"kty": "RSA", "n": n})),
        ("RSA with padded base64", json!({"kty": "RSA", "n": format!("{n}=="), "e": "AQAB"})),
        ("RSA with invalid base64", json!({"kty": "RSA", "n": "not*base64", "e": "AQAB"})),
        ("number as id", json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": 5})),
        (
            "certificate URL",
            json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "x5u": "https://127.0.0.1/c"}),
        ),
        (
            "garbage for certificates",
            json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "x5c": ["garbage"]}),
        ),
        ("thumbprint of wrong size", json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "x5t": "AAAA"})),
    ];
    let odd = |poisons: bool| move |(name, jwk): (&'static str, Value)| OddKey { name, jwk, poisons };
    harmless.into_iter().map(odd(false)).chain(poisonous.into_iter().map(odd(true))).collect()
}

/// A key set of so many usable keys, `key-0` to `key-<count-1>`, all of them the public half of `key`.
pub fn many_keys(key: &SigningKey, count: usize) -> Value {
    let jwk = key.jwk();
    let numbered = |index: usize| {
        let mut jwk = jwk.clone();
        jwk["kid"] = json!(format!("key-{index}"));
        jwk
    };
    json!({"keys": (0..count).map(numbered).collect::<Vec<_>>()})
}
