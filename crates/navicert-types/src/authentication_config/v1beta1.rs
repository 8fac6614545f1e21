//! `apiserver.config.k8s.io/v1beta1`: the same fields as v1.

use super::{AuthenticationConfiguration, v1};
use crate::versioned::Kind;

pub(super) const KIND: Kind<AuthenticationConfiguration> =
    Kind { api_version: "apiserver.config.k8s.io/v1beta1", ..v1::KIND };
