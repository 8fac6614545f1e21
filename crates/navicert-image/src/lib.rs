#![doc = include_str!("../README.md")]
//!
//! # Request path
//!
//! ```text
//! image ─reference▶ repository ─index▶ providers whose patterns match
//!                                        │ service_account: token for the plugin
//!                                        │ cache_key: cached response?
//!                                        │ request ▶ plugin ▶ response
//!                                        ▼
//!                                      keyring ─▶ credentials in the order they are tried
//! ```
//!
//! The request path is in [`provider`]. It uses [`config`] (files, decoding, validation, lint) and [`reload`]. Other
//! entry points: [`docker_helper`] and [`auth_file`] for tools other than the kubelet, a [`daemon`] that keeps the cache
//! between their calls, [`shim`], a kubelet plugin with its own provider configuration, and [`author`] and
//! [`conformance`] for plugin authors.
//!
//! This crate calls no cloud API and needs no async runtime. [`Profile::Kube`] matches the kubelet's decisions exactly;
//! [`Profile::Hardened`] removes its harmful quirks.

pub mod auth_file;
pub mod author;
pub mod cache_key;
pub mod config;
pub mod conformance;
mod credential;
#[cfg(unix)]
pub mod daemon;
pub mod default_paths;
pub mod docker_config;
pub mod docker_helper;
mod error;
mod go_json;
mod index;
mod keyring;
mod location;
pub mod metrics;
pub mod node_keyring;
mod pattern;
mod profile;
pub mod provider;
mod reference;
pub mod reload;
pub mod report;
mod request;
pub mod response;
pub mod service_account;
pub mod shim;
#[cfg(unix)]
pub mod socket;

pub use credential::RegistryCredential;
pub use error::{ProviderError, StartError};
pub use keyring::{KeyMatch, Keyring, RejectedKey, lookup_all};
pub use location::{Location, LocationError};
pub use pattern::{ImagePattern, Mismatch};
pub use profile::Profile;
pub use provider::{ProviderSettings, Providers, ProvidersBuilder, ProvidersError};
pub use reference::{ReferenceError, Repository};
pub use service_account::PullIdentity;

pub use navicert_plugin::{Environment, Policy};
pub use navicert_types::Secret;
