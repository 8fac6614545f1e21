//! Cache keys of plugin responses: per image, per registry or global, and in service-account mode per service account.
//! The bytes equal the kubelet's, so that keys can be compared.
// I121–I124

use std::collections::BTreeMap;
use std::fmt::Write as _;

use navicert_types::Secret;
use sha2::{Digest, Sha256};
use thiserror::Error;

/// The scope of a cached response, as the plugin declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CacheKeyType {
    /// This image only.
    Image,
    /// Every image of the registry.
    Registry,
    /// Every image.
    Global,
}

impl CacheKeyType {
    /// The order of cache lookups.
    // I125
    pub(crate) const LOOKUP_ORDER: [CacheKeyType; 3] =
        [CacheKeyType::Image, CacheKeyType::Registry, CacheKeyType::Global];

    /// The spelling on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            CacheKeyType::Image => "Image",
            CacheKeyType::Registry => "Registry",
            CacheKeyType::Global => "Global",
        }
    }

    /// The images that a response with this scope applies to, in words.
    pub fn scope(self) -> &'static str {
        match self {
            CacheKeyType::Image => "this image",
            CacheKeyType::Registry => "its registry",
            CacheKeyType::Global => "every image",
        }
    }

    /// Parses the spelling on the wire, exactly.
    // I106
    pub(crate) fn from_wire(text: &str) -> Option<Self> {
        Self::LOOKUP_ORDER.into_iter().find(|key_type| key_type.as_str() == text)
    }

    /// The part of the key that comes from the image.
    // I121
    pub fn base(self, image: &str) -> &str {
        match self {
            CacheKeyType::Image => image,
            CacheKeyType::Registry => image.split('/').next().unwrap_or_default(),
            CacheKeyType::Global => "<global>",
        }
    }
}

/// A key of a provider's cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey(Vec<u8>);

/// The service-account part of a cache key; empty outside service-account mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ServiceAccountKey(Vec<u8>);

/// A component does not fit its length prefix. Reachable, since a service account may have 256 KiB of annotations.
// I124
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the {component} of {length} bytes exceeds the 2-byte length prefix of a cache key")]
pub struct KeyTooLong {
    component: &'static str,
    length: usize,
}

impl CacheKey {
    /// The key for an image.
    ///
    /// # Errors
    /// [`KeyTooLong`].
    // I122
    pub fn new(key_type: CacheKeyType, image: &str, account: &ServiceAccountKey) -> Result<Self, KeyTooLong> {
        let mut bytes = Vec::new();
        push(&mut bytes, "image", key_type.base(image).as_bytes())?;
        push(&mut bytes, "service account key", &account.0)?;
        Ok(CacheKey(bytes))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The service account of the token in a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceAccountIdentity {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The UID.
    pub uid: String,
}

impl ServiceAccountKey {
    /// The key of an account with the annotations the provider requested, and with the token if responses must not be
    /// shared between tokens.
    ///
    /// # Errors
    /// [`KeyTooLong`].
    // I123
    pub fn new(
        account: &ServiceAccountIdentity,
        annotations: &BTreeMap<String, String>,
        token: Option<&Secret<String>>,
    ) -> Result<Self, KeyTooLong> {
        let mut bytes = Vec::new();
        push(&mut bytes, "namespace", account.namespace.as_bytes())?;
        push(&mut bytes, "service account name", account.name.as_bytes())?;
        push(&mut bytes, "service account UID", account.uid.as_bytes())?;
        push_annotations(&mut bytes, annotations)?;
        if let Some(token) = token {
            push(&mut bytes, "marker", b"token")?;
            push(&mut bytes, "token hash", token_hash(token).as_bytes())?;
        }
        Ok(ServiceAccountKey(bytes))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// `sha256:` and the token's digest, or an empty string for an empty token.
// I123
pub(crate) fn token_hash(token: &Secret<String>) -> String {
    if token.is_empty() {
        return String::new();
    }
    format!("sha256:{}", hex(&Sha256::digest(token.expose().as_bytes())))
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn push_annotations(bytes: &mut Vec<u8>, annotations: &BTreeMap<String, String>) -> Result<(), KeyTooLong> {
    let count = u32::try_from(annotations.len());
    let count =
        count.map_err(|_| KeyTooLong { component: "list of annotations", length: annotations.len() })?;
    bytes.extend_from_slice(&count.to_be_bytes());
    for (key, value) in annotations {
        push(bytes, "annotation key", key.as_bytes())?;
        push(bytes, "annotation value", value.as_bytes())?;
    }
    Ok(())
}

fn push(bytes: &mut Vec<u8>, component: &'static str, value: &[u8]) -> Result<(), KeyTooLong> {
    let length = u16::try_from(value.len()).map_err(|_| KeyTooLong { component, length: value.len() })?;
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> ServiceAccountIdentity {
        ServiceAccountIdentity {
            namespace: "namespace".to_owned(),
            name: "service-account".to_owned(),
            uid: "service-account-uid".to_owned(),
        }
    }

    fn annotations(count: usize, length: usize) -> BTreeMap<String, String> {
        (0..count).map(|n| (format!("domain.io/annotation-{}", n + 1), "v".repeat(length))).collect()
    }

    #[test]
    fn keys_without_service_account_equal_the_kubelets_bytes() {
        // I121, I122, I272
        let key = |key_type, image| CacheKey::new(key_type, image, &ServiceAccountKey::default()).unwrap();
        assert_eq!(
            key(CacheKeyType::Image, "registry.io/image").as_bytes(),
            b"\x00\x11registry.io/image\x00\x00"
        );
        assert_eq!(key(CacheKeyType::Image, "image1").as_bytes(), b"\x00\x06image1\x00\x00");
        assert_eq!(key(CacheKeyType::Registry, "a.io/x/y").as_bytes(), b"\x00\x04a.io\x00\x00");
        assert_eq!(key(CacheKeyType::Registry, "A.io:5000/x").as_bytes(), b"\x00\x09A.io:5000\x00\x00");
        assert_eq!(key(CacheKeyType::Global, "a.io/x").as_bytes(), b"\x00\x08<global>\x00\x00");
    }

    #[test]
    fn service_account_keys_equal_the_kubelets_bytes() {
        // I123, I272
        let prefix = b"\x00\tnamespace\x00\x0fservice-account\x00\x13service-account-uid";
        let none = ServiceAccountKey::new(&account(), &BTreeMap::new(), None).unwrap();
        assert_eq!(none.as_bytes(), [&prefix[..], b"\x00\x00\x00\x00"].concat());

        let one = BTreeMap::from([("domain.io/annotation-1".to_owned(), "value1".to_owned())]);
        let annotated = ServiceAccountKey::new(&account(), &one, None).unwrap();
        let expected =
            [&prefix[..], b"\x00\x00\x00\x01\x00\x16domain.io/annotation-1\x00\x06value1"].concat();
        assert_eq!(annotated.as_bytes(), expected);

        let token = Secret::from("token".to_owned());
        let with_token = ServiceAccountKey::new(&account(), &one, Some(&token)).unwrap();
        let hash = "sha256:3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0";
        assert_eq!(with_token.as_bytes(), [&expected, &b"\x00\x05token\x00G"[..], hash.as_bytes()].concat());
    }

    #[test]
    fn empty_token_has_empty_hash() {
        // I123
        assert_eq!(token_hash(&Secret::from(String::new())), "");
    }

    #[test]
    fn rejects_components_that_exceed_a_two_byte_length() {
        // I124
        let long = "a".repeat(65_536);
        let image = CacheKey::new(CacheKeyType::Image, &long, &ServiceAccountKey::default());
        assert!(image.unwrap_err().to_string().contains("65536 bytes"));
        assert!(ServiceAccountKey::new(&account(), &annotations(1, 65_536), None).is_err());
        let sum = ServiceAccountKey::new(&account(), &annotations(2, 40_000), None).unwrap();
        assert!(CacheKey::new(CacheKeyType::Image, "a.io/x", &sum).is_err());
    }

    #[test]
    fn parses_only_the_three_key_type_spellings() {
        // I106
        assert_eq!(CacheKeyType::from_wire("Registry"), Some(CacheKeyType::Registry));
        for text in ["", "image", "Token", "Image "] {
            assert_eq!(CacheKeyType::from_wire(text), None, "{text}");
        }
    }
}
