//! `kubelet.config.k8s.io/v1alpha1`: the same fields as v1beta1.

use super::v1beta1::Provider;
use super::{CredentialProviderConfig, decode_config};
use crate::decode::Decoder;
use crate::tree::Node;

pub(super) const API_VERSION: &str = "kubelet.config.k8s.io/v1alpha1";

pub(super) fn decode(node: &Node, decoder: &mut Decoder) -> Option<CredentialProviderConfig> {
    decode_config::<Provider>(node, decoder)
}
