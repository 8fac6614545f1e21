//! Clients without a secret, and with one in the header or in the form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use navicert_go::percent;
use navicert_types::Secret;
use zeroize::Zeroizing;

use super::form::Form;

/// Where a client secret goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretPlacement {
    /// `Authorization: Basic`.
    Header,
    /// `client_secret` in the form.
    Form,
}

impl SecretPlacement {
    /// The text by which it is remembered.
    pub fn as_str(self) -> &'static str {
        match self {
            SecretPlacement::Header => "basic",
            SecretPlacement::Form => "post",
        }
    }

    /// The placement with this text.
    pub fn from_text(text: &str) -> Option<Self> {
        [SecretPlacement::Header, SecretPlacement::Form]
            .into_iter()
            .find(|placement| placement.as_str() == text)
    }

    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            SecretPlacement::Header => SecretPlacement::Form,
            SecretPlacement::Form => SecretPlacement::Header,
        }
    }
}

/// A client, and its secret if it has one.
#[derive(Clone, Copy, Debug)]
pub struct ClientSecret<'c> {
    /// The client id.
    pub client_id: &'c str,
    /// The secret; `None` for a public client.
    pub secret: Option<&'c Secret<String>>,
}

impl ClientSecret<'_> {
    /// Adds the client to a form; the result is the header, if one is needed.
    pub fn apply(&self, placement: SecretPlacement, form: &mut Form) -> Option<HeaderValue> {
        match (self.secret, placement) {
            (Some(secret), SecretPlacement::Header) => basic(self.client_id, secret),
            (Some(secret), SecretPlacement::Form) => {
                form.add("client_id", self.client_id);
                form.add("client_secret", secret.expose());
                None
            }
            (None, _) => {
                form.add("client_id", self.client_id);
                None
            }
        }
    }
}

/// Id and secret are form-encoded before base64 (RFC 6749, section 2.3.1).
fn basic(client_id: &str, secret: &Secret<String>) -> Option<HeaderValue> {
    let encoded = |text: &str| percent::encode(text, percent::Plus::Space, percent::is_unreserved);
    let pair = Zeroizing::new(format!("{}:{}", encoded(client_id), encoded(secret.expose())));
    let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
    // Base64 is always a valid value.
    let mut header = HeaderValue::try_from(value.as_str()).ok()?;
    header.set_sensitive(true);
    Some(header)
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
