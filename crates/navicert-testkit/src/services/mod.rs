//! Services other than Kubernetes that navicert talks to: OpenID issuers, scripted and real, a browser, clouds that issue registry
//! passwords, and an image registry.

pub mod browser;
pub mod cloud;
pub mod fault_proxy;
pub mod image_registry;
pub mod issuer;
pub mod issuer_faults;
pub mod login_provider;
mod node_program;
pub mod openid_provider;
