//! `navicert run` and `navicert gateway` with Debian's kubectl, against the test API server: what kubectl does over one
//! connection and over many, whose exit code it is, and what is left behind.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

#[path = "run/ends.rs"]
mod ends;
#[path = "run/failures.rs"]
mod failures;
#[path = "run/kubectl.rs"]
mod kubectl;
#[path = "run/secrets.rs"]
mod secrets;
#[path = "run/setup.rs"]
mod setup;
#[path = "run/together.rs"]
mod together;
