//! `credentialprovider.kubelet.k8s.io/v1alpha1`: the same fields as v1beta1.

pub(super) use super::v1beta1::{decode_request, decode_response};

pub(super) const API_VERSION: &str = "credentialprovider.kubelet.k8s.io/v1alpha1";
