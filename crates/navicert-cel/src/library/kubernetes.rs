//! The libraries that Kubernetes adds to CEL.

pub mod regex;
