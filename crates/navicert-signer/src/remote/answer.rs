//! The signer's side of one question, in either version: find the key, sign, say why not.

use std::fmt;
use std::sync::Arc;

use navicert_types::external_signer::{Configuration, v1, v1alpha1};

use super::wire;
use crate::error::{Reason, SignError};
use crate::identity::Identity;
use crate::scheme::{Input, Scheme};

/// Where a signer finds its keys.
pub trait KeyRing: fmt::Debug + Send + Sync {
    /// The key a configuration means. `interactive` says whether the user may be asked at the terminal.
    ///
    /// # Errors
    /// [`SignError`].
    fn find(&self, configuration: &Configuration, interactive: bool) -> Result<Arc<Identity>, SignError>;
}

/// Answers a question of the second version; what goes wrong is an answer too (C884).
pub fn answer(ring: &dyn KeyRing, request: &v1::Request) -> v1::Message {
    let answered = match request {
        v1::Request::Certificate(request) => {
            ring.find(&request.configuration, request.interactive).map(|identity| certificate(&identity))
        }
        v1::Request::Sign(request) => sign(ring, request),
    };
    answered.unwrap_or_else(|error| v1::Message::Error {
        reason: error.reason().name().to_owned(),
        message: error.with_sources(),
        retry_after_seconds: None,
    })
}

fn certificate(identity: &Identity) -> v1::Message {
    v1::Message::Certificate {
        chain: identity.chain().iter().map(|certificate| certificate.as_ref().to_vec()).collect(),
        schemes: identity.schemes().iter().map(|scheme| scheme.name().to_owned()).collect(),
        expires: Some(identity.validity().1),
        key_handle: None,
    }
}

/// The message is looked at first: what is no client's handshake is not signed (X8). The signature is not checked here;
/// the client does that, with the certificate it will show (C834).
fn sign(ring: &dyn KeyRing, request: &v1::SignRequest) -> Result<v1::Message, SignError> {
    let unsupported = || SignError::UnsupportedScheme { scheme: format!("`{}`", request.scheme) };
    let scheme = Scheme::by_name(&request.scheme).ok_or_else(unsupported)?;
    if !wire::is_client_handshake(&request.message) {
        return Err(SignError::Internal("what is to be signed is no TLS client's handshake".to_owned()));
    }
    let input = Input::Message(&request.message);
    if let Some(digest) = &request.digest
        && input.digest(scheme).as_deref() != Some(digest.as_slice())
    {
        return Err(SignError::Internal("`digest` is not the hash of `message`".to_owned()));
    }
    let identity = ring.find(&request.configuration, request.interactive)?;
    let signature = identity.key().sign(scheme, input)?;
    Ok(v1::Message::Signature { signature, scheme: scheme.name().to_owned() })
}

/// Answers a question of the first version, which has no words for what goes wrong: that goes to stderr and an exit code.
///
/// # Errors
/// [`SignError`].
pub fn answer_v1alpha1(
    ring: &dyn KeyRing,
    request: &v1alpha1::Request,
    interactive: bool,
) -> Result<String, SignError> {
    let identity = ring.find(request.configuration(), interactive)?;
    match request {
        v1alpha1::Request::Certificate { kinds, .. } => {
            // The leaf alone: what the prototype sends. A chain would be concatenated DER, which it cannot read.
            let leaf = identity.chain().first();
            let leaf = leaf.ok_or_else(|| SignError::NoObject { wanted: "certificate".to_owned() })?;
            Ok(v1alpha1::certificate_response(leaf, *kinds))
        }
        v1alpha1::Request::Sign { digest, options_type, options, kinds, .. } => {
            let algorithm = identity.public_key().algorithm();
            let scheme = wire::scheme_of(algorithm, options_type, options).ok_or_else(|| {
                SignError::UnsupportedScheme { scheme: format!("what `{options_type}` asks for") }
            })?;
            // Ed25519's "digest" is the message (§8.4).
            let input = if scheme.hash().is_some() { Input::Digest(digest) } else { Input::Message(digest) };
            let signature = identity.sign(scheme, input)?;
            Ok(v1alpha1::sign_response(&signature, *kinds))
        }
    }
}

/// What a client makes of an error that came over the wire.
pub(super) fn remote_error(signer: &str, reason: &str, message: &str) -> SignError {
    SignError::Remote {
        signer: signer.to_owned(),
        reason: Reason::by_name(reason),
        message: message.chars().take(1024).collect(),
    }
}
