//! One JSON Web Key: which are read, which are refused (S165), and which are read but never verify anything (S119).

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use aws_lc_rs::digest;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ParsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;

use crate::json::{Kind, Raw};
use crate::jwt::Algorithm;

/// A public key of an issuer.
pub struct Key {
    kid: String,
    pub(crate) material: Material,
    pub(crate) usage: Usage,
    /// The key as each algorithm wants it, made when it is first asked for.
    parsed: [OnceLock<Option<ParsedPublicKey>>; Algorithm::ALL.len()],
    /// A header that named it, and the algorithm in it: an issuer's tokens mostly have the same one.
    header: OnceLock<(Box<str>, Algorithm)>,
}

/// A header as long as this is worth remembering.
const LONGEST_HEADER: usize = 512;

/// What a key consists of.
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
    /// Never verifies: symmetric, Ed25519, private, or outside of what RSA keys may be.
    Inert,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Curve {
    P256,
    P384,
    P521,
}

/// What the key says it is for (H10).
#[derive(Debug, Default)]
pub(crate) struct Usage {
    public_key_use: Option<String>,
    operations: Option<Vec<String>>,
    algorithm: Option<String>,
}

impl Usage {
    /// Whether signatures of this algorithm may be verified with it.
    pub(crate) fn allows(&self, algorithm: Algorithm) -> bool {
        self.public_key_use.as_ref().is_none_or(|word| word == "sig")
            && self.operations.as_ref().is_none_or(|list| list.iter().any(|word| word == "verify"))
            && self.algorithm.as_ref().is_none_or(|name| name == algorithm.name())
    }
}

/// Why a key cannot be read. Nothing of it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not an object with every member once.
    #[error("not a JSON object with every member once")]
    Shape,
    /// A member has the wrong type or is not base64.
    #[error("`{0}` is not what it has to be")]
    Member(&'static str),
    /// The type of key is not known.
    #[error("unknown `kty`")]
    Type,
    /// The curve is not supported.
    #[error("unsupported `crv`")]
    Curve,
    /// Values are missing.
    #[error("values are missing")]
    Missing,
    /// The point is not on its curve.
    #[error("the point is not on its curve")]
    Point,
    /// The certificates are not this key's.
    #[error("`x5c` or `x5t` do not belong to the key")]
    Certificate,
}

impl Key {
    /// Reads a key. `lenient`: members that only describe it (x5c, x5t, x5u) are passed over (H21).
    pub(crate) fn read(raw: Raw<'_>, lenient: bool) -> Result<Self, KeyError> {
        let members = Members::of(raw)?;
        for name in ["use", "kty", "kid", "crv", "alg"] {
            members.text(name)?;
        }
        for name in ["d", "p", "q", "dp", "dq", "qi"] {
            members.bytes(name)?;
        }
        let chain = if lenient { Vec::new() } else { members.described()? };
        let material = members.material()?;
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
        Ok(Key { kid, material, usage, parsed: Default::default(), header: OnceLock::new() })
    }

    /// Its name; empty if it has none.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Whether it can verify anything at all.
    pub fn is_usable(&self) -> bool {
        !matches!(self.material, Material::Inert)
    }

    /// Remembers the text of a plain header that names this key, if it is the first one. To be called when the signature
    /// has been checked: nobody else is to decide what is remembered.
    pub(crate) fn remember_header(&self, text: &str, algorithm: Algorithm) {
        if text.len() <= LONGEST_HEADER && self.header.get().is_none() {
            // Somebody else may have been quicker, with a header that is as good.
            let _ = self.header.set((text.into(), algorithm));
        }
    }

    /// The algorithm in a header that is remembered.
    pub(crate) fn remembered(&self, header: &str) -> Option<Algorithm> {
        self.header.get().filter(|(text, _)| **text == *header).map(|(_, algorithm)| *algorithm)
    }

    /// The key in the form that an algorithm needs, made once.
    pub(crate) fn parsed(
        &self,
        algorithm: Algorithm,
        parse: impl FnOnce() -> Option<ParsedPublicKey>,
    ) -> Option<&ParsedPublicKey> {
        self.parsed.get(algorithm.index())?.get_or_init(parse).as_ref()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.material {
            Material::Rsa { bits, .. } => format!("RSA-{bits}"),
            Material::Ec { curve, .. } => format!("{curve:?}"),
            Material::Inert => "inert".to_owned(),
        };
        f.debug_struct("Key").field("kid", &self.kid).field("kind", &kind).finish_non_exhaustive()
    }
}

/// A key in a token's header: read, and never used (S113).
pub(crate) fn check_embedded(raw: Raw<'_>) -> Result<(), KeyError> {
    let members = Members::of(raw)?;
    if members.find("d").is_some() || members.text("kty")?.as_deref() == Some("oct") {
        return Err(KeyError::Type);
    }
    Key::read(raw, false).map(|_| ())
}

/// The certificates of an `x5c` member, in DER.
pub(crate) fn certificates(raw: Raw<'_>) -> Result<Vec<Vec<u8>>, KeyError> {
    let wrong = KeyError::Member("x5c");
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

/// The members of a key, each once, null as absent.
struct Members<'r>(HashMap<String, Raw<'r>>);

impl<'r> Members<'r> {
    fn of(raw: Raw<'r>) -> Result<Self, KeyError> {
        if !matches!(raw.kind(), Kind::Object | Kind::Null) {
            return Err(KeyError::Shape);
        }
        let mut members = HashMap::new();
        for (name, value) in raw.members() {
            if members.insert(name.into_owned(), value).is_some() {
                return Err(KeyError::Shape);
            }
        }
        members.retain(|_, value| !value.is_null());
        Ok(Members(members))
    }

    fn find(&self, name: &str) -> Option<Raw<'r>> {
        self.0.get(name).copied()
    }

    fn text(&self, name: &'static str) -> Result<Option<String>, KeyError> {
        match self.find(name) {
            None => Ok(None),
            Some(value) => value.string().map(|text| Some(text.into_owned())).ok_or(KeyError::Member(name)),
        }
    }

    fn bytes(&self, name: &'static str) -> Result<Option<Vec<u8>>, KeyError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        TRAILING.decode(text).map(Some).map_err(|_| KeyError::Member(name))
    }

    fn material(&self) -> Result<Material, KeyError> {
        let is_private = self.find("d").is_some();
        match self.text("kty")?.unwrap_or_default().as_str() {
            "RSA" => {
                let (Some(modulus), Some(exponent)) = (self.bytes("n")?, self.bytes("e")?) else {
                    return Err(KeyError::Missing);
                };
                if is_private && (self.find("p").is_none() || self.find("q").is_none()) {
                    return Err(KeyError::Missing);
                }
                Ok(if is_private { Material::Inert } else { rsa(modulus, &exponent) })
            }
            "EC" => {
                let curve = match self.text("crv")?.unwrap_or_default().as_str() {
                    "P-256" => Curve::P256,
                    "P-384" => Curve::P384,
                    "P-521" => Curve::P521,
                    _ => return Err(KeyError::Curve),
                };
                let (Some(x), Some(y)) = (self.bytes("x")?, self.bytes("y")?) else {
                    return Err(KeyError::Missing);
                };
                let ec = ec(curve, &x, &y)?;
                Ok(if is_private { Material::Inert } else { ec })
            }
            "oct" => self.bytes("k")?.map(|_| Material::Inert).ok_or(KeyError::Missing),
            "OKP" if self.text("crv")?.as_deref() == Some("Ed25519") => {
                self.bytes("x")?.map(|_| Material::Inert).ok_or(KeyError::Missing)
            }
            "OKP" => Err(KeyError::Curve),
            _ => Err(KeyError::Type),
        }
    }

    /// What describes the key by certificates: has to fit together, although nothing is done with it (S165).
    fn described(&self) -> Result<Vec<Vec<u8>>, KeyError> {
        if self.find("x5u").is_some_and(|value| value.kind() != Kind::Object) {
            return Err(KeyError::Member("x5u"));
        }
        let chain = self.find("x5c").map(certificates).transpose()?.unwrap_or_default();
        let thumbprints = [("x5t", &digest::SHA1_FOR_LEGACY_USE_ONLY), ("x5t#S256", &digest::SHA256)];
        for (name, algorithm) in thumbprints {
            let Some(mut thumbprint) = self.bytes(name)?.filter(|bytes| !bytes.is_empty()) else { continue };
            if thumbprint.len() == 2 * algorithm.output_len() {
                thumbprint = hex(&thumbprint).ok_or(KeyError::Member(name))?;
            }
            let fits = chain.first().is_none_or(|der| digest::digest(algorithm, der).as_ref() == thumbprint);
            if thumbprint.len() != algorithm.output_len() || !fits {
                return Err(KeyError::Certificate);
            }
        }
        Ok(chain)
    }
}

/// Unpadded base64 in which spare bits may be anything.
const TRAILING: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

fn hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    text.chunks(2)
        .map(|pair| match pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect()
}

/// A key that RSA cannot use is inert, not an error (S118, A8, JV12).
fn rsa(mut modulus: Vec<u8>, exponent: &[u8]) -> Material {
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    modulus.drain(..zeros);
    // The reference keeps the low 64 bits.
    let low = exponent.get(exponent.len().saturating_sub(8)..).unwrap_or_default();
    let exponent = low.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let bits = modulus.first().map_or(0, |first| modulus.len() * 8 - first.leading_zeros() as usize);
    let is_odd = modulus.last().is_some_and(|last| last & 1 == 1) && exponent & 1 == 1;
    match u32::try_from(exponent) {
        Ok(exponent @ 3..=0x7fff_ffff) if is_odd => Material::Rsa { modulus, bits, exponent },
        _ => Material::Inert,
    }
}

fn ec(curve: Curve, x: &[u8], y: &[u8]) -> Result<Material, KeyError> {
    let (size, algorithm) = match curve {
        Curve::P256 => (32, &ECDSA_P256_SHA256_FIXED),
        Curve::P384 => (48, &ECDSA_P384_SHA384_FIXED),
        Curve::P521 => (66, &ECDSA_P521_SHA512_FIXED),
    };
    if x.len() != size || y.len() != size {
        return Err(KeyError::Point);
    }
    let point = [&[4], x, y].concat();
    ParsedPublicKey::new(algorithm, &point).map_err(|_| KeyError::Point)?;
    Ok(Material::Ec { curve, point })
}

fn matches_certificate(material: &Material, der: &[u8]) -> Result<(), KeyError> {
    let (_, certificate) = X509Certificate::from_der(der).map_err(|_| KeyError::Member("x5c"))?;
    let public_key = certificate.public_key().parsed().map_err(|_| KeyError::Certificate)?;
    let fits = match (material, public_key) {
        (Material::Rsa { modulus, .. }, PublicKey::RSA(theirs)) => {
            let zeros = theirs.modulus.iter().take_while(|byte| **byte == 0).count();
            theirs.modulus.get(zeros..) == Some(modulus.as_slice())
        }
        (Material::Ec { point, .. }, PublicKey::EC(theirs)) => theirs.data() == point.as_slice(),
        (Material::Inert, _) => true,
        _ => false,
    };
    if fits { Ok(()) } else { Err(KeyError::Certificate) }
}

const _: () = {
    // Keys are shared between threads.
    const fn shared<T: Send + Sync>() {}
    shared::<Key>();
};
