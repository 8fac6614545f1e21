//! `credentialprovider.kubelet.k8s.io/v1beta1`: an image and nothing else.
// I89

use super::{CredentialProviderRequest, CredentialProviderResponse};
use crate::decode::Decoder;
use crate::tree::Node;

pub(super) const API_VERSION: &str = "credentialprovider.kubelet.k8s.io/v1beta1";

pub(super) fn decode_response(node: &Node, decoder: &mut Decoder) -> Option<CredentialProviderResponse> {
    super::decode_response(node, decoder)
}

pub(super) fn decode_request(node: &Node, decoder: &mut Decoder) -> Option<CredentialProviderRequest> {
    decoder.object(node, |fields| CredentialProviderRequest {
        image: fields.default("image"),
        ..CredentialProviderRequest::default()
    })
}
