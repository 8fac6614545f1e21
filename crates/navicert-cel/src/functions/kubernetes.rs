//! The types and functions that Kubernetes adds to CEL.

mod format;
mod network;
mod quantity;
mod semver;
mod url;

pub(crate) use format::FUNCTIONS as FORMAT;
pub(crate) use network::{FUNCTIONS as NETWORK, IS_MASK as NETWORK_IS_MASK};
pub(crate) use quantity::FUNCTIONS as QUANTITY;
pub(crate) use semver::FUNCTIONS as SEMVER;
pub(crate) use url::FUNCTIONS as URL;

use super::{ARENA_FULL, Call, FunctionResult};
use crate::opaque::Opaque;
use crate::value::ValueRef;

impl<'a> Call<'a> {
    /// Allocates a value of a Kubernetes type.
    fn opaque(&self, opaque: Opaque) -> FunctionResult<'a> {
        self.arena.opaque(opaque).map(ValueRef::Opaque).ok_or(ARENA_FULL)
    }
}
