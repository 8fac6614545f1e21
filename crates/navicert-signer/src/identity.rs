//! A certificate chain with its private key. A [`SigningIdentity`] exists only for a matching pair, and returns only
//! signatures that verify.
// C834

use std::fmt;
use std::sync::Arc;

use navicert_types::Timestamp;
use rustls::sign::CertifiedKey;
use rustls_pki_types::CertificateDer;
use thiserror::Error;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::error::SignError;
use crate::key::Key;
#[cfg(feature = "pkcs11")]
use crate::pkcs11::KeyBuilder;
use crate::public_key::{PublicKey, PublicKeyError};
use crate::scheme::{Input, Scheme};
use crate::tls::{self, ClientCertificate};

/// A client identity for TLS: a certificate chain and a [`Key`].
#[derive(Clone)]
pub struct SigningIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<dyn Key>,
    public_key: PublicKey,
    not_before: Timestamp,
    not_after: Timestamp,
}

/// Why a chain and a key do not form an identity.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdentityError {
    /// There is no certificate.
    #[error("missing certificate for the key")]
    NoCertificate,
    /// The certificate or its key cannot be used.
    #[error("invalid certificate")]
    Certificate(#[source] PublicKeyError),
    /// The certificate is for another key.
    #[error("the certificate does not match the key")]
    Mismatch,
}

impl SigningIdentity {
    /// Combines a chain and its key.
    ///
    /// # Errors
    /// [`IdentityError`]: the certificate does not match the key, or the chain is empty or invalid.
    pub fn new(chain: Vec<CertificateDer<'static>>, key: Arc<dyn Key>) -> Result<Self, IdentityError> {
        let leaf = chain.first().ok_or(IdentityError::NoCertificate)?;
        let public_key = PublicKey::from_certificate(leaf).map_err(IdentityError::Certificate)?;
        if public_key != *key.public_key() {
            return Err(IdentityError::Mismatch);
        }
        let malformed = |_| IdentityError::Certificate(PublicKeyError::Malformed);
        let validity = X509Certificate::from_der(leaf).map_err(malformed)?.1.validity().clone();
        let moment = |seconds: i64| {
            let bound = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
            Timestamp::from_second(seconds).unwrap_or(bound)
        };
        Ok(SigningIdentity {
            not_before: moment(validity.not_before.timestamp()),
            not_after: moment(validity.not_after.timestamp()),
            chain,
            key,
            public_key,
        })
    }

    /// Opens a key of a PKCS#11 token with its certificate. The one-line form of [`KeyBuilder`]: the module is the URI's
    /// `module-path`, else `NAVICERT_PKCS11_MODULE`; the PIN comes from the URI's `pin-source`, the program in
    /// `NAVICERT_PINENTRY` or the terminal. Blocks.
    ///
    /// # Errors
    /// [`SignError`], as for [`KeyBuilder::open`].
    #[cfg(feature = "pkcs11")]
    pub fn from_pkcs11(uri: &str) -> Result<Self, SignError> {
        KeyBuilder::new(uri).open()
    }

    /// Presents the certificate to every server that asks for one, for rustls' `with_client_cert_resolver`.
    pub fn client_cert_resolver(&self) -> Arc<ClientCertificate> {
        Arc::new(ClientCertificate::new(Arc::new(self.clone())))
    }

    /// The chain and key as rustls uses them, for resolvers of your own and for servers.
    pub fn certified_key(&self) -> Arc<CertifiedKey> {
        tls::certified_key(Arc::new(self.clone()))
    }

    /// The certificates, leaf first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// The leaf's public key.
    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// The schemes its key supports, best first.
    pub fn schemes(&self) -> &[Scheme] {
        self.key.schemes()
    }

    /// The key itself, which returns unverified signatures: the client of a signer verifies them.
    pub(crate) fn key(&self) -> &Arc<dyn Key> {
        &self.key
    }

    /// The validity period of the leaf certificate.
    pub fn validity(&self) -> (Timestamp, Timestamp) {
        (self.not_before, self.not_after)
    }

    /// Signs and verifies the signature, so that a wrong slot or padding is an error here and not a TLS alert from the
    /// server. Blocks as long as the key does.
    ///
    /// # Errors
    /// [`SignError`].
    // C834
    pub fn sign(&self, scheme: Scheme, input: Input<'_>) -> Result<Vec<u8>, SignError> {
        if !self.key.schemes().contains(&scheme) {
            return Err(SignError::UnsupportedScheme { scheme: scheme.to_string() });
        }
        let signature = self.key.sign(scheme, input)?;
        if !self.public_key.verifies(scheme, input, &signature) {
            return Err(SignError::WrongSignature { scheme });
        }
        Ok(signature)
    }
}

impl fmt::Debug for SigningIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("chain", &format_args!("{} certificates", self.chain.len()))
            .field("key", &self.key)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
