//! The nouns every navicert crate shares: wire types, secrets, time.
//!
//! Nothing here does IO or knows what a credential is used for. Text becomes a typed value in three steps, each
//! its own module:
//!
//! ```text
//! bytes ──tree──▶ spanned tree ──versioned──▶ apiVersion/kind chosen ──strict decode──▶ hub type
//!                 (YAML 1.1 and JSON,          (unknown version: one       (every unknown, duplicate and
//!                  lines and columns)           sentence)                   mistyped field, all at once)
//! ```

pub mod clock;
pub mod decode;
pub mod diagnostic;
pub mod field_path;
pub mod image_credential;
pub mod image_provider_config;
pub mod kubeconfig;
pub mod redact;
pub mod secret;
pub mod time;
pub mod tree;
pub mod versioned;

pub use clock::{Clock, SystemClock, Timestamp};
pub use diagnostic::{Diagnostic, DiagnosticKind, Diagnostics};
pub use field_path::FieldPath;
pub use secret::Secret;
