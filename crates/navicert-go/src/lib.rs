#![doc = include_str!("../README.md")]
//!
//! The recorded decisions in `conformance/vectors` are the reference, through the crates that use this one.
//!
//! `navicert-cel` has readers of its own for URLs and quoted strings: it depends on no crate of the workspace, so that it
//! can be used alone, and its values keep other parts of a URL.

pub mod base64;
pub mod duration;
pub mod host_port;
pub mod json;
pub mod pem;
pub mod percent;
pub mod quote;
pub mod time;
pub mod url;
