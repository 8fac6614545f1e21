//! Tests with real processes: the fake plugin does what a plugin may do, and the runner has to cope.
#![cfg(unix)]
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests; a broken set-up should stop the test"
)]

mod hostile;
mod pinning;
mod signals;
mod support;
