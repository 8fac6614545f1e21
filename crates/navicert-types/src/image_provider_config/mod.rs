//! `CredentialProviderConfig`, the kubelet's list of image credential providers: the hub type, and one module per wire
//! version. `navicert-image` validates the fields.

mod v1;
mod v1alpha1;
mod v1beta1;

use crate::decode::{Decode, DecodeMode, Decoder, Fields};
use crate::secret::Secret;
use crate::time::Duration;
use crate::tree::{Node, Syntax};
use crate::versioned::{Kind, Versions};
use crate::wire_text::wire_text;

/// Decodes every wire version.
// I20, I21, I23
pub static CREDENTIAL_PROVIDER_CONFIG: Versions<CredentialProviderConfig> = Versions {
    syntax: Syntax::JsonOrYaml,
    mode: DecodeMode::Strict,
    default_api_version: None,
    default_kind: None,
    kinds: &[
        Kind { api_version: v1::API_VERSION, kind: KIND, decode: v1::decode },
        Kind { api_version: v1beta1::API_VERSION, kind: KIND, decode: v1beta1::decode },
        Kind { api_version: v1alpha1::API_VERSION, kind: KIND, decode: v1alpha1::decode },
    ],
};

const KIND: &str = "CredentialProviderConfig";

/// The providers of one file, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CredentialProviderConfig {
    /// The providers.
    pub providers: Vec<CredentialProvider>,
}

/// One provider. Fields have no defaults; missing and null give the zero value.
// I29
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CredentialProvider {
    /// The name, also the file name of the executable.
    pub name: String,
    /// Patterns of the images the provider is used for.
    pub match_images: Vec<String>,
    /// How long to cache responses that do not set a duration.
    pub default_cache_duration: Option<Duration>,
    /// The version of request and response.
    pub api_version: String,
    /// Arguments of the executable. They may contain secrets.
    pub args: Vec<Secret<String>>,
    /// Environment variables added to the inherited ones.
    pub env: Vec<EnvironmentVariable>,
    /// Whether and how the provider receives a service account token. Only in v1.
    // I27
    pub token_attributes: Option<TokenAttributes>,
}

/// One environment variable of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnvironmentVariable {
    /// Its name.
    pub name: String,
    /// Its value, which may be a secret.
    pub value: Secret<String>,
}

/// What a provider receives about the pod's service account (KEP-4412).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenAttributes {
    /// Audience of the token; empty for no token.
    pub service_account_token_audience: String,
    /// The cache key for responses.
    pub cache_type: CacheType,
    /// Whether the provider is skipped for pods without a service account.
    pub require_service_account: Option<bool>,
    /// Annotations without which the provider is skipped.
    pub required_service_account_annotation_keys: Vec<String>,
    /// Annotations passed to the provider if present.
    pub optional_service_account_annotation_keys: Vec<String>,
}

wire_text! {
    /// What responses with a service account token may be shared between.
    CacheType {
        /// Requests with the same token.
        Token = "Token",
        /// Requests for the same service account.
        ServiceAccount = "ServiceAccount",
    }
}

/// Decodes a document of any version; `P` decodes one provider.
fn decode_config<P: Decode + Into<CredentialProvider>>(
    node: &Node,
    decoder: &mut Decoder,
) -> Option<CredentialProviderConfig> {
    decoder.object(node, |fields| {
        let providers: Vec<P> = fields.default("providers");
        CredentialProviderConfig { providers: providers.into_iter().map(Into::into).collect() }
    })
}

/// The fields of a provider that every version has.
fn decode_common(fields: &mut Fields<'_>) -> CredentialProvider {
    CredentialProvider {
        name: fields.default("name"),
        match_images: fields.default("matchImages"),
        default_cache_duration: fields.optional("defaultCacheDuration"),
        api_version: fields.default("apiVersion"),
        args: fields.default("args"),
        env: fields.default("env"),
        token_attributes: None,
    }
}

impl Decode for EnvironmentVariable {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| EnvironmentVariable {
            name: fields.default("name"),
            value: fields.default("value"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(version: &str, more: &str) -> String {
        format!(
            "apiVersion: kubelet.config.k8s.io/{version}\nkind: CredentialProviderConfig\nproviders:\n- name: p\n  \
             matchImages: [a.io]\n  defaultCacheDuration: 1m\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n{more}"
        )
    }

    #[test]
    fn every_version_decodes_into_the_hub_type() {
        // I20, I28
        for version in ["v1", "v1beta1", "v1alpha1"] {
            let config = CREDENTIAL_PROVIDER_CONFIG.decode(text(version, "").as_bytes()).unwrap();
            assert_eq!(config.providers.len(), 1);
            assert_eq!(config.providers[0].match_images, ["a.io"]);
        }
    }

    #[test]
    fn token_attributes_are_accepted_in_v1_only() {
        // I27
        let more = "  tokenAttributes: {serviceAccountTokenAudience: a, requireServiceAccount: false}\n";
        let config = CREDENTIAL_PROVIDER_CONFIG.decode(text("v1", more).as_bytes()).unwrap();
        let attributes = config.providers[0].token_attributes.clone().unwrap();
        assert_eq!(attributes.require_service_account, Some(false));
        for version in ["v1beta1", "v1alpha1"] {
            let error = CREDENTIAL_PROVIDER_CONFIG.decode(text(version, more).as_bytes()).unwrap_err();
            assert!(error.to_string().starts_with("providers[0].tokenAttributes: unknown field"), "{error}");
        }
    }

    #[test]
    fn arguments_and_variables_do_not_show_in_debug() {
        let more = "  args: [canary]\n  env: [{name: A, value: canary}]\n";
        let config = CREDENTIAL_PROVIDER_CONFIG.decode(text("v1", more).as_bytes()).unwrap();
        assert!(!format!("{config:?}").contains("canary"));
    }
}
