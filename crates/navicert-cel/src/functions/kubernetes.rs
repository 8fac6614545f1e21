//! The types and functions that Kubernetes adds.

mod format;
mod network;
mod quantity;
mod semver;
mod url;

pub(crate) use format::FUNCTIONS as FORMAT;
pub(crate) use network::{FUNCTIONS as NETWORK, NEWER as NEWER_NETWORK};
pub(crate) use quantity::FUNCTIONS as QUANTITY;
pub(crate) use semver::FUNCTIONS as SEMVER;
pub(crate) use url::FUNCTIONS as URL;

use super::{Call, FULL, Given};
use crate::opaque::Opaque;
use crate::value::ValueRef;

impl<'a> Call<'a> {
    /// A value of a Kubernetes type.
    fn opaque(&self, opaque: Opaque) -> Given<'a> {
        self.arena.opaque(opaque).map(ValueRef::Opaque).ok_or(FULL)
    }
}
