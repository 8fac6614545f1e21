//! The signature schemes: their names in TLS and in the external signer protocol, their key algorithms, and their order
//! of preference.
// client-credentials.md §8.4, C833

use std::borrow::Cow;
use std::fmt;

use aws_lc_rs::digest;
use rustls::SignatureScheme;

/// A TLS signature scheme, named as in the IANA registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// `rsa_pss_rsae_sha256`
    RsaPssSha256,
    /// `rsa_pss_rsae_sha384`
    RsaPssSha384,
    /// `rsa_pss_rsae_sha512`
    RsaPssSha512,
    /// `rsa_pkcs1_sha256`, in TLS 1.2 only
    RsaPkcs1Sha256,
    /// `rsa_pkcs1_sha384`, in TLS 1.2 only
    RsaPkcs1Sha384,
    /// `rsa_pkcs1_sha512`, in TLS 1.2 only
    RsaPkcs1Sha512,
    /// `ecdsa_secp256r1_sha256`
    EcdsaP256Sha256,
    /// `ecdsa_secp384r1_sha384`
    EcdsaP384Sha384,
    /// `ecdsa_secp521r1_sha512`
    EcdsaP521Sha512,
    /// `ed25519`
    Ed25519,
}

/// A scheme is serialized as its IANA name.
impl serde::Serialize for Scheme {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Scheme {
    fn schema_name() -> Cow<'static, str> {
        "Scheme".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A TLS signature scheme, named as in the IANA registry.",
            "type": "string",
            "enum": Scheme::ALL.map(Scheme::name),
        })
    }
}

/// A hash function of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// SHA-256
    Sha256,
    /// SHA-384
    Sha384,
    /// SHA-512
    Sha512,
}

/// The algorithm of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum KeyAlgorithm {
    /// RSA from 2048 bits, the minimum that rustls and signature verification accept.
    #[serde(rename = "RSA")]
    Rsa,
    /// The curve P-256.
    #[serde(rename = "EC P-256")]
    P256,
    /// The curve P-384.
    #[serde(rename = "EC P-384")]
    P384,
    /// The curve P-521.
    #[serde(rename = "EC P-521")]
    P521,
    /// Ed25519.
    Ed25519,
}

/// RSA padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// PSS with a salt as long as the hash.
    Pss,
    /// PKCS#1 v1.5.
    Pkcs1,
}

impl Scheme {
    /// All schemes in order of preference. SHA-1 is excluded.
    // C833
    pub const ALL: [Scheme; 10] = [
        Scheme::RsaPssSha256,
        Scheme::RsaPssSha384,
        Scheme::RsaPssSha512,
        Scheme::RsaPkcs1Sha256,
        Scheme::RsaPkcs1Sha384,
        Scheme::RsaPkcs1Sha512,
        Scheme::EcdsaP256Sha256,
        Scheme::EcdsaP384Sha384,
        Scheme::EcdsaP521Sha512,
        Scheme::Ed25519,
    ];

    /// The IANA name.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Parses an IANA name.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Scheme::ALL.into_iter().find(|scheme| scheme.name() == name)
    }

    /// The TLS code point.
    pub(crate) fn code_point(self) -> u16 {
        self.row().1
    }

    /// Converts to the rustls type.
    pub(crate) fn to_rustls(self) -> SignatureScheme {
        SignatureScheme::from(self.code_point())
    }

    /// The key algorithm.
    pub fn algorithm(self) -> KeyAlgorithm {
        self.row().2
    }

    /// The hash of the message that the key signs; `None` for Ed25519, which signs the message itself.
    pub fn hash(self) -> Option<Hash> {
        self.row().3
    }

    /// The RSA padding; `None` for other algorithms.
    pub fn padding(self) -> Option<Padding> {
        match self {
            Scheme::RsaPssSha256 | Scheme::RsaPssSha384 | Scheme::RsaPssSha512 => Some(Padding::Pss),
            Scheme::RsaPkcs1Sha256 | Scheme::RsaPkcs1Sha384 | Scheme::RsaPkcs1Sha512 => Some(Padding::Pkcs1),
            _ => None,
        }
    }

    /// Whether TLS 1.3 allows the scheme; TLS 1.2 allows all of them.
    pub fn is_in_tls13(self) -> bool {
        self.padding() != Some(Padding::Pkcs1)
    }

    /// The schemes of a key algorithm, best first.
    pub fn for_key(algorithm: KeyAlgorithm) -> impl Iterator<Item = Self> {
        Scheme::ALL.into_iter().filter(move |scheme| scheme.algorithm() == algorithm)
    }

    fn row(self) -> (&'static str, u16, KeyAlgorithm, Option<Hash>) {
        use Hash::{Sha256, Sha384, Sha512};
        use KeyAlgorithm::{P256, P384, P521, Rsa};
        match self {
            Scheme::RsaPssSha256 => ("rsa_pss_rsae_sha256", 0x0804, Rsa, Some(Sha256)),
            Scheme::RsaPssSha384 => ("rsa_pss_rsae_sha384", 0x0805, Rsa, Some(Sha384)),
            Scheme::RsaPssSha512 => ("rsa_pss_rsae_sha512", 0x0806, Rsa, Some(Sha512)),
            Scheme::RsaPkcs1Sha256 => ("rsa_pkcs1_sha256", 0x0401, Rsa, Some(Sha256)),
            Scheme::RsaPkcs1Sha384 => ("rsa_pkcs1_sha384", 0x0501, Rsa, Some(Sha384)),
            Scheme::RsaPkcs1Sha512 => ("rsa_pkcs1_sha512", 0x0601, Rsa, Some(Sha512)),
            Scheme::EcdsaP256Sha256 => ("ecdsa_secp256r1_sha256", 0x0403, P256, Some(Sha256)),
            Scheme::EcdsaP384Sha384 => ("ecdsa_secp384r1_sha384", 0x0503, P384, Some(Sha384)),
            Scheme::EcdsaP521Sha512 => ("ecdsa_secp521r1_sha512", 0x0603, P521, Some(Sha512)),
            Scheme::Ed25519 => ("ed25519", 0x0807, KeyAlgorithm::Ed25519, None),
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Hash {
    /// The digest length in bytes.
    pub fn length(self) -> usize {
        match self {
            Hash::Sha256 => 32,
            Hash::Sha384 => 48,
            Hash::Sha512 => 64,
        }
    }

    /// Hashes a message.
    pub fn digest(self, message: &[u8]) -> Vec<u8> {
        digest::digest(self.to_aws_lc(), message).as_ref().to_vec()
    }

    pub(crate) fn to_aws_lc(self) -> &'static digest::Algorithm {
        match self {
            Hash::Sha256 => &digest::SHA256,
            Hash::Sha384 => &digest::SHA384,
            Hash::Sha512 => &digest::SHA512,
        }
    }

    /// The DER `DigestInfo` of PKCS#1 v1.5 (RFC 8017, section 9.2).
    #[cfg(feature = "pkcs11")]
    pub(crate) fn digest_info(self, digest: &[u8]) -> Vec<u8> {
        let (number, length) = match self {
            Hash::Sha256 => (1, 32),
            Hash::Sha384 => (2, 48),
            Hash::Sha512 => (3, 64),
        };
        let mut info = vec![0x30, 17 + length, 0x30, 13, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, number];
        info.extend_from_slice(&[5, 0, 4, length]);
        info.extend_from_slice(digest);
        info
    }
}

impl KeyAlgorithm {
    /// A short display name.
    pub fn name(self) -> &'static str {
        match self {
            KeyAlgorithm::Rsa => "RSA",
            KeyAlgorithm::P256 => "EC P-256",
            KeyAlgorithm::P384 => "EC P-384",
            KeyAlgorithm::P521 => "EC P-521",
            KeyAlgorithm::Ed25519 => "Ed25519",
        }
    }
}

impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The input of a signature: the whole message, or its digest in signer protocol v1alpha1.
// X8
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// The message as TLS passes it.
    // C832
    Message(&'a [u8]),
    /// The digest of the message, of the scheme's length. Not supported by Ed25519, which hashes the message itself.
    Digest(&'a [u8]),
}

impl<'a> Input<'a> {
    /// The digest for a scheme; `None` if the scheme signs the message itself, or the digest has another length.
    pub fn digest(self, scheme: Scheme) -> Option<Cow<'a, [u8]>> {
        let hash = scheme.hash()?;
        match self {
            Input::Message(message) => Some(Cow::Owned(hash.digest(message))),
            Input::Digest(digest) => (digest.len() == hash.length()).then_some(Cow::Borrowed(digest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_match_rustls() {
        // §8.4
        for scheme in Scheme::ALL {
            let known = scheme.to_rustls();
            assert_eq!(u16::from(known), scheme.code_point());
            assert_eq!(Scheme::by_name(scheme.name()), Some(scheme));
            assert!(!format!("{known:?}").contains("Unknown"), "{known:?}");
        }
    }

    #[test]
    fn rsa_prefers_pss_over_pkcs1() {
        // C833
        let names: Vec<_> = Scheme::for_key(KeyAlgorithm::Rsa).map(Scheme::name).collect();
        assert_eq!(
            names,
            [
                "rsa_pss_rsae_sha256",
                "rsa_pss_rsae_sha384",
                "rsa_pss_rsae_sha512",
                "rsa_pkcs1_sha256",
                "rsa_pkcs1_sha384",
                "rsa_pkcs1_sha512"
            ]
        );
        let in_tls13 = Scheme::for_key(KeyAlgorithm::Rsa).filter(|scheme| scheme.is_in_tls13()).count();
        assert_eq!(in_tls13, 3);
        assert_eq!(Scheme::for_key(KeyAlgorithm::P384).collect::<Vec<_>>(), [Scheme::EcdsaP384Sha384]);
    }

    #[test]
    fn rejects_digest_of_wrong_length() {
        assert!(Input::Digest(&[0; 32]).digest(Scheme::EcdsaP256Sha256).is_some());
        assert!(Input::Digest(&[0; 31]).digest(Scheme::EcdsaP256Sha256).is_none());
        assert!(Input::Digest(&[0; 32]).digest(Scheme::EcdsaP384Sha384).is_none());
        assert!(Input::Message(b"m").digest(Scheme::Ed25519).is_none());
    }
}
