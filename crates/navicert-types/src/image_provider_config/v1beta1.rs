//! `kubelet.config.k8s.io/v1beta1`: as v1, without `tokenAttributes`.
// I27

use super::{CredentialProvider, CredentialProviderConfig, decode_common, decode_config};
use crate::decode::{Decode, Decoder};
use crate::tree::Node;

pub(super) const API_VERSION: &str = "kubelet.config.k8s.io/v1beta1";

pub(super) fn decode(node: &Node, decoder: &mut Decoder) -> Option<CredentialProviderConfig> {
    decode_config::<Provider>(node, decoder)
}

#[derive(Default)]
pub(super) struct Provider(CredentialProvider);

impl Decode for Provider {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| Provider(decode_common(fields)))
    }
}

impl From<Provider> for CredentialProvider {
    fn from(provider: Provider) -> Self {
        provider.0
    }
}
