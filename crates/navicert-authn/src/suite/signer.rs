//! A signing key generated for a run, so that claims pass through the whole authentication path.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use navicert_go::base64::RAW_URL;
use serde_json::{Value, json};

use crate::jwks::KeySet;
use crate::profile::AuthnProfile;

const KID: &str = "suite";

pub(crate) struct SuiteSigner(EcdsaKeyPair);

impl fmt::Debug for SuiteSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SuiteSigner")
    }
}

impl SuiteSigner {
    pub(crate) fn new() -> Option<Self> {
        EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).ok().map(SuiteSigner)
    }

    /// The public key as a key set.
    pub(super) fn key_set(&self, profile: &AuthnProfile) -> KeySet {
        KeySet::parse(self.key_document().to_string().as_bytes(), profile).unwrap_or_default()
    }

    /// The public key as the document of a key endpoint.
    pub(crate) fn key_document(&self) -> Value {
        // An uncompressed point: one byte, then both coordinates.
        let point = self.0.public_key().as_ref();
        let coordinate = |from: usize| RAW_URL.encode(point.get(from..from + 32).unwrap_or_default());
        let key = json!({"kty": "EC", "crv": "P-256", "kid": KID, "x": coordinate(1), "y": coordinate(33)});
        json!({"keys": [key]})
    }

    /// Signs a token with this payload.
    pub(super) fn token(&self, payload: &str) -> Option<String> {
        let header = RAW_URL.encode(json!({"alg": "ES256", "kid": KID}).to_string());
        let message = format!("{header}.{}", RAW_URL.encode(payload));
        let signature = self.0.sign(&SystemRandom::new(), message.as_bytes()).ok()?;
        Some(format!("{message}.{}", RAW_URL.encode(signature)))
    }
}
