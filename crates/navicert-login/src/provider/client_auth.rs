//! How the client authenticates: not at all, with a secret in the header or the form, or with an assertion.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use navicert_go::percent;
use navicert_types::{Secret, Timestamp};
use zeroize::Zeroizing;

use super::assertion::AssertionKey;
use super::http_client::Form;
use super::metadata::Metadata;
use crate::error::LoginError;
use crate::key::read_file;
use crate::request::{LoginRequest, SecretSource};

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Where a client secret goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretPlacement {
    /// `Authorization: Basic`.
    Header,
    /// `client_secret` in the form.
    Form,
}

impl SecretPlacement {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            SecretPlacement::Header => "basic",
            SecretPlacement::Form => "post",
        }
    }

    pub(crate) fn from_text(text: &str) -> Option<Self> {
        [SecretPlacement::Header, SecretPlacement::Form]
            .into_iter()
            .find(|placement| placement.as_str() == text)
    }

    pub(super) fn other(self) -> Self {
        match self {
            SecretPlacement::Header => SecretPlacement::Form,
            SecretPlacement::Form => SecretPlacement::Header,
        }
    }
}

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
            ClientAuth::Public => form.add("client_id", client_id),
            ClientAuth::Secret(secret) if placement == SecretPlacement::Header => {
                return basic(client_id, secret).map(Some);
            }
            ClientAuth::Secret(secret) => {
                form.add("client_id", client_id);
                form.add("client_secret", secret.expose());
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

/// Id and secret are form-encoded before base64 (RFC 6749, section 2.3.1).
fn basic(client_id: &str, secret: &Secret<String>) -> Result<HeaderValue, LoginError> {
    let encoded = |text: &str| percent::encode(text, percent::Plus::Space, percent::is_unreserved);
    let pair = Zeroizing::new(format!("{}:{}", encoded(client_id), encoded(secret.expose())));
    let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
    let mut header = HeaderValue::try_from(value.as_str())
        .map_err(|_| LoginError::Internal("invalid authorization header".to_owned()))?;
    header.set_sensitive(true);
    Ok(header)
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

#[cfg(test)]
mod tests {
    use super::*;

    // L615
    #[test]
    fn basic_encodes_id_and_secret_first() {
        let header = basic("a b", &Secret::new("p:ö%".to_owned())).unwrap();
        assert!(header.is_sensitive());
        let text = header.to_str().unwrap().strip_prefix("Basic ").unwrap();
        assert_eq!(STANDARD.decode(text).unwrap(), b"a+b:p%3A%C3%B6%25");
    }
}
