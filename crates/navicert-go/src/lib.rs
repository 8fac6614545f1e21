//! Texts as Go's standard library reads and writes them. Kubernetes is written in Go, and where its behaviour on unusual
//! input decides what is accepted, navicert has to agree with it byte by byte. Internal: it may change in any release.
//!
//! The recorded decisions in `conformance/vectors` are the reference, through the crates that use this one.
//!
//! `navicert-cel` has readers of its own for URLs and quoted strings: it depends on no crate of the workspace, so that it
//! can be used alone, and its values keep other parts of a URL.

pub mod base64;
pub mod duration;
pub mod host_port;
pub mod json;
pub mod percent;
pub mod quote;
pub mod time;
pub mod url;
