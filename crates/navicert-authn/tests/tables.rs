//! The tables of the specification's section 14, row by row: what kube-apiserver does with a configuration, an
//! expression or a claim, and what `hardened` does where it differs. Rows about token encodings are in `attacks.rs`.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

#[path = "tables/common.rs"]
mod common;
#[path = "tables/decoding.rs"]
mod decoding;
#[path = "tables/expressions.rs"]
mod expressions;
#[path = "tables/mapping.rs"]
mod mapping;
#[path = "tables/tokens.rs"]
mod tokens;
#[path = "tables/validation.rs"]
mod validation;
