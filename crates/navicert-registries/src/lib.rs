//! Image credential providers for Amazon ECR, Google's registries and Azure's: three small binaries that a kubelet
//! runs, and that docker, podman and skopeo may run as well.
//!
//! ```text
//! entry ──▶ program ──▶ provider (the spine)
//!                        │ host:  whose registry is it? if nobody's here, no credentials and no call
//!                        │ ecr | gcp | acr: as whom, and that identity's token
//!                        │         └─ http: time limits, size limits, retries, no redirects
//!                        │ lifetime: how long the answer may be remembered
//!                        ▼
//!                       response for the kubelet, answer for docker, or explain: every step in words
//! ```
//!
//! The only crate that speaks to clouds, linked by nothing. No SDK: each provider makes two or three calls whose form is
//! published, over blocking sockets, so that a node starts nothing bigger than it needs (AWS's own `aws-sigv4` signs).
//!
//! A credential leaves for one host only, and [`host`] decides which: labels are compared from the first to the last,
//! and an image of anybody else gets an empty answer.

pub mod acr;
mod context;
pub mod ecr;
pub mod entry;
mod error;
pub mod explain;
mod form;
pub mod gcp;
pub mod host;
pub mod http;
mod lifetime;
pub mod machine;
pub mod program;
pub mod provider;

pub use context::ProviderContext;
pub use error::{RegistryError, chain};
pub use form::Form;
pub use lifetime::cache_duration;
