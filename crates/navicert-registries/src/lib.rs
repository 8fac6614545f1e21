#![doc = include_str!("../README.md")]
//!
//! # Request path
//!
//! ```text
//! entry ──▶ program ──▶ provider
//!                        │ host: does the registry belong to this provider? if not, an empty response and no call
//!                        │ ecr | gcp | acr: select an identity and get its token
//!                        │         └─ http: time limits, size limits, retries, no redirects
//!                        │ lifetime: cache duration of the response
//!                        ▼
//!                       kubelet response, docker helper answer, or `--explain` output
//! ```
//!
//! This is the only crate that calls cloud APIs; no other crate links it. It uses no SDK: each provider makes two or three
//! documented HTTP calls over blocking sockets to keep the binaries small. AWS requests are signed with `aws-sigv4`.
//!
//! `host` decides which registry gets a credential: all host labels are compared, and images of other registries get an
//! empty response.

mod acr;
mod context;
mod ecr;
mod entry;
mod error;
mod explain;
mod form;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod gcp;
mod host;
mod http;
mod lifetime;
mod machine;
mod percent;
mod program;
mod provider;

pub use entry::{acr_credential_provider, auth_provider_gcp, ecr_credential_provider};
