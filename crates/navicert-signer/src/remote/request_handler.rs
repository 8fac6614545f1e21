//! Handles one signer request of either protocol version: finds the key and signs.

use std::fmt;
use std::sync::Arc;

use navicert_types::error_chain;
use navicert_types::external_signer::{SignerConfiguration, v1, v1alpha1};

use super::wire;
use crate::error::{Reason, SignError};
use crate::identity::SigningIdentity;
use crate::scheme::{Input, Scheme};

/// The keys of a signer.
pub trait KeyStore: fmt::Debug + Send + Sync {
    /// Finds the key of a configuration. `interactive` says whether the user may be prompted on the terminal.
    ///
    /// # Errors
    /// [`SignError`].
    fn find(
        &self,
        configuration: &SignerConfiguration,
        interactive: bool,
    ) -> Result<Arc<SigningIdentity>, SignError>;
}

/// Handles a request of protocol v1. Errors are returned as messages.
// C884
pub fn handle_request(store: &dyn KeyStore, request: &v1::Request) -> v1::Message {
    let result = match request {
        v1::Request::Certificate(request) => {
            store.find(&request.configuration, request.interactive).map(|identity| certificate(&identity))
        }
        v1::Request::Sign(request) => sign(store, request),
    };
    result.unwrap_or_else(|error| error_message(&error))
}

/// The message for an error.
// C884
pub(crate) fn error_message(error: &SignError) -> v1::Message {
    v1::Message::Error {
        reason: error.reason().name().to_owned(),
        message: error_chain(error),
        retry_after_seconds: None,
    }
}

fn certificate(identity: &SigningIdentity) -> v1::Message {
    v1::Message::Certificate {
        chain: identity.chain().iter().map(|certificate| certificate.as_ref().to_vec()).collect(),
        schemes: identity.schemes().iter().map(|scheme| scheme.name().to_owned()).collect(),
        expires: Some(identity.validity().1),
        key_handle: None,
    }
}

/// Signs only TLS client handshakes. The client verifies the signature with the certificate it presents.
// C834, X8
fn sign(store: &dyn KeyStore, request: &v1::SignRequest) -> Result<v1::Message, SignError> {
    let unsupported = || SignError::UnsupportedScheme { scheme: format!("`{}`", request.scheme) };
    let scheme = Scheme::by_name(&request.scheme).ok_or_else(unsupported)?;
    if !wire::is_client_handshake(&request.message) {
        return Err(SignError::Internal("the message is not a TLS client handshake".to_owned()));
    }
    let input = Input::Message(&request.message);
    if let Some(digest) = &request.digest
        && input.digest(scheme).as_deref() != Some(digest.as_slice())
    {
        return Err(SignError::Internal("`digest` is not the hash of `message`".to_owned()));
    }
    let identity = store.find(&request.configuration, request.interactive)?;
    let signature = identity.key().sign(scheme, input)?;
    Ok(v1::Message::Signature { signature, scheme: scheme.name().to_owned() })
}

/// Handles a request of protocol v1alpha1, which has no error messages: errors go to stderr and the exit code.
///
/// # Errors
/// [`SignError`].
pub fn handle_v1alpha1_request(
    store: &dyn KeyStore,
    request: &v1alpha1::Request,
    interactive: bool,
) -> Result<String, SignError> {
    let identity = store.find(request.configuration(), interactive)?;
    match request {
        v1alpha1::Request::Certificate { kinds, .. } => {
            // Like the prototype, send only the leaf: it cannot parse a chain of concatenated DER.
            let leaf = identity.chain().first();
            let leaf =
                leaf.ok_or_else(|| SignError::NoCertificate { wanted: "in the identity".to_owned() })?;
            Ok(v1alpha1::certificate_response(leaf, *kinds))
        }
        v1alpha1::Request::Sign { digest, options_type, options, kinds, .. } => {
            let algorithm = identity.public_key().algorithm();
            let scheme = wire::scheme_from_go_options(algorithm, options_type, options).ok_or_else(|| {
                SignError::UnsupportedScheme { scheme: format!("these `{options_type}` options") }
            })?;
            // Ed25519's "digest" is the message (§8.4).
            let input = if scheme.hash().is_some() { Input::Digest(digest) } else { Input::Message(digest) };
            let signature = identity.sign(scheme, input)?;
            Ok(v1alpha1::sign_response(&signature, *kinds))
        }
    }
}

/// Converts an error message of a signer.
pub(super) fn remote_error(signer: &str, reason: &str, message: &str) -> SignError {
    SignError::Remote {
        signer: signer.to_owned(),
        reason: Reason::by_name(reason),
        message: message.chars().take(1024).collect(),
    }
}
