//! A certificate chain and the key that belongs to it, wherever that key is: only a pair that matches becomes an
//! [`Identity`], and only a signature that verifies leaves it (client-credentials.md C834).

use std::fmt;
use std::sync::Arc;

use navicert_types::Timestamp;
use rustls_pki_types::CertificateDer;
use thiserror::Error;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::error::SignError;
use crate::key::Key;
use crate::public_key::{PublicKey, PublicKeyError};
use crate::scheme::{Input, Scheme};

/// Who somebody is in TLS, with a key that may be anywhere.
#[derive(Clone)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<dyn Key>,
    public_key: PublicKey,
    not_before: Timestamp,
    not_after: Timestamp,
}

/// Why a chain and a key are no identity.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdentityError {
    /// There is no certificate.
    #[error("there is no certificate for the key")]
    NoCertificate,
    /// The certificate, or its key, cannot be used.
    #[error("the certificate cannot be used")]
    Certificate(#[source] PublicKeyError),
    /// The certificate is for another key.
    #[error("the certificate is for another key than the one found beside it")]
    Mismatch,
}

impl Identity {
    /// Puts the two together.
    ///
    /// # Errors
    /// [`IdentityError`]: they do not belong together, or the chain is empty or cannot be read.
    pub fn new(chain: Vec<CertificateDer<'static>>, key: Arc<dyn Key>) -> Result<Self, IdentityError> {
        let leaf = chain.first().ok_or(IdentityError::NoCertificate)?;
        let public_key = PublicKey::of_certificate(leaf).map_err(IdentityError::Certificate)?;
        if public_key != *key.public_key() {
            return Err(IdentityError::Mismatch);
        }
        let malformed = |_| IdentityError::Certificate(PublicKeyError::Malformed);
        let validity = X509Certificate::from_der(leaf).map_err(malformed)?.1.validity().clone();
        let moment = |seconds: i64| {
            let bound = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
            Timestamp::from_second(seconds).unwrap_or(bound)
        };
        Ok(Identity {
            not_before: moment(validity.not_before.timestamp()),
            not_after: moment(validity.not_after.timestamp()),
            chain,
            key,
            public_key,
        })
    }

    /// The certificates, leaf first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// The leaf's public key.
    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// What its key can do, best first.
    pub fn schemes(&self) -> &[Scheme] {
        self.key.schemes()
    }

    /// The key itself, whose signatures nobody has checked: for a signer, whose client does.
    pub(crate) fn key(&self) -> &Arc<dyn Key> {
        &self.key
    }

    /// From when to when the leaf may be used.
    pub fn validity(&self) -> (Timestamp, Timestamp) {
        (self.not_before, self.not_after)
    }

    /// Signs, and looks at what comes back before anybody else does: a wrong slot or a wrong padding is an error here
    /// and not an alert from a server (C834). Blocks as long as the key does.
    ///
    /// # Errors
    /// [`SignError`].
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

impl fmt::Debug for Identity {
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
