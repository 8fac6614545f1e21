//! `kubelet.config.k8s.io/v1`: everything, service-account tokens included.

use super::{CredentialProvider, CredentialProviderConfig, TokenAttributes, decode_common, decode_config};
use crate::decode::{Decode, Decoder};
use crate::tree::Node;

pub(super) const API_VERSION: &str = "kubelet.config.k8s.io/v1";

pub(super) fn decode(node: &Node, decoder: &mut Decoder) -> Option<CredentialProviderConfig> {
    decode_config::<Provider>(node, decoder)
}

#[derive(Default)]
struct Provider(CredentialProvider);

impl Decode for Provider {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| {
            let common = decode_common(fields);
            Provider(CredentialProvider { token_attributes: fields.optional("tokenAttributes"), ..common })
        })
    }
}

impl From<Provider> for CredentialProvider {
    fn from(provider: Provider) -> Self {
        provider.0
    }
}

impl Decode for TokenAttributes {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| TokenAttributes {
            service_account_token_audience: fields.default("serviceAccountTokenAudience"),
            cache_type: fields.default("cacheType"),
            require_service_account: fields.optional("requireServiceAccount"),
            required_service_account_annotation_keys: fields.default("requiredServiceAccountAnnotationKeys"),
            optional_service_account_annotation_keys: fields.default("optionalServiceAccountAnnotationKeys"),
        })
    }
}
