//! `credentialprovider.kubelet.k8s.io/v1`: requests may carry a service account's token and annotations.

use indexmap::IndexMap;

use super::{CredentialProviderRequest, CredentialProviderResponse};
use crate::decode::Decoder;
use crate::tree::Node;

pub(super) const API_VERSION: &str = "credentialprovider.kubelet.k8s.io/v1";

pub(super) fn decode_response(node: &Node, decoder: &mut Decoder) -> Option<CredentialProviderResponse> {
    super::decode_response(node, decoder)
}

pub(super) fn decode_request(node: &Node, decoder: &mut Decoder) -> Option<CredentialProviderRequest> {
    decoder.object(node, |fields| {
        let annotations: IndexMap<String, String> = fields.default("serviceAccountAnnotations");
        CredentialProviderRequest {
            image: fields.default("image"),
            service_account_token: fields.default("serviceAccountToken"),
            service_account_annotations: annotations.into_iter().collect(),
        }
    })
}
