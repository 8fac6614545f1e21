//! The only reader of the environment in the test kit.

use std::ffi::OsString;

/// A variable of the test run itself, such as `NAVICERT_TEST_REPORT`.
#[expect(
    clippy::disallowed_methods,
    reason = "the switches of a test run come from its environment; this is their room"
)]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}
