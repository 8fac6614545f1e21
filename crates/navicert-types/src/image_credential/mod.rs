//! The protocol between the kubelet and an image credential provider: hub types, and one module per wire version.

mod v1;
mod v1alpha1;
mod v1beta1;

use std::collections::BTreeMap;

use indexmap::IndexMap;

use crate::decode::{Decode, DecodeMode, Decoder};
use crate::secret::Secret;
use crate::time::Duration;
use crate::tree::{Node, Syntax};
use crate::versioned::{Kind, Versions};

/// The kind of a request.
pub const REQUEST_KIND: &str = "CredentialProviderRequest";
/// The kind of a response.
pub const RESPONSE_KIND: &str = "CredentialProviderResponse";

/// Decodes responses of every wire version: one JSON object, strict. Callers first check that the version is the one they
/// requested.
// I101, I103, I102
pub static CREDENTIAL_PROVIDER_RESPONSE: Versions<CredentialProviderResponse> = Versions {
    syntax: Syntax::Json,
    mode: DecodeMode::Strict,
    default_api_version: None,
    default_kind: None,
    kinds: &[
        Kind { api_version: v1::API_VERSION, kind: RESPONSE_KIND, decode: v1::decode_response },
        Kind { api_version: v1beta1::API_VERSION, kind: RESPONSE_KIND, decode: v1beta1::decode_response },
        Kind { api_version: v1alpha1::API_VERSION, kind: RESPONSE_KIND, decode: v1alpha1::decode_response },
    ],
};

/// Decodes requests as plugins do: leniently, so that fields of newer kubelets do not break existing plugins.
// I164
pub static CREDENTIAL_PROVIDER_REQUEST: Versions<CredentialProviderRequest> = Versions {
    syntax: Syntax::Json,
    mode: DecodeMode::Lenient,
    default_api_version: None,
    default_kind: None,
    kinds: &[
        Kind { api_version: v1::API_VERSION, kind: REQUEST_KIND, decode: v1::decode_request },
        Kind { api_version: v1beta1::API_VERSION, kind: REQUEST_KIND, decode: v1beta1::decode_request },
        Kind { api_version: v1alpha1::API_VERSION, kind: REQUEST_KIND, decode: v1alpha1::decode_request },
    ],
};

/// A version of the protocol.
// I34
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WireVersion {
    /// `credentialprovider.kubelet.k8s.io/v1alpha1`
    V1Alpha1,
    /// `credentialprovider.kubelet.k8s.io/v1beta1`
    V1Beta1,
    /// `credentialprovider.kubelet.k8s.io/v1`
    V1,
}

impl WireVersion {
    /// Every version, in the order in which the kubelet lists them.
    pub const ALL: [WireVersion; 3] = [WireVersion::V1, WireVersion::V1Alpha1, WireVersion::V1Beta1];

    /// The `apiVersion`.
    pub fn api_version(self) -> &'static str {
        match self {
            WireVersion::V1Alpha1 => v1alpha1::API_VERSION,
            WireVersion::V1Beta1 => v1beta1::API_VERSION,
            WireVersion::V1 => v1::API_VERSION,
        }
    }

    /// The version of this `apiVersion`.
    pub fn from_api_version(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.api_version() == text)
    }

    /// Whether requests carry service-account tokens and annotations.
    // I89
    pub fn has_service_accounts(self) -> bool {
        self == WireVersion::V1
    }
}

/// A request to a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialProviderRequest {
    /// The repository, without tag or digest.
    // I88
    pub image: String,
    /// A token of the pod's service account; empty if absent.
    pub service_account_token: Secret<String>,
    /// The service account annotations requested by the provider configuration.
    pub service_account_annotations: BTreeMap<String, String>,
}

/// A plugin's response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CredentialProviderResponse {
    /// The cache key type as written: `Image`, `Registry` or `Global`.
    pub cache_key_type: String,
    /// How long to cache the response; `None` for the configured default.
    pub cache_duration: Option<Duration>,
    /// Credentials by image pattern.
    pub auth: IndexMap<String, AuthConfig>,
}

/// A user name and a password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthConfig {
    /// The user name.
    pub username: String,
    /// The password.
    pub password: Secret<String>,
}

/// The schema is the same in every version.
// I105
fn decode_response(node: &Node, decoder: &mut Decoder) -> Option<CredentialProviderResponse> {
    decoder.object(node, |fields| CredentialProviderResponse {
        cache_key_type: fields.default("cacheKeyType"),
        cache_duration: fields.optional("cacheDuration"),
        auth: fields.default("auth"),
    })
}

impl Decode for AuthConfig {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| AuthConfig {
            username: fields.default("username"),
            password: fields.default("password"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_decodes_a_response() {
        // I105
        for version in WireVersion::ALL {
            let text = format!(
                r#"{{"kind":"{RESPONSE_KIND}","apiVersion":"{}","cacheKeyType":"Image","auth":{{"a":null,"b":{{"username":"u"}}}}}}"#,
                version.api_version()
            );
            let response = CREDENTIAL_PROVIDER_RESPONSE.decode(text.as_bytes()).unwrap();
            assert_eq!(response.auth["a"], AuthConfig::default());
            assert_eq!(response.auth["b"].username, "u");
            assert_eq!(WireVersion::from_api_version(version.api_version()), Some(version));
        }
    }

    #[test]
    fn service_accounts_are_decoded_in_v1_only() {
        // I89
        let text = |version: WireVersion| {
            let api_version = version.api_version();
            format!(
                r#"{{"kind":"{REQUEST_KIND}","apiVersion":"{api_version}","image":"a.io/x","serviceAccountToken":"t",
                "serviceAccountAnnotations":{{"k":"v"}},"tomorrow":1}}"#
            )
        };
        for version in WireVersion::ALL {
            let request = CREDENTIAL_PROVIDER_REQUEST.decode(text(version).as_bytes()).unwrap();
            assert_eq!(request.image, "a.io/x");
            assert_eq!(!request.service_account_token.is_empty(), version.has_service_accounts());
            assert_eq!(!request.service_account_annotations.is_empty(), version.has_service_accounts());
        }
    }
}
