#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
//!
//! # Stages
//!
//! This crate does no IO and does not interpret credentials. Text becomes a typed value in three steps, one module
//! each; errors are [`Diagnostics`] with field path, line and column, and never contain a value of the file.
//!
//! ```text
//! bytes ──tree──▶ spanned tree ──versioned──▶ apiVersion/kind chosen ──decode──▶ hub type
//!                 (YAML 1.1 and JSON,          (unknown version: one    (every unknown, repeated and
//!                  lines and columns)           sentence)                mistyped field, all at once)
//!
//! Kubeconfig ──redacted_tree / expose_tree──▶ tree ──to_yaml / to_json──▶ text
//! ```
//!
//! Values that must not be printed are [`Secret`]s or pass through [`redact`]; time comes from a [`Clock`]; an error is
//! printed with its sources by [`error_chain()`].

pub mod authentication_config;
pub mod authentication_test;
pub mod backoff;
pub mod clock;
pub mod decode;
pub mod diagnostic;
mod error_chain;
pub mod exec_credential;
pub mod exposition;
pub mod external_signer;
mod field_path;
pub mod image_credential;
pub mod image_provider_config;
pub mod kubeconfig;
pub mod proxy;
pub mod redact;
pub mod report;
mod secret;
pub mod time;
pub mod token_review;
pub mod tree;
pub mod versioned;
mod wire_text;

pub use clock::{Clock, SystemClock, Timestamp};
pub use decode::{Decode, DecodeMode, Decoder};
pub use diagnostic::{Diagnostic, DiagnosticKind, Diagnostics};
pub use error_chain::error_chain;
pub use field_path::FieldPath;
pub use secret::Secret;
pub use versioned::{Kind, Versions};
