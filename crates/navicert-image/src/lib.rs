//! Image credentials: the kubelet's providers.
pub mod cache_key;
pub mod credential;
pub mod docker_config;
mod go_json;
mod index;
pub mod keyring;
pub mod location;
pub mod pattern;
pub mod profile;
pub mod reference;
pub use credential::Credential;
pub use keyring::{Keyring, lookup_all};
pub use location::{Location, LocationError};
pub use pattern::{Mismatch, Pattern};
pub use profile::Profile;
pub use reference::{ReferenceError, Repository};
