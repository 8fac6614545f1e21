//! `client.authentication.k8s.io/v1beta1`: since 1.22 the same on the wire as v1.

pub(super) use super::v1::{read, write_spec};

pub(super) const API_VERSION: &str = "client.authentication.k8s.io/v1beta1";
