//! The nouns every navicert crate shares: wire types, secrets, time, and how a file becomes one of them.
//!
//! Nothing here does IO or knows what a credential is used for. Text becomes a typed value in three steps, each
//! its own module; whatever is wrong on the way comes back as [`Diagnostics`], with field path, line and column, and
//! never with a value of the file.
//!
//! ```text
//! bytes ──tree──▶ spanned tree ──versioned──▶ apiVersion/kind chosen ──decode──▶ hub type
//!                 (YAML 1.1 and JSON,          (unknown version: one    (every unknown, repeated and
//!                  lines and columns)           sentence)                mistyped field, all at once)
//!
//! kubeconfig::Config ──redacted_tree / expose_tree──▶ tree ──to_yaml / to_json──▶ text
//! ```
//!
//! What must not be printed is a [`Secret`], or goes through [`redact`]; time comes from a [`Clock`].

pub mod authentication_config;
pub mod authentication_test;
pub mod clock;
pub mod decode;
pub mod diagnostic;
pub mod exec_credential;
pub mod external_signer;
pub mod field_path;
pub mod image_credential;
pub mod image_provider_config;
pub mod kubeconfig;
pub mod redact;
pub mod secret;
pub mod time;
pub mod token_review;
pub mod tree;
pub mod versioned;

pub use clock::{Clock, SystemClock, Timestamp};
pub use decode::{Decode, Decoder, Mode};
pub use diagnostic::{Diagnostic, DiagnosticKind, Diagnostics};
pub use field_path::FieldPath;
pub use secret::Secret;
pub use versioned::{Kind, Versions};
