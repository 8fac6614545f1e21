//! Pending.
use super::Declaration;
/// URL
pub(crate) const URL: &[Declaration] = &[];
/// Q
pub(crate) const QUANTITY: &[Declaration] = &[];
/// N
pub(crate) const NETWORK: &[Declaration] = &[];
/// F
pub(crate) const FORMAT: &[Declaration] = &[];
/// S
pub(crate) const SEMVER: &[Declaration] = &[];
