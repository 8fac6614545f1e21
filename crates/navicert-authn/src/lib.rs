//! Who is this token? Structured authentication as kube-apiserver decides it, and safer.
//!
//! An `AuthenticationConfiguration` is loaded, validated and compiled once; then a token goes through the stages
//! below, each of which only the one before it can lead to. Nothing here opens a socket or reads a clock.
//!
//! ```text
//! text ──config::load──▶ types ──config::validate──▶ Compiled
//! ```

pub mod batch;
pub mod config;
pub mod profile;

pub use profile::{Profile, Rule};
