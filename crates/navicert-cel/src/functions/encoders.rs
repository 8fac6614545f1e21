//! Pending.
use super::Declaration;
/// All functions.
pub(crate) const FUNCTIONS: &[Declaration] = &[];
