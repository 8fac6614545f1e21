//! One JSON Web Key: which keys parse, which are rejected, and which parse but never verify anything.
// S165, S119

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use aws_lc_rs::digest;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ParsedPublicKey,
};
use base64::Engine as _;
use navicert_go::base64::RAW_URL;
use navicert_go::base64::STANDARD;
use navicert_go::json::{Kind, Raw};
use navicert_go::url::Url;
use num_bigint::BigUint;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;

use super::ed25519;
use crate::jwt::JwsAlgorithm;
use crate::profile::{AuthnProfile, Hardening, KeyFormat};

/// A public key of an issuer.
pub struct Jwk {
    kid: String,
    pub(crate) material: Material,
    pub(crate) usage: Usage,
    /// The key parsed for each algorithm, on first use.
    parsed: [OnceLock<Option<ParsedPublicKey>>; JwsAlgorithm::ALL.len()],
    /// A header that named this key, and its algorithm: tokens of one issuer usually share their header.
    header: OnceLock<(Box<str>, JwsAlgorithm)>,
}

/// Longest header text that is cached.
const MAX_CACHED_HEADER_BYTES: usize = 512;

/// The key material.
pub(crate) enum Material {
    Rsa {
        modulus: Vec<u8>,
        bits: usize,
        exponent: u32,
    },
    Ec {
        curve: Curve,
        point: Vec<u8>,
    },
    /// Never verifies: symmetric, Ed25519, private, or an RSA key with unusable parameters.
    Unusable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Curve {
    P256,
    P384,
    P521,
}

/// What the key may be used for.
// H10
#[derive(Debug, Default)]
pub(crate) struct Usage {
    public_key_use: Option<String>,
    operations: Option<Vec<String>>,
    algorithm: Option<String>,
}

impl Usage {
    /// Whether the key may verify signatures.
    fn is_for_signatures(&self) -> bool {
        self.public_key_use.as_ref().is_none_or(|word| word == "sig")
            && self.operations.as_ref().is_none_or(|list| list.iter().any(|word| word == "verify"))
    }

    /// Whether the key may verify signatures of this algorithm.
    pub(crate) fn allows(&self, algorithm: JwsAlgorithm) -> bool {
        self.is_for_signatures() && self.algorithm.as_ref().is_none_or(|name| name == algorithm.name())
    }
}

/// Why a key does not parse. Messages contain nothing of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwkError {
    /// Not a JSON object, or a member occurs more than once.
    #[error("not a JSON object, or a member occurs more than once")]
    Shape,
    /// A member has the wrong type or is not base64.
    #[error("invalid `{0}`")]
    Member(&'static str),
    /// The key type is missing.
    #[error("missing `kty`")]
    NoType,
    /// The key type is unknown.
    #[error("unknown `kty`")]
    Type,
    /// The curve is not supported.
    #[error("unsupported `crv`")]
    Curve,
    /// Key parameters are missing.
    #[error("missing key parameters")]
    Missing,
    /// The point is not on its curve.
    #[error("the point is not on its curve")]
    Point,
    /// The parts of a private key do not fit.
    #[error("the parts of the private key do not fit")]
    Private,
    /// The certificates do not match the key.
    #[error("`x5c` or `x5t` does not match the key")]
    Certificate,
}

/// How keys are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyRules {
    format: KeyFormat,
    /// The descriptive members `x5c`, `x5t` and `x5u` are ignored.
    // H21
    ignores_certificates: bool,
}

impl KeyRules {
    /// The rules for the key sets of a profile.
    pub(crate) fn for_profile(profile: &AuthnProfile) -> Self {
        let ignores_certificates = profile.has(Hardening::SkipUnusableKeys);
        KeyRules { ignores_certificates, ..KeyRules::upstream(profile) }
    }

    /// How members are read.
    pub(crate) fn format(self) -> KeyFormat {
        self.format
    }

    /// The rules of the profile's Kubernetes version.
    pub(crate) fn upstream(profile: &AuthnProfile) -> Self {
        KeyRules { format: profile.facts().key_format, ignores_certificates: false }
    }
}

impl Jwk {
    /// Parses a key.
    pub(crate) fn read(raw: Raw<'_>, rules: KeyRules) -> Result<Self, JwkError> {
        let members = Members::from_raw(raw)?;
        for name in ["use", "kty", "kid", "crv", "alg"] {
            members.text(name)?;
        }
        for name in ["k", "x", "y", "n", "e", "d", "p", "q", "dp", "dq", "qi"] {
            members.bytes(name)?;
        }
        let chain =
            if rules.ignores_certificates { Vec::new() } else { members.certificate_chain(rules.format)? };
        let material = members.material(rules.format)?;
        if let Some(first) = chain.first() {
            matches_certificate(&material, first)?;
        }
        let strings = |raw: Raw<'_>| raw.elements().filter_map(Raw::string).map(Into::into).collect();
        let usage = Usage {
            public_key_use: members.text("use")?,
            operations: members.find("key_ops").map(strings),
            algorithm: members.text("alg")?,
        };
        let kid = members.text("kid")?.unwrap_or_default();
        Ok(Jwk { kid, material, usage, parsed: Default::default(), header: OnceLock::new() })
    }

    /// The key ID; empty if it has none.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Whether the key can verify any signature, and is not meant for something else, such as encryption.
    pub fn is_usable(&self) -> bool {
        !matches!(self.material, Material::Unusable) && self.usage.is_for_signatures()
    }

    /// Caches the text of a plain header that names this key, if it is the first one. Call only after the signature has been
    /// verified, so that an attacker cannot choose what is cached.
    pub(crate) fn remember_header(&self, text: &str, algorithm: JwsAlgorithm) {
        if text.len() <= MAX_CACHED_HEADER_BYTES && self.header.get().is_none() {
            // A concurrent request may have set an equally valid header first.
            let _ = self.header.set((text.into(), algorithm));
        }
    }

    /// The algorithm of a cached header.
    pub(crate) fn remembered(&self, header: &str) -> Option<JwsAlgorithm> {
        self.header.get().filter(|(text, _)| **text == *header).map(|(_, algorithm)| *algorithm)
    }

    /// The key in the form that an algorithm needs, parsed once.
    pub(crate) fn parsed(
        &self,
        algorithm: JwsAlgorithm,
        parse: impl FnOnce() -> Option<ParsedPublicKey>,
    ) -> Option<&ParsedPublicKey> {
        self.parsed.get(algorithm.index())?.get_or_init(parse).as_ref()
    }
}

impl fmt::Debug for Jwk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.material {
            Material::Rsa { bits, .. } => format!("RSA-{bits}"),
            Material::Ec { curve, .. } => format!("{curve:?}"),
            Material::Unusable => "inert".to_owned(),
        };
        f.debug_struct("Jwk").field("kid", &self.kid).field("kind", &kind).finish_non_exhaustive()
    }
}

/// Validates a key embedded in a token's header, which is never used.
// S113
pub(crate) fn check_embedded(raw: Raw<'_>, rules: KeyRules) -> Result<(), JwkError> {
    let members = Members::from_raw(raw)?;
    if members.find("d").is_some() || members.text("kty")?.as_deref() == Some("oct") {
        return Err(JwkError::Type);
    }
    Jwk::read(raw, rules).map(|_| ())
}

/// The certificates of an `x5c` member, in DER.
pub(crate) fn certificates(raw: Raw<'_>) -> Result<Vec<Vec<u8>>, JwkError> {
    let wrong = JwkError::Member("x5c");
    if raw.kind() != Kind::Array {
        return Err(wrong);
    }
    let certificate = |element: Raw<'_>| {
        let text = if element.is_null() { String::new() } else { element.string()?.into_owned() };
        let der = STANDARD.decode(text).ok()?;
        let (rest, _) = X509Certificate::from_der(&der).ok()?;
        rest.is_empty().then_some(der)
    };
    raw.elements().map(certificate).collect::<Option<_>>().ok_or(wrong)
}

/// The members of a key, each at most once; null counts as absent.
struct Members<'r>(HashMap<String, Raw<'r>>);

impl<'r> Members<'r> {
    fn from_raw(raw: Raw<'r>) -> Result<Self, JwkError> {
        if !matches!(raw.kind(), Kind::Object | Kind::Null) {
            return Err(JwkError::Shape);
        }
        let mut members = HashMap::new();
        for (name, value) in raw.members() {
            if members.insert(name.into_owned(), value).is_some() {
                return Err(JwkError::Shape);
            }
        }
        members.retain(|_, value| !value.is_null());
        Ok(Members(members))
    }

    fn find(&self, name: &str) -> Option<Raw<'r>> {
        self.0.get(name).copied()
    }

    fn text(&self, name: &'static str) -> Result<Option<String>, JwkError> {
        match self.find(name) {
            None => Ok(None),
            Some(value) => value.string().map(|text| Some(text.into_owned())).ok_or(JwkError::Member(name)),
        }
    }

    fn bytes(&self, name: &'static str) -> Result<Option<Vec<u8>>, JwkError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        RAW_URL.decode(text).map(Some).map_err(|_| JwkError::Member(name))
    }

    fn material(&self, format: KeyFormat) -> Result<Material, JwkError> {
        let is_private = self.find("d").is_some();
        match self.text("kty")?.unwrap_or_default().as_str() {
            "RSA" => {
                let (Some(modulus), Some(exponent)) = (self.bytes("n")?, self.bytes("e")?) else {
                    return Err(JwkError::Missing);
                };
                if is_private && (self.find("p").is_none() || self.find("q").is_none()) {
                    return Err(JwkError::Missing);
                }
                if is_private {
                    let part = |name| self.bytes(name).map(Option::unwrap_or_default);
                    check_private_rsa(&modulus, &exponent, [part("d")?, part("p")?, part("q")?])?;
                    return Ok(Material::Unusable);
                }
                Ok(rsa(modulus, &exponent))
            }
            "EC" => {
                let curve = match self.text("crv")?.unwrap_or_default().as_str() {
                    "P-256" => Curve::P256,
                    "P-384" => Curve::P384,
                    "P-521" => Curve::P521,
                    _ => return Err(JwkError::Curve),
                };
                let (Some(x), Some(y)) = (self.bytes("x")?, self.bytes("y")?) else {
                    return Err(JwkError::Missing);
                };
                let ec = ec(curve, &x, &y)?;
                Ok(if is_private { Material::Unusable } else { ec })
            }
            "oct" => self.bytes("k")?.map(|_| Material::Unusable).ok_or(JwkError::Missing),
            "OKP" if self.text("crv")?.as_deref() == Some("Ed25519") => {
                let public = self.bytes("x")?.ok_or(JwkError::Missing)?;
                match format {
                    KeyFormat::Jose2 => {}
                    KeyFormat::Jose4 => ed25519::check(&public, self.bytes("d")?.as_deref())?,
                }
                Ok(Material::Unusable)
            }
            "OKP" => Err(match format {
                KeyFormat::Jose2 => JwkError::Curve,
                KeyFormat::Jose4 => JwkError::Type,
            }),
            "" => Err(JwkError::NoType),
            _ => Err(JwkError::Type),
        }
    }

    /// The certificate members; they have to be consistent, although they are not used.
    // S165
    fn certificate_chain(&self, format: KeyFormat) -> Result<Vec<Vec<u8>>, JwkError> {
        let is_url = |value: Raw<'_>| match format {
            KeyFormat::Jose2 => value.kind() == Kind::Object,
            KeyFormat::Jose4 => value.string().is_some_and(|text| Url::parse(&text).is_ok()),
        };
        if self.find("x5u").is_some_and(|value| !is_url(value)) {
            return Err(JwkError::Member("x5u"));
        }
        let chain = self.find("x5c").map(certificates).transpose()?.unwrap_or_default();
        let thumbprints = [("x5t", &digest::SHA1_FOR_LEGACY_USE_ONLY), ("x5t#S256", &digest::SHA256)];
        for (name, algorithm) in thumbprints {
            let Some(mut thumbprint) = self.bytes(name)?.filter(|bytes| !bytes.is_empty()) else { continue };
            if thumbprint.len() == 2 * algorithm.output_len() {
                thumbprint = hex(&thumbprint).ok_or(JwkError::Member(name))?;
            }
            let fits = chain.first().is_none_or(|der| digest::digest(algorithm, der).as_ref() == thumbprint);
            if thumbprint.len() != algorithm.output_len() || !fits {
                return Err(JwkError::Certificate);
            }
        }
        Ok(chain)
    }
}

fn hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    text.chunks(2)
        .map(|pair| match pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect()
}

/// A private RSA key is validated although it is not used: two primes whose product is the modulus, and exponents that fit.
// S165
fn check_private_rsa(modulus: &[u8], exponent: &[u8], private: [Vec<u8>; 3]) -> Result<(), JwkError> {
    let number = |bytes: &[u8]| BigUint::from_bytes_be(bytes);
    let one = BigUint::from(1_u8);
    let [secret, first, second] = private.map(|part| number(&part));
    let product = number(exponent) * secret;
    let fits = |prime: &BigUint| *prime > one && &product % (prime - &one) == one;
    let is_valid = number(modulus) == &first * &second && fits(&first) && fits(&second);
    if is_valid { Ok(()) } else { Err(JwkError::Private) }
}

/// An RSA key with unusable parameters is marked unusable, not an error.
// S118, A8, JV12
fn rsa(mut modulus: Vec<u8>, exponent: &[u8]) -> Material {
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    modulus.drain(..zeros);
    // The reference implementation keeps the low 64 bits.
    let low = exponent.get(exponent.len().saturating_sub(8)..).unwrap_or_default();
    let exponent = low.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let bits = modulus.first().map_or(0, |first| modulus.len() * 8 - first.leading_zeros() as usize);
    let is_odd = modulus.last().is_some_and(|last| last & 1 == 1) && exponent & 1 == 1;
    match u32::try_from(exponent) {
        Ok(exponent @ 3..=0x7fff_ffff) if is_odd => Material::Rsa { modulus, bits, exponent },
        _ => Material::Unusable,
    }
}

fn ec(curve: Curve, x: &[u8], y: &[u8]) -> Result<Material, JwkError> {
    let (size, algorithm) = match curve {
        Curve::P256 => (32, &ECDSA_P256_SHA256_FIXED),
        Curve::P384 => (48, &ECDSA_P384_SHA384_FIXED),
        Curve::P521 => (66, &ECDSA_P521_SHA512_FIXED),
    };
    if x.len() != size || y.len() != size {
        return Err(JwkError::Point);
    }
    let point = [&[4], x, y].concat();
    ParsedPublicKey::new(algorithm, &point).map_err(|_| JwkError::Point)?;
    Ok(Material::Ec { curve, point })
}

fn matches_certificate(material: &Material, der: &[u8]) -> Result<(), JwkError> {
    let (_, certificate) = X509Certificate::from_der(der).map_err(|_| JwkError::Member("x5c"))?;
    let public_key = certificate.public_key().parsed().map_err(|_| JwkError::Certificate)?;
    let fits = match (material, public_key) {
        (Material::Rsa { modulus, .. }, PublicKey::RSA(theirs)) => {
            let zeros = theirs.modulus.iter().take_while(|byte| **byte == 0).count();
            theirs.modulus.get(zeros..) == Some(modulus.as_slice())
        }
        (Material::Ec { point, .. }, PublicKey::EC(theirs)) => theirs.data() == point.as_slice(),
        (Material::Unusable, _) => true,
        _ => false,
    };
    if fits { Ok(()) } else { Err(JwkError::Certificate) }
}

const _: () = {
    // Keys are shared between threads.
    const fn shared<T: Send + Sync>() {}
    shared::<Jwk>();
};
