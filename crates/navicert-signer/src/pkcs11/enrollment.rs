//! A key of a token before it has a certificate: makes the key if it is missing, and stores the certificate beside it.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use cryptoki::mechanism::Mechanism;
use cryptoki::object::{Attribute, CertificateType, ObjectClass, ObjectHandle};
use cryptoki::session::Session;
use cryptoki::types::Ulong;
use navicert_types::Timestamp;
use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::configuration::KeySelection;
use super::inventory::{self, KeyFilter};
use super::module::{LeasedSession, Pkcs11Module, Pkcs11Token, device_error};
use super::session::{LoginPurpose, Pkcs11Key, find_token, log_in};
use super::uri::{ObjectType, Pkcs11Uri};
use crate::der;
use crate::error::SignError;
use crate::key::Key;
use crate::pin::PinProvider;
use crate::public_key::PublicKey;

/// The curve P-256 as `CKA_EC_PARAMS`.
const P256_PARAMETERS: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
/// 65537, the public exponent of RSA keys.
const EXPONENT: &[u8] = &[1, 0, 1];
/// The length of the `CKA_ID` of a key that is made without one.
const ID_BYTES: usize = 8;
/// The length of the `CKA_ID` of an issuer's certificate.
const ISSUER_ID_BYTES: usize = 20;

/// A key to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NewKey {
    /// An elliptic curve key, P-256.
    EcP256,
    /// An RSA key of 2048 bits.
    Rsa2048,
}

/// A private key in a token, with or without a certificate.
pub struct DeviceKey {
    module: Arc<Pkcs11Module>,
    token: Pkcs11Token,
    pin_provider: Arc<dyn PinProvider>,
    key: Pkcs11Key,
    id: Vec<u8>,
    label: String,
    is_new: bool,
    /// Keeps the token logged in.
    _session: LeasedSession,
}

impl DeviceKey {
    /// Finds the key. If it is missing and a kind is given, makes it in the token, from which it cannot be read. Asks for the
    /// PIN only if that is needed.
    ///
    /// # Errors
    /// [`SignError`]: the token or key is missing or ambiguous, or the token does not make such a key.
    pub fn open(
        selection: &KeySelection,
        pin_provider: Arc<dyn PinProvider>,
        missing: Option<NewKey>,
    ) -> Result<Self, SignError> {
        let module = Pkcs11Module::load(&selection.module)?;
        let uri = &selection.uri;
        let wanted = KeyFilter::from_uri(uri);
        let (token, leased) = find_token(&module, uri, &wanted)?;
        if token.needs_login && !inventory::has_match(&leased.session, &wanted) {
            log_in(&leased.session, &token, &*pin_provider, LoginPurpose::Session)?;
        }
        let find =
            || Pkcs11Key::find_without_certificate(Arc::clone(&module), uri, Arc::clone(&pin_provider));
        let (key, is_new) = match (find(), missing) {
            (Err(SignError::NoKey { .. }), Some(kind)) => {
                create(&module, &token, uri, &*pin_provider, kind)?;
                (find()?, true)
            }
            (found, _) => (found?, false),
        };
        let (id, label) = id_and_label(&leased.session, &wanted)?;
        Ok(DeviceKey { module, token, pin_provider, key, id, label, is_new, _session: leased })
    }

    /// The key, which signs.
    pub fn key(&self) -> &dyn Key {
        &self.key
    }

    /// The label of the token.
    pub fn token(&self) -> &str {
        &self.token.label
    }

    /// Whether it was made now.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// A URI that identifies exactly this key, including its module.
    pub fn uri(&self) -> Pkcs11Uri {
        Pkcs11Uri {
            token: Some(self.token.label.clone()),
            id: Some(self.id.clone()),
            object_type: Some(ObjectType::Private),
            module_path: Some(self.module.path().display().to_string()),
            ..Pkcs11Uri::default()
        }
    }

    /// Stores the key's certificate in the token, in place of an earlier one for the same key.
    ///
    /// # Errors
    /// [`SignError::UnusableCertificate`]: it is for another key or invalid. Otherwise the token does not store it.
    pub fn store_certificate(&self, certificate: &CertificateDer<'_>) -> Result<(), SignError> {
        let filter = self.filter();
        let parsed = self.parse_own(certificate)?;
        let leased = self.writing_session()?;
        let session = &leased.session;
        let earlier = self.certificates(session, &filter)?;
        let template = certificate_template(certificate, &parsed, &self.id, &self.label);
        let created = session.create_object(&template).map_err(|error| device_error(&error))?;
        // A client would select the one that expires last, which may be an earlier one.
        for handle in earlier.into_iter().filter(|handle| *handle != created) {
            session.destroy_object(handle).map_err(|error| device_error(&error))?;
        }
        Ok(())
    }

    /// Stores the certificates of issuers in the token, from which a client takes the chain that it sends. Leaves out those that the
    /// token has, and roots, which the server has. Returns how many were stored.
    ///
    /// # Errors
    /// [`SignError::UnusableCertificate`]: one is invalid. Otherwise the token does not store it.
    pub fn store_issuers(&self, issuers: &[CertificateDer<'_>]) -> Result<usize, SignError> {
        let parsed = issuers.iter().map(|issuer| Ok((issuer, self.parse(issuer)?)));
        let parsed: Vec<_> = parsed.collect::<Result<_, SignError>>()?;
        let leased = self.writing_session()?;
        let session = &leased.session;
        let mut stored: usize = 0;
        for (issuer, parsed) in
            parsed.iter().filter(|(_, parsed)| parsed.subject().as_raw() != parsed.issuer().as_raw())
        {
            let same = [Attribute::Class(ObjectClass::CERTIFICATE), Attribute::Value(issuer.to_vec())];
            if !session.find_objects(&same).map_err(|error| device_error(&error))?.is_empty() {
                continue;
            }
            let label = parsed.subject().iter_common_name().find_map(|name| name.as_str().ok());
            let template =
                certificate_template(issuer, parsed, &issuer_id(parsed), label.unwrap_or("issuer"));
            session.create_object(&template).map_err(|error| device_error(&error))?;
            stored = stored.saturating_add(1);
        }
        Ok(stored)
    }

    /// When the key's certificate expires.
    ///
    /// # Errors
    /// [`SignError::UnusableCertificate`]: it is for another key or invalid.
    pub fn certificate_expiry(&self, certificate: &CertificateDer<'_>) -> Result<Timestamp, SignError> {
        let seconds = self.parse_own(certificate)?.validity().not_after.timestamp();
        Ok(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
    }

    fn parse_own<'c>(&self, certificate: &'c CertificateDer<'_>) -> Result<X509Certificate<'c>, SignError> {
        let public_key = PublicKey::from_certificate(certificate);
        let public_key = public_key.map_err(|error| self.unusable(&error.to_string()))?;
        if public_key != *self.key.public_key() {
            return Err(self.unusable("it is for another key"));
        }
        self.parse(certificate)
    }

    fn parse<'c>(&self, certificate: &'c CertificateDer<'_>) -> Result<X509Certificate<'c>, SignError> {
        let malformed = |_| self.unusable("malformed certificate");
        X509Certificate::from_der(certificate).map(|(_, parsed)| parsed).map_err(malformed)
    }

    fn unusable(&self, problem: &str) -> SignError {
        SignError::UnusableCertificate { wanted: self.filter().describe(), problem: problem.to_owned() }
    }

    /// A session that can change the token.
    fn writing_session(&self) -> Result<LeasedSession, SignError> {
        let leased = self.module.writing_session(&self.token)?;
        if self.token.needs_login {
            log_in(&leased.session, &self.token, &*self.pin_provider, LoginPurpose::Session)?;
        }
        Ok(leased)
    }

    fn filter(&self) -> KeyFilter {
        KeyFilter::from_uri(&self.uri())
    }

    /// The certificates of this key in the token.
    fn certificates(&self, session: &Session, filter: &KeyFilter) -> Result<Vec<ObjectHandle>, SignError> {
        let template = filter.template(ObjectClass::CERTIFICATE, None);
        let found = session.find_objects(&template).map_err(|error| device_error(&error))?;
        let is_own = |handle: &ObjectHandle| {
            let certificate = inventory::read_certificate(session, *handle);
            let key = certificate.and_then(|certificate| PublicKey::from_certificate(&certificate).ok());
            key.as_ref() == Some(self.key.public_key())
        };
        Ok(found.into_iter().filter(is_own).collect())
    }
}

impl fmt::Debug for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceKey").field("key", &self.key).finish_non_exhaustive()
    }
}

/// A certificate as an object of a token.
fn certificate_template(
    certificate: &CertificateDer<'_>,
    parsed: &X509Certificate<'_>,
    id: &[u8],
    label: &str,
) -> Vec<Attribute> {
    vec![
        Attribute::Class(ObjectClass::CERTIFICATE),
        Attribute::CertificateType(CertificateType::X_509),
        Attribute::Token(true),
        Attribute::Private(false),
        Attribute::Label(label.as_bytes().to_vec()),
        Attribute::Id(id.to_vec()),
        Attribute::Subject(parsed.subject().as_raw().to_vec()),
        Attribute::Issuer(parsed.issuer().as_raw().to_vec()),
        Attribute::SerialNumber(der::integer(parsed.raw_serial())),
        Attribute::Value(certificate.to_vec()),
    ]
}

/// An id that no key of the token has: a hash of the issuer's own public key.
fn issuer_id(parsed: &X509Certificate<'_>) -> Vec<u8> {
    let hash = digest(&SHA256, parsed.public_key().raw);
    hash.as_ref().iter().take(ISSUER_ID_BYTES).copied().collect()
}

/// Makes a key pair in the token.
fn create(
    module: &Arc<Pkcs11Module>,
    token: &Pkcs11Token,
    uri: &Pkcs11Uri,
    pin_provider: &dyn PinProvider,
    kind: NewKey,
) -> Result<(), SignError> {
    if uri.id.is_none() && uri.object.is_none() {
        let problem = "to make a key, name it in the URI with `object=…` or `id=%01`".to_owned();
        return Err(SignError::Configuration { problem });
    }
    let leased = module.writing_session(token)?;
    if token.needs_login {
        log_in(&leased.session, token, pin_provider, LoginPurpose::Session)?;
    }
    let mut names = vec![Attribute::Token(true), Attribute::Id(uri.id.clone().map_or_else(random_id, Ok)?)];
    names.extend(uri.object.clone().map(|label| Attribute::Label(label.into_bytes())));
    let (mechanism, kind_attributes) = match kind {
        NewKey::EcP256 => (Mechanism::EccKeyPairGen, vec![Attribute::EcParams(P256_PARAMETERS.to_vec())]),
        NewKey::Rsa2048 => (
            Mechanism::RsaPkcsKeyPairGen,
            vec![Attribute::ModulusBits(Ulong::new(2048)), Attribute::PublicExponent(EXPONENT.to_vec())],
        ),
    };
    let public = [Attribute::Private(false), Attribute::Verify(true)];
    let private = [
        Attribute::Private(true),
        Attribute::Sensitive(true),
        Attribute::Extractable(false),
        Attribute::Sign(true),
    ];
    let public = [&names[..], &kind_attributes, &public].concat();
    let private = [&names[..], &private].concat();
    let made = leased.session.generate_key_pair(&mechanism, &public, &private);
    made.map(|_| ()).map_err(|error| device_error(&error))
}

fn random_id() -> Result<Vec<u8>, SignError> {
    let mut id = vec![0; ID_BYTES];
    let failed = |_| SignError::Internal("failed to get random bytes from the operating system".to_owned());
    rand::fill(&mut id).map_err(failed)?;
    Ok(id)
}

/// The names of the key, from its public half or an earlier certificate.
fn id_and_label(session: &Session, wanted: &KeyFilter) -> Result<(Vec<u8>, String), SignError> {
    for class in [ObjectClass::PUBLIC_KEY, ObjectClass::PRIVATE_KEY, ObjectClass::CERTIFICATE] {
        let found =
            session.find_objects(&wanted.template(class, None)).map_err(|error| device_error(&error))?;
        if let Some(handle) = found.first() {
            return Ok(inventory::id_and_label(session, *handle));
        }
    }
    Err(SignError::NoKey { wanted: wanted.describe() })
}
