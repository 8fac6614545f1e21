//! The libraries that Kubernetes adds to CEL.

pub mod cidr;
pub mod format;
pub mod ip;
pub mod quantity;
pub mod regex;
pub mod semver;
pub mod url;
