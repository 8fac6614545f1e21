//! Image credentials: the kubelet's credential providers, for the kubelet and for every other puller.
//!
//! ```text
//! image ─reference▶ repository ─index▶ providers whose patterns match
//!                                        │ service_account: whose token
//!                                        │ cache_key: remembered?
//!                                        │ request ▶ plugin ▶ response
//!                                        ▼
//!                                      keyring ─▶ credentials in the order they are tried
//! ```
//!
//! The spine is [`provider`]. Around it: [`config`] (files, decoding, validation, lint) and [`reload`]; for tools that
//! are no kubelet [`docker_helper`], [`auth_file`], and a [`daemon`] that remembers between their calls; [`shim`], a
//! kubelet plugin with providers of its own; for people who write plugins [`author`] and [`conformance`].
//!
//! Nothing here speaks to a cloud or needs a runtime. What it decides is the kubelet's decision in
//! [`Profile::Kube`], statement by statement; [`Profile::Hardened`] leaves out what hurts.

pub mod auth_file;
pub mod author;
pub mod cache_key;
pub mod config;
pub mod conformance;
pub mod credential;
#[cfg(unix)]
pub mod daemon;
pub mod default_paths;
pub mod docker_config;
pub mod docker_helper;
pub mod error;
mod go_json;
mod index;
mod jitter;
pub mod keyring;
pub mod location;
pub mod metrics;
pub mod node_keyring;
pub mod pattern;
pub mod profile;
pub mod provider;
pub mod reference;
pub mod reload;
pub mod request;
pub mod response;
pub mod service_account;
pub mod shim;
#[cfg(unix)]
pub mod socket;

pub use credential::Credential;
pub use error::ProviderError;
pub use keyring::{Keyring, lookup_all};
pub use location::{Location, LocationError};
pub use pattern::{ImagePattern, Mismatch};
pub use profile::Profile;
pub use provider::{ProviderSettings, Providers};
pub use reference::{ReferenceError, Repository};
