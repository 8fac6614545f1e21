//! A client certificate and its key, which belong together.

use std::fmt;

use navicert_types::Timestamp;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use zeroize::Zeroize;

/// A certificate chain, leaf first, and the private key of the leaf. The key is cleared from memory when dropped.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    validity: Validity,
}

/// When a certificate may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// From then on.
    pub not_before: Timestamp,
    /// Until then.
    pub not_after: Timestamp,
}

/// Why a chain and a key are no identity.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdentityError {
    /// There is no certificate.
    #[error("failed to find any PEM data in certificate input")]
    NoCertificate,
}

impl Identity {
    /// The certificates, leaf first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// The key. Search for this name to audit every place that reads it.
    pub fn expose_key(&self) -> &PrivateKeyDer<'static> {
        &self.key
    }

    /// When the leaf may be used.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// Whether a server would see the same client: the chains are equal byte for byte, and so the public keys (C464).
    pub fn is_same(&self, other: &Identity) -> bool {
        self.chain == other.chain
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("chain", &format_args!("{} certificates", self.chain.len()))
            .field("validity", &self.validity)
            .finish_non_exhaustive()
    }
}
