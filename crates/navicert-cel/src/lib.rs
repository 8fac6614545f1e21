//! The Common Expression Language as Kubernetes runs it: checked, bounded, over borrowed data.
//!
//! The modules below know nothing of the engine's values: they take and return plain Rust types.

pub mod instant;
pub mod library;
pub mod number;
pub mod stack_text;
