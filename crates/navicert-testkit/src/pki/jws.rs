//! Signing keys and JSON Web Tokens, valid and forged, for all nine algorithms that a Kubernetes API server accepts.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair as _, RsaEncoding, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// The nine signature algorithms kube-apiserver accepts.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "each is named exactly as RFC 7518 names it")]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    Es512,
}

impl Algorithm {
    /// All nine.
    pub const ALL: [Algorithm; 9] = [
        Algorithm::Rs256,
        Algorithm::Rs384,
        Algorithm::Rs512,
        Algorithm::Ps256,
        Algorithm::Ps384,
        Algorithm::Ps512,
        Algorithm::Es256,
        Algorithm::Es384,
        Algorithm::Es512,
    ];

    /// The name in a token's `alg` header.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Rs256 => "RS256",
            Algorithm::Rs384 => "RS384",
            Algorithm::Rs512 => "RS512",
            Algorithm::Ps256 => "PS256",
            Algorithm::Ps384 => "PS384",
            Algorithm::Ps512 => "PS512",
            Algorithm::Es256 => "ES256",
            Algorithm::Es384 => "ES384",
            Algorithm::Es512 => "ES512",
        }
    }

    fn family(self) -> Family {
        match self {
            Algorithm::Rs256 => Family::Rsa(&signature::RSA_PKCS1_SHA256),
            Algorithm::Rs384 => Family::Rsa(&signature::RSA_PKCS1_SHA384),
            Algorithm::Rs512 => Family::Rsa(&signature::RSA_PKCS1_SHA512),
            Algorithm::Ps256 => Family::Rsa(&signature::RSA_PSS_SHA256),
            Algorithm::Ps384 => Family::Rsa(&signature::RSA_PSS_SHA384),
            Algorithm::Ps512 => Family::Rsa(&signature::RSA_PSS_SHA512),
            Algorithm::Es256 => Family::Ec(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, "P-256"),
            Algorithm::Es384 => Family::Ec(&signature::ECDSA_P384_SHA384_FIXED_SIGNING, "P-384"),
            Algorithm::Es512 => Family::Ec(&signature::ECDSA_P521_SHA512_FIXED_SIGNING, "P-521"),
        }
    }
}

/// A key that signs tokens, with the id it is published under. Clones share the key.
///
/// ```
/// use navicert_testkit::pki::jws::{Algorithm, SigningKey};
/// use serde_json::json;
///
/// let key = SigningKey::generate(Algorithm::Es256, "key-1");
/// assert_eq!(key.jwk()["crv"], "P-256");
/// let token = key.token(&json!({"sub": "ann"}));
/// assert_eq!(token.split('.').count(), 3);
/// ```
#[derive(Clone)]
pub struct SigningKey {
    id: String,
    algorithm: Algorithm,
    pair: Arc<Pair>,
}

impl SigningKey {
    /// A new key: RSA-2048 for the RSA algorithms, the algorithm's own curve for the others.
    pub fn generate(algorithm: Algorithm, id: &str) -> Self {
        let pair = match algorithm.family() {
            Family::Rsa(_) => Pair::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).expect("an RSA key")),
            Family::Ec(curve, _) => Pair::Ec(EcdsaKeyPair::generate(curve).expect("an EC key")),
        };
        SigningKey { id: id.to_owned(), algorithm, pair: Arc::new(pair) }
    }

    /// The same key under another id.
    pub fn renamed(&self, id: &str) -> Self {
        SigningKey { id: id.to_owned(), ..self.clone() }
    }

    /// The same RSA key for another RSA algorithm, as real issuers do.
    ///
    /// # Panics
    /// If the algorithm does not fit the key.
    pub fn with_algorithm(&self, algorithm: Algorithm) -> Self {
        let fits = match (&*self.pair, algorithm.family()) {
            (Pair::Rsa(_), Family::Rsa(_)) => true,
            (Pair::Ec(_), _) => self.algorithm == algorithm,
            (Pair::Rsa(_), Family::Ec(..)) => false,
        };
        assert!(fits, "a key for {} cannot sign with {}", self.algorithm.name(), algorithm.name());
        SigningKey { algorithm, ..self.clone() }
    }

    /// The id (`kid`).
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it signs with.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The public half as a JSON Web Key with `kid`, `use` and `alg`.
    pub fn jwk(&self) -> Value {
        let der = self.public_key_der();
        let (_, info) = SubjectPublicKeyInfo::from_der(&der).expect("our own SubjectPublicKeyInfo");
        let mut jwk = match info.parsed().expect("our own public key") {
            PublicKey::RSA(rsa) => {
                let (n, e) = (without_leading_zeros(rsa.modulus), without_leading_zeros(rsa.exponent));
                json!({"kty": "RSA", "n": encode(n), "e": encode(e)})
            }
            PublicKey::EC(point) => {
                // SEC 1: 0x04, then both coordinates at full width, which is the width RFC 7518 §6.2.1.2 wants.
                let (x, y) = point.data()[1..].split_at((point.data().len() - 1) / 2);
                json!({"kty": "EC", "crv": self.curve(), "x": encode(x), "y": encode(y)})
            }
            other => panic!("the test kit makes RSA and EC keys only, not {other:?}"),
        };
        jwk["kid"] = json!(self.id);
        jwk["use"] = json!("sig");
        jwk["alg"] = json!(self.algorithm.name());
        jwk
    }

    /// The public half as DER SubjectPublicKeyInfo.
    pub fn public_key_der(&self) -> Vec<u8> {
        let der: PublicKeyX509Der<'_> = match &*self.pair {
            Pair::Rsa(pair) => pair.public_key().as_der().expect("our own public key as DER"),
            Pair::Ec(pair) => pair.public_key().as_der().expect("our own public key as DER"),
        };
        der.as_ref().to_vec()
    }

    /// The usual header: `alg`, `kid`, `typ`.
    pub fn header(&self) -> Value {
        json!({"alg": self.algorithm.name(), "kid": self.id, "typ": "JWT"})
    }

    /// A token with the usual header.
    pub fn token(&self, claims: &Value) -> String {
        self.token_with_header(&self.header(), claims)
    }

    /// A token whose header has no `kid`.
    pub fn token_without_id(&self, claims: &Value) -> String {
        self.token_with_header(&json!({"alg": self.algorithm.name()}), claims)
    }

    /// A token with any header at all, truly signed with this key and its algorithm.
    pub fn token_with_header(&self, header: &Value, claims: &Value) -> String {
        self.token_of_bytes(header.to_string().as_bytes(), claims.to_string().as_bytes())
    }

    /// A token of arbitrary bytes, truly signed: duplicate members, odd numbers, no JSON at all.
    pub fn token_of_bytes(&self, header: &[u8], payload: &[u8]) -> String {
        let input = format!("{}.{}", encode(header), encode(payload));
        let signature = encode(&self.sign(input.as_bytes()));
        format!("{input}.{signature}")
    }

    /// The raw signature over `message`; ECDSA as `r‖s`, PSS with a salt as long as the digest.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match (&*self.pair, self.algorithm.family()) {
            (Pair::Rsa(pair), Family::Rsa(encoding)) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(encoding, &random, message, &mut signature).expect("an RSA signature");
                signature
            }
            (Pair::Ec(pair), Family::Ec(..)) => {
                pair.sign(&random, message).expect("an ECDSA signature").as_ref().to_vec()
            }
            _ => panic!("a key whose algorithm is not its own"),
        }
    }

    fn curve(&self) -> &'static str {
        match self.algorithm.family() {
            Family::Ec(_, curve) => curve,
            Family::Rsa(_) => panic!("an RSA key has no curve"),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SigningKey({} {})", self.id, self.algorithm.name())
    }
}

/// A token that claims a signature but has none: `alg` may say `none` or anything else.
///
/// ```
/// let token = navicert_testkit::pki::jws::unsigned(&serde_json::json!({"alg": "none"}), &serde_json::json!({}));
/// assert!(token.ends_with('.'));
/// ```
pub fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}.", encode(header.to_string().as_bytes()), encode(claims.to_string().as_bytes()))
}

/// The same token with one bit of its signature flipped.
///
/// # Panics
/// If it is no token with a signature.
pub fn with_tampered_signature(token: &str) -> String {
    let (input, mut signature) = split_signature(token);
    signature[0] ^= 1;
    format!("{input}.{}", encode(&signature))
}

/// Another payload under the header and signature of `token`.
///
/// # Panics
/// If it is no token with a signature.
pub fn with_payload(token: &str, claims: &Value) -> String {
    let (input, signature) = split_signature(token);
    let header = input.split('.').next().expect("a token has a header");
    format!("{header}.{}.{}", encode(claims.to_string().as_bytes()), encode(&signature))
}

/// Unpadded base64url, the only encoding JOSE knows.
pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

enum Family {
    Rsa(&'static dyn RsaEncoding),
    Ec(&'static EcdsaSigningAlgorithm, &'static str),
}

enum Pair {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
}

fn without_leading_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}

fn split_signature(token: &str) -> (&str, Vec<u8>) {
    let (input, signature) = token.rsplit_once('.').unwrap_or_else(|| panic!("not a token: no dot in it"));
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap_or_else(|error| panic!("not a token: {error}"));
    assert!(!signature.is_empty(), "not a signed token: its signature is empty");
    (input, signature)
}

#[cfg(test)]
mod tests;
