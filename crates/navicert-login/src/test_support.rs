//! Support for the tests of this crate.

use crate::context::Messages;

/// Messages, dropped.
#[derive(Debug, Default)]
pub(crate) struct Silent;

impl Messages for Silent {
    fn show(&self, _: &str) {}
}
