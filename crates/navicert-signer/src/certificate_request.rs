//! Certificate requests (PKCS#10) and self-signed certificates, signed by a key that stays in its device. Written out in DER,
//! because a Kubernetes user has one organization per group, which `rcgen` cannot express.

use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use navicert_types::Timestamp;
use rustls_pki_types::CertificateDer;
use thiserror::Error;

use crate::der::{self, element, sequence};
use crate::error::SignError;
use crate::key::Key;
use crate::scheme::{Input, Scheme};

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];
/// `digitalSignature`, the first of the bits.
const DIGITAL_SIGNATURE: &[u8] = &[0x03, 0x02, 0x07, 0x80];

const BOOLEAN_TRUE: &[u8] = &[0x01, 0x01, 0xff];
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SET: u8 = 0x31;
const CONTEXT_0: u8 = 0xa0;
const CONTEXT_3: u8 = 0xa3;

/// The length of a line of PEM.
const PEM_LINE_BYTES: usize = 64;
/// The longest name that is accepted: API servers limit the length of user names and groups in practice.
const MAX_NAME_BYTES: usize = 512;

/// The subject of a client certificate as Kubernetes reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSubject {
    common_name: String,
    organizations: Vec<String>,
}

/// Why a subject is invalid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubjectError {
    /// A name is empty, too long, or has control characters.
    #[error("invalid {0}: expected 1 to {MAX_NAME_BYTES} bytes without control characters")]
    Name(&'static str),
}

impl CertificateSubject {
    /// The common name is the user, each organization a group.
    ///
    /// # Errors
    /// [`SubjectError`].
    pub fn new(common_name: &str, organizations: &[String]) -> Result<Self, SubjectError> {
        let is_valid =
            |name: &str| (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control);
        if !is_valid(common_name) {
            return Err(SubjectError::Name("common name"));
        }
        if !organizations.iter().all(|name| is_valid(name)) {
            return Err(SubjectError::Name("organization"));
        }
        Ok(CertificateSubject { common_name: common_name.to_owned(), organizations: organizations.to_vec() })
    }

    /// The user.
    pub fn common_name(&self) -> &str {
        &self.common_name
    }

    /// The groups.
    pub fn organizations(&self) -> &[String] {
        &self.organizations
    }

    /// `RDNSequence`, one attribute each.
    fn to_der(&self) -> Vec<u8> {
        let attribute = |oid: &[u8], value: &str| {
            let value = element(UTF8_STRING, value.as_bytes());
            element(SET, &sequence(&[&element(OBJECT_IDENTIFIER, oid), &value]))
        };
        let organizations = self.organizations.iter().map(|name| attribute(ORGANIZATION, name));
        let names: Vec<Vec<u8>> = organizations.chain([attribute(COMMON_NAME, &self.common_name)]).collect();
        sequence(&names.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }
}

/// A PKCS#10 request for a certificate of the key, as DER. Blocks as long as the key does.
///
/// # Errors
/// [`SignError`]: the key does not sign, or has no scheme that certificates use.
pub fn certificate_request(subject: &CertificateSubject, key: &dyn Key) -> Result<Vec<u8>, SignError> {
    let algorithm = SignatureAlgorithm::for_key(key)?;
    let version = der::integer(&[0]);
    let attributes = element(CONTEXT_0, &[]);
    let info = sequence(&[&version, &subject.to_der(), &key.public_key().to_der(), &attributes]);
    algorithm.sign(key, &info)
}

/// A client certificate of the key, signed by the key itself, as DER. Blocks as long as the key does.
///
/// # Errors
/// [`SignError`], as for [`certificate_request`].
pub fn self_signed_certificate(
    subject: &CertificateSubject,
    key: &dyn Key,
    (not_before, not_after): (Timestamp, Timestamp),
) -> Result<CertificateDer<'static>, SignError> {
    let algorithm = SignatureAlgorithm::for_key(key)?;
    let mut serial = [0; 16];
    rand::fill(&mut serial).map_err(|_| {
        SignError::Internal("failed to get random bytes from the operating system".to_owned())
    })?;
    // Positive, and the same length always.
    serial[0] = serial[0] & 0x3f | 0x40;
    let name = subject.to_der();
    let extensions = sequence(&[
        &sequence(&[
            &element(OBJECT_IDENTIFIER, KEY_USAGE),
            BOOLEAN_TRUE,
            &element(OCTET_STRING, DIGITAL_SIGNATURE),
        ]),
        &sequence(&[
            &element(OBJECT_IDENTIFIER, EXTENDED_KEY_USAGE),
            &element(OCTET_STRING, &sequence(&[&element(OBJECT_IDENTIFIER, CLIENT_AUTH)])),
        ]),
    ]);
    let certificate = sequence(&[
        &element(CONTEXT_0, &der::integer(&[2])),
        &der::integer(&serial),
        &algorithm.to_der(),
        &name,
        &sequence(&[&time(not_before), &time(not_after)]),
        &name,
        &key.public_key().to_der(),
        &element(CONTEXT_3, &extensions),
    ]);
    algorithm.sign(key, &certificate).map(CertificateDer::from)
}

/// PEM text of a request or certificate.
pub fn pem(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let (lines, rest) = encoded.as_bytes().as_chunks::<PEM_LINE_BYTES>();
    let lines = lines.iter().map(<[u8; PEM_LINE_BYTES]>::as_slice).chain([rest]);
    let lines = lines.filter(|line| !line.is_empty()).map(String::from_utf8_lossy);
    let body: String = lines.map(|line| format!("{line}\n")).collect();
    format!("-----BEGIN {label}-----\n{body}-----END {label}-----\n")
}

/// UTCTime until 2049, GeneralizedTime after it (RFC 5280).
fn time(moment: Timestamp) -> Vec<u8> {
    let year: i32 = moment.strftime("%Y").to_string().parse().unwrap_or_default();
    match year {
        1950..=2049 => element(UTC_TIME, moment.strftime("%y%m%d%H%M%SZ").to_string().as_bytes()),
        _ => element(GENERALIZED_TIME, moment.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes()),
    }
}

/// A signature algorithm of certificates: a scheme, and its identifier.
struct SignatureAlgorithm {
    scheme: Scheme,
    identifier: &'static [u8],
}

impl SignatureAlgorithm {
    /// In order of preference. TLS's RSA-PSS schemes are left out: not every authority reads them in a request.
    const ALL: [SignatureAlgorithm; 7] = [
        SignatureAlgorithm::new(Scheme::EcdsaP256Sha256, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]),
        SignatureAlgorithm::new(Scheme::EcdsaP384Sha384, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3]),
        SignatureAlgorithm::new(Scheme::EcdsaP521Sha512, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4]),
        SignatureAlgorithm::new(Scheme::Ed25519, &[0x2b, 0x65, 0x70]),
        SignatureAlgorithm::new(Scheme::RsaPkcs1Sha256, &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11]),
        SignatureAlgorithm::new(Scheme::RsaPkcs1Sha384, &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12]),
        SignatureAlgorithm::new(Scheme::RsaPkcs1Sha512, &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13]),
    ];

    const fn new(scheme: Scheme, identifier: &'static [u8]) -> Self {
        SignatureAlgorithm { scheme, identifier }
    }

    fn for_key(key: &dyn Key) -> Result<Self, SignError> {
        let supported = |algorithm: &SignatureAlgorithm| key.schemes().contains(&algorithm.scheme);
        SignatureAlgorithm::ALL.into_iter().find(supported).ok_or_else(|| SignError::UnsupportedScheme {
            scheme: "a signature scheme of certificate requests".to_owned(),
        })
    }

    /// `AlgorithmIdentifier`; for RSA with a NULL parameter.
    fn to_der(&self) -> Vec<u8> {
        let identifier = element(OBJECT_IDENTIFIER, self.identifier);
        match self.scheme.padding() {
            Some(_) => sequence(&[&identifier, &[0x05, 0x00]]),
            None => sequence(&[&identifier]),
        }
    }

    /// Appends algorithm and signature to what is signed.
    fn sign(&self, key: &dyn Key, content: &[u8]) -> Result<Vec<u8>, SignError> {
        let input = Input::Message(content);
        let signature = key.sign(self.scheme, input)?;
        if !key.public_key().verifies(self.scheme, input, &signature) {
            return Err(SignError::WrongSignature { scheme: self.scheme });
        }
        let bits = element(BIT_STRING, &[&[0], signature.as_slice()].concat());
        Ok(sequence(&[content, &self.to_der(), &bits]))
    }
}

#[cfg(test)]
mod tests {
    use rustls_pki_types::pem::PemObject;
    use x509_parser::prelude::{FromDer, X509Certificate, X509CertificationRequest};

    use super::*;
    use crate::public_key::PublicKey;
    use crate::software::SoftwareKey;

    fn subject() -> CertificateSubject {
        CertificateSubject::new("ann", &["developers".to_owned(), "on-call: née".to_owned()]).unwrap()
    }

    /// One key per algorithm.
    fn keys() -> Vec<SoftwareKey> {
        use navicert_testkit::{Ca, KeyKind};
        let kinds = [KeyKind::EcP256, KeyKind::EcP384, KeyKind::EcP521, KeyKind::Ed25519, KeyKind::Rsa2048];
        let key = |kind| {
            let issued = Ca::new("root").client("ann").key(kind).issue();
            let der = rustls_pki_types::PrivateKeyDer::from_pem_slice(issued.key_pem().as_bytes()).unwrap();
            SoftwareKey::from_der(der.secret_der()).unwrap()
        };
        kinds.into_iter().map(key).collect()
    }

    #[test]
    fn request_names_user_and_groups_and_is_signed_by_the_key() {
        for key in keys() {
            let der = certificate_request(&subject(), &key).unwrap();
            let (rest, parsed) = X509CertificationRequest::from_der(&der).unwrap();
            assert!(rest.is_empty());
            let info = &parsed.certification_request_info;
            assert_eq!(info.version.0, 0);
            assert_eq!(info.subject.to_string(), "O=developers, O=on-call: née, CN=ann");
            assert_eq!(PublicKey::from_der(info.subject_pki.raw).as_ref(), Ok(key.public_key()));
        }
    }

    #[test]
    fn self_signed_certificate_forms_an_identity_with_its_key() {
        for key in keys() {
            let from: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
            let to: Timestamp = "2051-01-02T03:04:05Z".parse().unwrap();
            let certificate = self_signed_certificate(&subject(), &key, (from, to)).unwrap();
            let (_, parsed) = X509Certificate::from_der(&certificate).unwrap();
            assert_eq!(parsed.subject(), parsed.issuer());
            assert!(parsed.extended_key_usage().unwrap().unwrap().value.client_auth);
            assert!(parsed.key_usage().unwrap().unwrap().value.digital_signature());
            let identity =
                crate::SigningIdentity::new(vec![certificate.clone()], std::sync::Arc::new(key)).unwrap();
            assert_eq!(identity.validity(), (from, to));
        }
    }

    #[test]
    fn pem_has_lines_of_64_characters() {
        for length in [1, 47, 48, 49, 200] {
            let der = vec![7; length];
            let text = pem("CERTIFICATE REQUEST", &der);
            assert_eq!(text, navicert_testkit::pki::ca::pem("CERTIFICATE REQUEST", &der), "{length}");
        }
    }

    #[test]
    fn names_without_meaning_are_rejected() {
        let new = |name: &str, group: &str| CertificateSubject::new(name, &[group.to_owned()]);
        for (name, group, problem) in [
            ("", "g", "common name"),
            ("a\n", "g", "common name"),
            (&"a".repeat(513), "g", "common name"),
            ("a", "", "organization"),
            ("a", "g\u{7}", "organization"),
        ] {
            let error = new(name, group).unwrap_err().to_string();
            assert!(error.starts_with(&format!("invalid {problem}: expected")), "{error}");
        }
        assert!(new("system:node", "x").is_ok());
    }
}
