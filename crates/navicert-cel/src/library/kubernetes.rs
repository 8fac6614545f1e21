//! The libraries that Kubernetes adds to CEL.

pub mod quantity;
pub mod regex;
