//! Implements rustls's `SigningKey` for an identity: chooses a scheme and signs.
// C833

use std::sync::Arc;

use rustls::sign::{Signer, SigningKey};
use rustls::{OtherError, SignatureAlgorithm, SignatureScheme};

use crate::error::SignError;
use crate::identity::SigningIdentity;
use crate::scheme::{Input, KeyAlgorithm, Scheme};

/// The key of an identity.
#[derive(Debug)]
pub(super) struct TlsKey(pub(super) Arc<SigningIdentity>);

impl SigningKey for TlsKey {
    /// Uses the client's order of preference. Without a common scheme rustls would continue without a certificate and the
    /// request would be anonymous, so this returns a signer that fails with [`SignError::NoCommonScheme`].
    // C833
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let scheme = self.0.schemes().iter().copied().find(|scheme| offered.contains(&scheme.to_rustls()));
        Some(Box::new(TlsSigner { identity: Arc::clone(&self.0), scheme }))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        match self.0.public_key().algorithm() {
            KeyAlgorithm::Rsa => SignatureAlgorithm::RSA,
            KeyAlgorithm::P256 | KeyAlgorithm::P384 | KeyAlgorithm::P521 => SignatureAlgorithm::ECDSA,
            KeyAlgorithm::Ed25519 => SignatureAlgorithm::ED25519,
        }
    }
}

/// One signature of one handshake.
#[derive(Debug)]
struct TlsSigner {
    identity: Arc<SigningIdentity>,
    scheme: Option<Scheme>,
}

impl Signer for TlsSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let signed = match self.scheme {
            Some(scheme) => self.identity.sign(scheme, Input::Message(message)),
            None => {
                let can: Vec<_> = self.identity.schemes().iter().map(|scheme| scheme.name()).collect();
                Err(SignError::NoCommonScheme { can: can.join(", ") })
            }
        };
        signed.map_err(|error| rustls::Error::Other(OtherError(Arc::new(error))))
    }

    fn scheme(&self) -> SignatureScheme {
        self.scheme.map_or(SignatureScheme::Unknown(0), Scheme::to_rustls)
    }
}

/// The [`SignError`] behind a handshake error, if any.
pub fn sign_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a SignError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<SignError>() {
            return Some(found);
        }
        if let Some(rustls::Error::Other(OtherError(inner))) = error.downcast_ref::<rustls::Error>()
            && let Some(found) = (**inner).downcast_ref::<SignError>()
        {
            return Some(found);
        }
        // `io::Error::source` skips the inner error; `get_ref` returns it.
        let inside = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = inside.map(|inner| inner as &(dyn std::error::Error + 'static)).or_else(|| error.source());
    }
    None
}
