//! Image credentials: the kubelet's providers.
pub mod cache_key;
mod index;
pub mod location;
pub mod pattern;
pub mod profile;
pub mod reference;
pub use location::{Location, LocationError};
pub use pattern::{Mismatch, Pattern};
pub use profile::Profile;
pub use reference::{ReferenceError, Repository};
