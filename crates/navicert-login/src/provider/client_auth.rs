//! How the client authenticates: not at all, with a secret in the header or the form, or with an assertion.

use http::HeaderValue;
use navicert_client::oauth::{ClientSecret, Form, SecretPlacement};
use navicert_types::{Secret, Timestamp};
use zeroize::Zeroizing;

use super::assertion::AssertionKey;
use super::metadata::Metadata;
use crate::error::LoginError;
use crate::key::read_file;
use crate::request::{LoginRequest, SecretSource};

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The client's means of authentication, read from their files.
pub(crate) enum ClientAuth {
    Public,
    Secret(Secret<String>),
    Key(AssertionKey),
    Assertion(Secret<String>),
}

impl ClientAuth {
    /// Reads the files that the request names.
    pub(crate) fn load(request: &LoginRequest) -> Result<Self, LoginError> {
        let client = &request.client;
        if let Some((path, kid)) = &client.assertion_key {
            let pem = Zeroizing::new(read_file(path)?);
            let invalid = || LoginError::File {
                path: path.display().to_string(),
                why: "not an RSA key of at least 2048 bits, or a P-256 or P-384 key, in PEM".to_owned(),
            };
            return AssertionKey::from_pem(&pem, kid.clone()).map(ClientAuth::Key).ok_or_else(invalid);
        }
        if let Some(path) = &client.assertion_file {
            return read_secret(&SecretSource::File(path.clone())).map(ClientAuth::Assertion);
        }
        client.secret.as_ref().map_or(Ok(ClientAuth::Public), |secret| {
            let secret = read_secret(secret)?;
            Ok(if secret.is_empty() { ClientAuth::Public } else { ClientAuth::Secret(secret) })
        })
    }

    pub(crate) fn is_secret(&self) -> bool {
        matches!(self, ClientAuth::Secret(_))
    }

    pub(crate) fn is_public(&self) -> bool {
        matches!(self, ClientAuth::Public)
    }

    /// Adds the client to a form; the result is the header, if one is needed.
    pub(crate) fn apply(
        &self,
        client_id: &str,
        metadata: &Metadata,
        placement: SecretPlacement,
        form: &mut Form,
        now: Timestamp,
    ) -> Result<Option<HeaderValue>, LoginError> {
        match self {
            ClientAuth::Public => return Ok(ClientSecret { client_id, secret: None }.apply(placement, form)),
            ClientAuth::Secret(secret) => {
                return Ok(ClientSecret { client_id, secret: Some(secret) }.apply(placement, form));
            }
            ClientAuth::Key(key) => {
                let assertion = key.assertion(client_id, metadata, now)?;
                form.add("client_id", client_id);
                form.add("client_assertion_type", ASSERTION_TYPE);
                form.add("client_assertion", assertion.expose());
            }
            ClientAuth::Assertion(assertion) => {
                form.add("client_id", client_id);
                form.add("client_assertion_type", ASSERTION_TYPE);
                form.add("client_assertion", assertion.expose());
            }
        }
        Ok(None)
    }
}

/// The secret, without surrounding white space if it comes from a file.
pub(crate) fn read_secret(source: &SecretSource) -> Result<Secret<String>, LoginError> {
    match source {
        SecretSource::Argument(secret) => Ok(secret.clone()),
        SecretSource::File(path) => {
            let bytes = Zeroizing::new(read_file(path)?);
            let text = std::str::from_utf8(&bytes).map_err(|_| LoginError::File {
                path: path.display().to_string(),
                why: "not UTF-8".to_owned(),
            })?;
            Ok(Secret::new(text.trim().to_owned()))
        }
    }
}
