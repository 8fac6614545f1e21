//! Signed tokens and key sets for a search: one key, variants of the header, and key sets with one more key.

use aws_lc_rs::digest::{Digest, SHA256, SHA384, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use navicert_go::base64::RAW_URL;
use serde_json::{Map, Value, json};

const KID: &str = "k";

/// How a token is signed, and what its header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum HeaderVariant {
    /// ES256 with the key's `kid`.
    #[default]
    Plain,
    /// Without `kid`.
    NoKid,
    /// With the `kid` of another key.
    UnknownKid,
    /// Names another algorithm than the one that signed.
    OtherAlgorithm,
    /// Names a symmetric algorithm.
    Symmetric,
    /// Names no algorithm.
    NoAlgorithm,
    /// ES384 with a P-256 key.
    OtherCurve,
    /// With a private key embedded, and a symmetric algorithm.
    PrivateKey,
    /// The signature is of another payload.
    Forged,
}

impl HeaderVariant {
    pub(super) const ALL: [HeaderVariant; 9] = [
        HeaderVariant::Plain,
        HeaderVariant::NoKid,
        HeaderVariant::UnknownKid,
        HeaderVariant::OtherAlgorithm,
        HeaderVariant::Symmetric,
        HeaderVariant::NoAlgorithm,
        HeaderVariant::OtherCurve,
        HeaderVariant::PrivateKey,
        HeaderVariant::Forged,
    ];

    fn header(self) -> Value {
        match self {
            HeaderVariant::Plain | HeaderVariant::Forged => json!({"alg": "ES256", "kid": KID}),
            HeaderVariant::NoKid => json!({"alg": "ES256"}),
            HeaderVariant::UnknownKid => json!({"alg": "ES256", "kid": "unknown"}),
            HeaderVariant::OtherAlgorithm => json!({"alg": "RS256", "kid": KID}),
            HeaderVariant::Symmetric => json!({"alg": "HS256", "kid": KID}),
            HeaderVariant::NoAlgorithm => json!({"alg": "none", "kid": KID}),
            HeaderVariant::OtherCurve => json!({"alg": "ES384", "kid": KID}),
            HeaderVariant::PrivateKey => json!({"alg": "HS256", "jwk": {"kty": "oct", "k": "AA"}}),
        }
    }

    /// What is unusual, in words; `None` for a plain token.
    pub(super) fn describe(self) -> Option<&'static str> {
        match self {
            HeaderVariant::Plain => None,
            HeaderVariant::NoKid => Some("the header has no `kid`"),
            HeaderVariant::UnknownKid => Some("the issuer has no key with the `kid`"),
            HeaderVariant::OtherAlgorithm => Some("`alg` is RS256, the key is an ECDSA key"),
            HeaderVariant::Symmetric => Some("`alg` is HS256"),
            HeaderVariant::NoAlgorithm => Some("`alg` is none"),
            HeaderVariant::OtherCurve => Some("signed by ES384 with a P-256 key"),
            HeaderVariant::PrivateKey => Some("`alg` is HS256, and the header has a private key"),
            HeaderVariant::Forged => Some("the signature is invalid"),
        }
    }
}

/// A key set of the issuers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct KeyVariant(usize);

/// What a key set has beside the signing key: in words, and as JSON.
const OTHER_KEYS: [(&str, &str); 9] = [
    ("", ""),
    ("a key of an unknown type", r#"{"kty": "AKP"}"#),
    (
        "a key for an unknown algorithm",
        r#"{"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA", "alg": "ES256K"}"#,
    ),
    ("a key on an unknown curve", r#"{"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"}"#),
    ("an X25519 key", r#"{"kty": "OKP", "crv": "X25519", "x": "AA"}"#),
    ("an Ed25519 key of the wrong length", r#"{"kty": "OKP", "crv": "Ed25519", "x": "AA"}"#),
    (
        "a key with a certificate URL",
        r#"{"kty": "oct", "k": "AA", "x5u": "https://example.com/certificate"}"#,
    ),
    ("a key without type", r#"{"kid": "empty"}"#),
    ("a key with a malformed value", r#"{"kty": "RSA", "n": "=", "e": "AQAB"}"#),
];

impl KeyVariant {
    pub(super) fn all() -> impl Iterator<Item = KeyVariant> {
        (0..OTHER_KEYS.len()).map(KeyVariant)
    }

    pub(super) fn index(self) -> usize {
        self.0
    }

    /// What is unusual, in words; `None` for a plain key set.
    pub(super) fn describe(self) -> Option<&'static str> {
        OTHER_KEYS.get(self.0).map(|(words, _)| *words).filter(|words| !words.is_empty())
    }
}

/// The signing key of a search.
pub(super) struct TokenSigner(EcdsaKeyPair);

impl TokenSigner {
    pub(super) fn new() -> Option<Self> {
        EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).ok().map(TokenSigner)
    }

    /// A key set with the public key.
    pub(super) fn key_set(&self, variant: KeyVariant) -> Value {
        // An uncompressed point: one byte, then both coordinates.
        let point = self.0.public_key().as_ref();
        let coordinate = |from: usize| RAW_URL.encode(point.get(from..from + 32).unwrap_or_default());
        let own = json!({"kty": "EC", "crv": "P-256", "kid": KID, "x": coordinate(1), "y": coordinate(33)});
        let other = OTHER_KEYS.get(variant.0).map_or("", |(_, other)| *other);
        let keys: Vec<Value> = [own].into_iter().chain(serde_json::from_str(other).ok()).collect();
        json!({"keys": keys})
    }

    /// Signs a token.
    pub(super) fn token(&self, claims: &Map<String, Value>, variant: HeaderVariant) -> Option<String> {
        let payload = RAW_URL.encode(Value::Object(claims.clone()).to_string());
        let message = format!("{}.{payload}", RAW_URL.encode(variant.header().to_string()));
        let signature = match variant {
            HeaderVariant::OtherCurve => self.sign_es384(message.as_bytes())?,
            HeaderVariant::Forged => self.sign(b"another payload")?,
            _ => self.sign(message.as_bytes())?,
        };
        Some(format!("{message}.{}", RAW_URL.encode(signature)))
    }

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.0.sign(&SystemRandom::new(), message).ok().map(|signature| signature.as_ref().to_vec())
    }

    /// ECDSA uses as many bits of the hash as the curve has: the first half of SHA-384 and a bit more.
    fn sign_es384(&self, message: &[u8]) -> Option<Vec<u8>> {
        let hash = digest(&SHA384, message);
        let head = Digest::import_less_safe(hash.as_ref().get(..32)?, &SHA256).ok()?;
        let signature = self.0.sign_digest(&head).ok()?;
        let (r, s) = signature.as_ref().split_at(32);
        Some([&[0; 16], r, &[0; 16], s].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch;
    use crate::profile::{AuthnProfile, KubeVersion};

    #[test]
    fn variants_are_decided_as_their_description_says() {
        let signer = TokenSigner::new().unwrap();
        let config = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{
                "issuer": {"url": "https://i", "audiences": ["a"]},
                "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
            }],
        });
        let claims = json!({"iss": "https://i", "aud": "a", "sub": "ann", "exp": 1_700_000_300});
        let outcome = |header: HeaderVariant, keys: KeyVariant, version: KubeVersion| {
            let token = signer.token(claims.as_object().unwrap(), header).unwrap();
            let (config, jwks) = (config.to_string(), signer.key_set(keys));
            let line = json!({"config": config, "jwks": jwks, "token": token, "now": 1_700_000_000});
            batch::eval(&line, &AuthnProfile::kube(version))["outcome"] == "authenticated"
        };
        let (old, new) = (KubeVersion::V1_37, KubeVersion::V1_38);
        for header in HeaderVariant::ALL {
            let keys = KeyVariant::default();
            let accepted = (outcome(header, keys, old), outcome(header, keys, new));
            let expected = match header {
                HeaderVariant::Plain | HeaderVariant::NoKid => (true, true),
                HeaderVariant::OtherCurve => (true, false),
                _ => (false, false),
            };
            assert_eq!(accepted, expected, "{header:?}");
        }
        let accepted: Vec<_> = KeyVariant::all()
            .map(|keys| (outcome(HeaderVariant::Plain, keys, old), outcome(HeaderVariant::Plain, keys, new)))
            .collect();
        let (both, none, since, until) = ((true, true), (false, false), (false, true), (true, false));
        assert_eq!(accepted, [both, since, since, none, since, until, since, none, none]);
    }
}
