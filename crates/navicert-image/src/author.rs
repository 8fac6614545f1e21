//! Helpers for plugin authors: read the request and build a complete response.
//!
//! ```
//! use navicert_image::author::{ResponseBuilder, read_request};
//! use navicert_image::cache_key::CacheKeyType;
//!
//! let stdin = br#"{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"a.io/x"}"#;
//! let (request, version) = read_request(&mut &stdin[..]).unwrap();
//! let response = ResponseBuilder::new(CacheKeyType::Registry)
//!     .cache_for(std::time::Duration::from_secs(600))
//!     .credential("a.io", "user", "password".to_owned())
//!     .unwrap();
//! assert_eq!(request.image, "a.io/x");
//! assert!(response.encode(version).expose().starts_with(b"{\"kind\":\"CredentialProviderResponse\""));
//! ```

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::time::Duration;

use navicert_types::image_credential::{
    CREDENTIAL_PROVIDER_REQUEST, CredentialProviderRequest, RESPONSE_KIND, WireVersion,
};
use navicert_types::tree::{self, Syntax};
use navicert_types::{Diagnostics, Secret};
use thiserror::Error;

use crate::cache_key::CacheKeyType;
use crate::credential::RegistryCredential;
use crate::go_json::Object;
use crate::location::{Location, LocationError};

/// Upper bound for a request; annotations alone are at most 256 KiB.
const MAX_REQUEST_BYTES: u64 = 4 << 20;

/// Errors that a plugin should print on stderr before it exits with 1.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AuthorError {
    /// Standard input cannot be read.
    #[error("failed to read the request from standard input")]
    Read {
        /// I/O error reported by the operating system.
        source: io::Error,
    },
    /// The request does not decode.
    #[error("invalid CredentialProviderRequest")]
    Decode {
        /// The cause.
        source: Diagnostics,
    },
    /// The request has no image.
    #[error("image in plugin request was empty")]
    EmptyImage,
    /// The key cannot match any image.
    #[error("invalid credential key `{key}`")]
    Key {
        /// The key.
        key: String,
        /// The cause.
        source: LocationError,
    },
}

/// Reads a request of any supported version.
///
/// # Errors
/// [`AuthorError`].
pub fn read_request(stdin: &mut dyn Read) -> Result<(CredentialProviderRequest, WireVersion), AuthorError> {
    let mut text = zeroize::Zeroizing::new(Vec::new());
    stdin.take(MAX_REQUEST_BYTES).read_to_end(&mut text).map_err(|source| AuthorError::Read { source })?;
    let invalid = |source: Diagnostics| AuthorError::Decode { source };
    let node = tree::parse(&text, Syntax::Json).map_err(|source| invalid(source.into()))?;
    let kind = CREDENTIAL_PROVIDER_REQUEST.find_kind(&node).map_err(|source| invalid(source.into()))?;
    let request = CREDENTIAL_PROVIDER_REQUEST.decode_tree(&node).map_err(invalid)?;
    if request.image.is_empty() {
        return Err(AuthorError::EmptyImage);
    }
    let version = WireVersion::from_api_version(kind.api_version).unwrap_or(WireVersion::V1);
    Ok((request, version))
}

/// Builds a response. A response without credentials is valid.
// I106
#[derive(Clone, Debug)]
pub struct ResponseBuilder {
    key_type: CacheKeyType,
    duration: Option<Duration>,
    auth: BTreeMap<String, RegistryCredential>,
}

impl ResponseBuilder {
    /// Creates a response without credentials, cacheable per image, per registry or globally.
    pub fn new(key_type: CacheKeyType) -> Self {
        ResponseBuilder { key_type, duration: None, auth: BTreeMap::new() }
    }

    /// Sets how long the response may be cached. The default is the node's configuration; zero disables caching.
    #[must_use]
    pub fn cache_for(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self
    }

    /// Adds a credential under a key: a host, a host with a path, or a glob over host labels.
    ///
    /// # Errors
    /// [`AuthorError::Key`]: the kubelet would drop it.
    pub fn credential(
        mut self,
        key: impl Into<String>,
        username: impl Into<String>,
        password: impl Into<Secret<String>>,
    ) -> Result<Self, AuthorError> {
        let key = key.into();
        let plain = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(&key);
        if let Err(source) = Location::parse(plain.as_bytes()) {
            return Err(AuthorError::Key { key, source });
        }
        self.auth.insert(key, RegistryCredential::new(username, password));
        Ok(self)
    }

    /// Whether the response has a credential under this key.
    pub fn has(&self, key: &str) -> bool {
        self.auth.contains_key(key)
    }

    /// Encodes the line for standard output.
    pub fn encode(&self, version: WireVersion) -> Secret<Vec<u8>> {
        let mut object = Object::new()
            .text("kind", RESPONSE_KIND)
            .text("apiVersion", version.api_version())
            .text("cacheKeyType", self.key_type.as_str());
        if let Some(duration) = self.duration {
            object =
                object.text("cacheDuration", &navicert_types::time::Duration::from(duration).to_string());
        }
        let auth = self.auth.iter().fold(Object::new(), |auth, (key, credential)| {
            let entry = Object::new()
                .text("username", &credential.username)
                .text("password", credential.password.expose());
            auth.object(key, entry)
        });
        let text = object.object("auth", auth).finish();
        Secret::new([text.as_bytes(), b"\n"].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::encode;
    use crate::response::Response;

    #[test]
    fn kubelet_decodes_built_response() {
        for version in WireVersion::ALL {
            let built = ResponseBuilder::new(CacheKeyType::Registry)
                .cache_for(Duration::from_secs(90))
                .credential("*.a.io/<x>", "u&", "p\"\\\u{2028}".to_owned())
                .unwrap();
            let read = Response::decode(built.encode(version).expose(), version).unwrap();
            assert_eq!(read.cache_key_type, CacheKeyType::Registry);
            assert_eq!(read.cache_duration.unwrap().to_string(), "1m30s");
            assert_eq!(
                read.auth,
                [("*.a.io/<x>".to_owned(), RegistryCredential::new("u&", "p\"\\\u{2028}".to_owned()))]
            );
        }
    }

    #[test]
    fn rejects_key_that_the_kubelet_would_drop() {
        // I107, I132
        let built = ResponseBuilder::new(CacheKeyType::Image);
        assert!(built.clone().credential("a.io:latest", "u", "p".to_owned()).is_err());
        assert!(built.credential("https://a.io/v2/", "u", "p".to_owned()).is_ok());
    }

    #[test]
    fn reads_requests_of_every_version_and_rejects_others() {
        for version in WireVersion::ALL {
            let request = CredentialProviderRequest { image: "a.io/x".into(), ..Default::default() };
            let bytes = encode(&request, version);
            let (read, found) = read_request(&mut bytes.expose().as_slice()).unwrap();
            assert_eq!((read, found), (request, version));
        }
        for text in [
            "",
            "{}",
            r#"{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1"}"#,
        ] {
            assert!(read_request(&mut text.as_bytes()).is_err(), "{text}");
        }
    }
}
