//! The libraries that Kubernetes adds to CEL.

pub(crate) mod cidr;
pub(crate) mod format;
pub(crate) mod ip;
pub(crate) mod quantity;
pub(crate) mod regex;
pub(crate) mod semver;
pub(crate) mod url;
