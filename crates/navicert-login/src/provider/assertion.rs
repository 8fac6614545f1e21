//! Client assertions: a JWT that the client signs with its own key (`private_key_jwt`).

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use navicert_types::{Secret, Timestamp};
use serde_json::json;

use super::metadata::Metadata;
use crate::error::LoginError;

/// How long an assertion is valid, in seconds.
const LIFETIME_SECONDS: i64 = 60;
/// Smallest accepted RSA modulus, in bytes.
const MIN_RSA_BYTES: usize = 256;

/// A private key and its key id.
pub(crate) struct AssertionKey {
    pair: Pair,
    kid: Option<String>,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
}

impl AssertionKey {
    pub(super) fn from_pem(pem: &[u8], kid: Option<String>) -> Option<Self> {
        let blocks = navicert_go::pem::blocks(pem);
        let pair = blocks.iter().filter(|block| block.label.ends_with("PRIVATE KEY")).find_map(|block| {
            let der = block.der.as_slice();
            let rsa = RsaKeyPair::from_pkcs8(der).or_else(|_| RsaKeyPair::from_der(der)).ok();
            if let Some(rsa) = rsa.filter(|rsa| rsa.public_modulus_len() >= MIN_RSA_BYTES) {
                return Some(Pair::Rsa(Box::new(rsa)));
            }
            let elliptic = |algorithm| {
                EcdsaKeyPair::from_pkcs8(algorithm, der)
                    .or_else(|_| EcdsaKeyPair::from_private_key_der(algorithm, der))
                    .ok()
            };
            elliptic(&ECDSA_P256_SHA256_FIXED_SIGNING)
                .map(Pair::P256)
                .or_else(|| elliptic(&ECDSA_P384_SHA384_FIXED_SIGNING).map(Pair::P384))
        });
        Some(AssertionKey { pair: pair?, kid })
    }

    /// A new assertion for the token endpoint.
    pub(super) fn assertion(
        &self,
        client_id: &str,
        metadata: &Metadata,
        now: Timestamp,
    ) -> Result<Secret<String>, LoginError> {
        let algorithms = &metadata.token_endpoint_auth_signing_alg_values_supported;
        let prefers_pss = algorithms.iter().any(|algorithm| algorithm == "PS256");
        let name = match &self.pair {
            Pair::Rsa(_) if prefers_pss => "PS256",
            Pair::Rsa(_) => "RS256",
            Pair::P256(_) => "ES256",
            Pair::P384(_) => "ES384",
        };
        let mut header = json!({"alg": name, "typ": "JWT"});
        if let (Some(kid), Some(members)) = (&self.kid, header.as_object_mut()) {
            members.insert("kid".to_owned(), json!(kid));
        }
        let claims = json!({
            "iss": client_id, "sub": client_id, "aud": metadata.token_endpoint, "jti": crate::random::text(16)?,
            "iat": now.as_second(), "exp": now.as_second() + LIFETIME_SECONDS,
        });
        let encode = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", encode(&header), encode(&claims));
        let signature = self.sign(message.as_bytes(), prefers_pss);
        let signature =
            signature.ok_or_else(|| LoginError::Internal("failed to sign a client assertion".to_owned()))?;
        Ok(Secret::new(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))))
    }

    fn sign(&self, message: &[u8], prefers_pss: bool) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                let padding = if prefers_pss { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
                pair.sign(padding, &random, message, &mut signature).ok()?;
                Some(signature)
            }
            Pair::P256(pair) | Pair::P384(pair) => Some(pair.sign(&random, message).ok()?.as_ref().to_vec()),
        }
    }

    /// The public key, to verify assertions in tests.
    #[cfg(test)]
    fn public_key(&self) -> Vec<u8> {
        use aws_lc_rs::signature::KeyPair as _;
        match &self.pair {
            Pair::Rsa(pair) => pair.public_key().as_ref().to_vec(),
            Pair::P256(pair) | Pair::P384(pair) => pair.public_key().as_ref().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::AsDer as _;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, RSA_PSS_2048_8192_SHA256, UnparsedPublicKey};
    use base64::engine::general_purpose::STANDARD;

    use super::*;
    use crate::request::{Form, LoginRequest};

    fn metadata() -> Metadata {
        let document = json!({
            "issuer": "https://i", "token_endpoint": "https://i/t", "jwks_uri": "https://i/k",
            "token_endpoint_auth_signing_alg_values_supported": ["PS256"],
        });
        let request = LoginRequest::new(Form::Own, "https://i", "c");
        Metadata::read(document.to_string().as_bytes(), "", &request).unwrap()
    }

    fn pem(der: &[u8]) -> String {
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der))
    }

    // L617
    #[test]
    fn assertion_names_client_and_endpoint_and_verifies() {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let key = pem(pair.to_pkcs8v1().unwrap().as_ref());
        let key = AssertionKey::from_pem(key.as_bytes(), Some("k1".to_owned())).unwrap();
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let assertion = key.assertion("c", &metadata(), now).unwrap();
        let (message, signature) = assertion.expose().rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key());
        public.verify(message.as_bytes(), &signature).unwrap();
        let part = |text: &str| -> serde_json::Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
        };
        let (header, claims) = message.split_once('.').unwrap();
        assert_eq!(part(header), json!({"alg": "ES256", "typ": "JWT", "kid": "k1"}));
        let claims = part(claims);
        assert_eq!(
            (&claims["iss"], &claims["sub"], &claims["aud"]),
            (&json!("c"), &json!("c"), &json!("https://i/t"))
        );
        assert_eq!(claims["exp"], json!(1_800_000_060));
        assert_eq!(claims["jti"].as_str().unwrap().len(), 22);
    }

    // L617
    #[test]
    fn rsa_keys_prefer_pss_where_the_provider_lists_it() {
        let pair = RsaKeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
        let key = pem(pair.as_der().unwrap().as_ref());
        let key = AssertionKey::from_pem(key.as_bytes(), None).unwrap();
        let assertion = key.assertion("c", &metadata(), Timestamp::UNIX_EPOCH).unwrap();
        let (message, signature) = assertion.expose().rsplit_once('.').unwrap();
        let public = UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, key.public_key());
        public.verify(message.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        assert!(AssertionKey::from_pem(b"no key", None).is_none());
    }
}
