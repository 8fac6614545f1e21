//! Finds the keys and certificates on a token and matches them to each other.

use std::sync::Arc;

use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use cryptoki::session::Session;
use navicert_types::Timestamp;
use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, ParsedExtension, X509Certificate};

use super::module::{Pkcs11Module, Pkcs11Token, device_error};
use super::sign;
use super::uri::{ObjectType, Pkcs11Uri};
use crate::error::SignError;
use crate::public_key::PublicKey;
use crate::scheme::Scheme;

/// The longest certificate chain built.
const MAX_CHAIN_LENGTH: usize = 8;

/// Selects a key of a token.
#[derive(Clone, Debug)]
pub(super) struct KeyFilter {
    id: Option<Vec<u8>>,
    label: Option<String>,
}

impl KeyFilter {
    pub(super) fn from_uri(uri: &Pkcs11Uri) -> Self {
        KeyFilter { id: uri.id.clone(), label: uri.object.clone() }
    }

    pub(super) fn template(&self, class: ObjectClass, more: Option<Attribute>) -> Vec<Attribute> {
        let mut template = vec![Attribute::Class(class)];
        template.extend(self.id.clone().map(Attribute::Id));
        template.extend(self.label.clone().map(|label| Attribute::Label(label.into_bytes())));
        template.extend(more);
        template
    }

    pub(super) fn describe(&self) -> String {
        let hex = |id: &Vec<u8>| id.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
        match (&self.id, &self.label) {
            (Some(id), Some(label)) => format!("with id {} and label `{label}`", hex(id)),
            (Some(id), None) => format!("with id {}", hex(id)),
            (None, Some(label)) => format!("with label `{label}`"),
            (None, None) => "in the token".to_owned(),
        }
    }
}

/// The public key and certificates that match a [`KeyFilter`].
pub(super) struct PublicObjects {
    keys: Vec<PublicKey>,
    leaves: Vec<CertificateDer<'static>>,
    others: Vec<CertificateDer<'static>>,
}

impl PublicObjects {
    /// Whether a certificate was found; it contains the public key.
    pub(super) fn is_complete(&self) -> bool {
        !self.leaves.is_empty()
    }

    /// Whether the public key is known.
    pub(super) fn has_key(&self) -> bool {
        !self.keys.is_empty() || self.is_complete()
    }

    /// The public key, whether or not there is a certificate for it.
    pub(super) fn into_key(self, wanted: &KeyFilter) -> Result<PublicKey, SignError> {
        match self.keys.as_slice() {
            [key] => Ok(key.clone()),
            [] if self.is_complete() => self.into_key_and_chain(wanted).map(|(key, _)| key),
            [] => Err(SignError::NoKey { wanted: wanted.describe() }),
            several => Err(SignError::Ambiguous { what: "keys", count: several.len() }),
        }
    }

    /// The key and its chain. A public key object takes precedence over the certificate, which may belong to another key
    /// with the same identifier; `SigningIdentity::new` checks that they match.
    pub(super) fn into_key_and_chain(
        self,
        wanted: &KeyFilter,
    ) -> Result<(PublicKey, Vec<CertificateDer<'static>>), SignError> {
        let describe = || wanted.describe();
        if self.keys.len() > 1 {
            return Err(SignError::Ambiguous { what: "keys", count: self.keys.len() });
        }
        let mut leaves = self.leaves;
        if let Some(key) = self.keys.first() {
            // If the key has several certificates, use the one that expires last.
            if leaves.iter().any(|leaf| PublicKey::from_certificate(leaf).as_ref() == Ok(key)) {
                leaves.retain(|leaf| PublicKey::from_certificate(leaf).as_ref() == Ok(key));
            }
        }
        leaves.sort_by_key(not_after);
        let leaf = leaves.pop().ok_or_else(|| SignError::NoCertificate { wanted: describe() })?;
        let key = match self.keys.into_iter().next() {
            Some(key) => key,
            None => PublicKey::from_certificate(&leaf).map_err(|error| SignError::UnusableCertificate {
                wanted: describe(),
                problem: error.to_string(),
            })?,
        };
        Ok((key, chain(leaf, &self.others)))
    }
}

/// Finds the certificate and the public key. Private objects are hidden without a login.
pub(super) fn find_public_objects(session: &Session, wanted: &KeyFilter) -> Result<PublicObjects, SignError> {
    let failed = |error| device_error(&error);
    let public = session.find_objects(&wanted.template(ObjectClass::PUBLIC_KEY, None)).map_err(failed)?;
    let keys = public.into_iter().filter_map(|handle| read_public_key(session, handle)).collect();
    let leaves = session.find_objects(&wanted.template(ObjectClass::CERTIFICATE, None)).map_err(failed)?;
    let all = session.find_objects(&[Attribute::Class(ObjectClass::CERTIFICATE)]).map_err(failed)?;
    let read = |handles: Vec<ObjectHandle>| {
        handles.into_iter().filter_map(|handle| read_certificate(session, handle)).collect()
    };
    Ok(PublicObjects { keys, leaves: read(leaves), others: read(all) })
}

/// Whether any visible object matches.
pub(super) fn has_match(session: &Session, wanted: &KeyFilter) -> bool {
    let classes = [ObjectClass::CERTIFICATE, ObjectClass::PUBLIC_KEY, ObjectClass::PRIVATE_KEY];
    let seen =
        |class| session.find_objects(&wanted.template(class, None)).is_ok_and(|found| !found.is_empty());
    classes.into_iter().any(seen)
}

pub(super) fn read_certificate(session: &Session, handle: ObjectHandle) -> Option<CertificateDer<'static>> {
    let values = session.get_attributes(handle, &[AttributeType::Value]).ok()?;
    values.into_iter().find_map(|value| match value {
        Attribute::Value(der) => Some(CertificateDer::from(der)),
        _ => None,
    })
}

fn read_public_key(session: &Session, handle: ObjectHandle) -> Option<PublicKey> {
    let kind = session.get_attributes(handle, &[AttributeType::KeyType]).ok()?;
    let is_rsa = kind.iter().any(|value| matches!(value, Attribute::KeyType(KeyType::RSA)));
    let wanted = match is_rsa {
        true => [AttributeType::Modulus, AttributeType::PublicExponent],
        false => [AttributeType::EcParams, AttributeType::EcPoint],
    };
    match session.get_attributes(handle, &wanted).ok()?.as_slice() {
        [Attribute::Modulus(modulus), Attribute::PublicExponent(exponent)] => {
            PublicKey::from_rsa(modulus, exponent).ok()
        }
        [Attribute::EcParams(parameters), Attribute::EcPoint(point)] => {
            PublicKey::from_curve(parameters, point).ok()
        }
        _ => None,
    }
}

fn not_after(certificate: &CertificateDer<'static>) -> i64 {
    X509Certificate::from_der(certificate).map_or(0, |(_, parsed)| parsed.validity().not_after.timestamp())
}

/// The leaf and its issuers on the same token, without the root, which the server has.
fn chain(leaf: CertificateDer<'static>, others: &[CertificateDer<'static>]) -> Vec<CertificateDer<'static>> {
    let mut chain = vec![leaf];
    while let Some(last) = chain.last()
        && chain.len() < MAX_CHAIN_LENGTH
        && let Some(issuer) = issuer_of(last, others)
        && !chain.contains(&issuer)
    {
        chain.push(issuer);
    }
    chain
}

fn issuer_of(
    certificate: &CertificateDer<'static>,
    others: &[CertificateDer<'static>],
) -> Option<CertificateDer<'static>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let wanted = parsed.issuer().as_raw();
    let is_issuer = |other: &X509Certificate<'_>| {
        other.subject().as_raw() == wanted && other.subject().as_raw() != other.issuer().as_raw()
    };
    let key_id = authority_key_id(&parsed);
    // An authority with a new key may keep its name, and the token both of its certificates.
    let has_key_id = |other: &X509Certificate<'_>| key_id.is_some() && subject_key_id(other) == key_id;
    let find = |is_wanted: &dyn Fn(&X509Certificate<'_>) -> bool| {
        others.iter().find(|other| X509Certificate::from_der(other).is_ok_and(|(_, other)| is_wanted(&other)))
    };
    find(&|other| is_issuer(other) && has_key_id(other)).or_else(|| find(&is_issuer)).cloned()
}

/// The id of the key that signed a certificate.
fn authority_key_id<'c>(certificate: &X509Certificate<'c>) -> Option<&'c [u8]> {
    certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref().map(|id| id.0),
        _ => None,
    })
}

/// The id of a certificate's own key.
fn subject_key_id<'c>(certificate: &X509Certificate<'c>) -> Option<&'c [u8]> {
    certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0),
        _ => None,
    })
}

/// A key as `navicert signer list` shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FoundKey {
    /// `CKA_ID`.
    pub id: Vec<u8>,
    /// `CKA_LABEL`.
    pub label: String,
    /// The public key, if its algorithm is supported.
    pub public_key: Option<PublicKey>,
    /// The supported schemes.
    pub schemes: Vec<Scheme>,
    /// Its certificate and the issuers that are on the token.
    pub chain: Vec<CertificateDer<'static>>,
    /// A URI that identifies exactly this key, including its module.
    pub uri: Pkcs11Uri,
}

impl FoundKey {
    /// The subject and expiry of the certificate; `None` without one.
    pub fn holder(&self) -> Option<CertificateHolder> {
        let (_, parsed) = X509Certificate::from_der(self.chain.first()?).ok()?;
        let names = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        let (mut names, subject) = (names.map(str::to_owned), parsed.subject().to_string());
        let not_after = Timestamp::from_second(parsed.validity().not_after.timestamp()).ok()?;
        Some(CertificateHolder { name: names.next().unwrap_or_else(|| subject.clone()), subject, not_after })
    }
}

/// Subject and expiry of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CertificateHolder {
    /// The common name, which Kubernetes uses as the user name.
    pub name: String,
    /// The full subject.
    pub subject: String,
    /// When the certificate expires.
    pub not_after: Timestamp,
}

/// Lists the keys of a token that are visible without a PIN, by public key or certificate.
///
/// # Errors
/// [`SignError`].
pub fn inventory(module: &Arc<Pkcs11Module>, token: &Pkcs11Token) -> Result<Vec<FoundKey>, SignError> {
    let leased = module.session(token)?;
    let session = &leased.session;
    let failed = |error| device_error(&error);
    let mut found: Vec<FoundKey> = Vec::new();
    for class in [ObjectClass::PUBLIC_KEY, ObjectClass::CERTIFICATE] {
        for handle in session.find_objects(&[Attribute::Class(class)]).map_err(failed)? {
            let (id, label) = id_and_label(session, handle);
            if id.is_empty() || found.iter().any(|known| known.id == id) {
                continue;
            }
            let wanted = KeyFilter { id: Some(id.clone()), label: None };
            let half = find_public_objects(session, &wanted)?;
            let is_authority = half.keys.is_empty() && half.leaves.iter().all(is_authority);
            if is_authority {
                continue;
            }
            let seen = half.keys.first().cloned();
            let (public_key, chain) = match half.into_key_and_chain(&wanted) {
                Ok((key, chain)) => (Some(key), chain),
                Err(_) => (seen, Vec::new()),
            };
            let schemes = public_key
                .as_ref()
                .map(|key| sign::schemes(key.algorithm(), &token.mechanisms))
                .unwrap_or_default();
            let uri = Pkcs11Uri {
                token: Some(token.label.clone()),
                id: Some(id.clone()),
                object_type: Some(ObjectType::Private),
                module_path: Some(module.path().display().to_string()),
                ..Pkcs11Uri::default()
            };
            found.push(FoundKey { id, label, public_key, schemes, chain, uri });
        }
    }
    Ok(found)
}

fn is_authority(certificate: &CertificateDer<'static>) -> bool {
    X509Certificate::from_der(certificate).is_ok_and(|(_, parsed)| parsed.is_ca())
}

pub(super) fn id_and_label(session: &Session, handle: ObjectHandle) -> (Vec<u8>, String) {
    let (mut id, mut label) = (Vec::new(), String::new());
    for value in
        session.get_attributes(handle, &[AttributeType::Id, AttributeType::Label]).unwrap_or_default()
    {
        match value {
            Attribute::Id(octets) => id = octets,
            Attribute::Label(octets) => label = String::from_utf8_lossy(&octets).into_owned(),
            _ => {}
        }
    }
    (id, label)
}
