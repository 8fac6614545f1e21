//! The types and functions that Kubernetes adds.

mod network;
mod quantity;
mod url;

pub(crate) use network::{FUNCTIONS as NETWORK, NEWER as NEWER_NETWORK};
pub(crate) use quantity::FUNCTIONS as QUANTITY;
pub(crate) use url::FUNCTIONS as URL;

use super::{Call, Declaration, FULL, Given};
use crate::opaque::Opaque;
use crate::value::Val;

/// Pending.
pub(crate) const FORMAT: &[Declaration] = &[];
/// Pending.
pub(crate) const SEMVER: &[Declaration] = &[];

impl<'a> Call<'a> {
    /// A value of a Kubernetes type.
    fn opaque(&self, opaque: Opaque) -> Given<'a> {
        self.arena.opaque(opaque).map(Val::Opaque).ok_or(FULL)
    }
}
