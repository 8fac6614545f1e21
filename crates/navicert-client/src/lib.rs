#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
//!
//! # Modules
//!
//! ```text
//! Config ──▶ credential ──▶ transport ──▶ Client
//! kubeconfig,   static, files,  pools, proxies, rotation
//! in_cluster    exec ◀── kuberc (which plugins may run)
//! doctor checks every step and reports problems; whoami asks the server for the authenticated user.
//! ```
//!
//! Credentials beyond tokens, passwords and certificates are features: `exec` (plugins; on by default), `oidc` (the auth provider)
//! and `signer` (keys that stay in another program). A kubeconfig that needs a missing feature is a [`ConfigError`] that names it.
//! `doctor` adds the module of that name.
//!
//! ```
//! use navicert_client::{Client, Config};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("config");
//! # std::fs::write(&path, "
//! # clusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443'}}]
//! # users: [{name: u, user: {token: t}}]
//! # contexts: [{name: dev, context: {cluster: c, user: u}}]
//! # current-context: dev").unwrap();
//!
//! let config = Config::from_kubeconfig(&path).unwrap(); // or Config::infer()
//! assert_eq!(config.server(), "https://127.0.0.1:6443");
//! assert_eq!(config.credential_kinds(), ["token"]);
//! let client = Client::new(config).unwrap();
//! # let _ = client;
//! ```

pub mod certificate_signing;
mod client;
pub mod config;
mod context;
pub mod credential;
#[cfg(feature = "doctor")]
pub mod doctor;
pub mod edit;
#[cfg(feature = "exec")]
pub mod exec;
pub mod front_proxy;
pub mod in_cluster;
mod json;
pub mod kubeconfig;
#[cfg(feature = "exec")]
pub mod kuberc;
pub mod metrics;
#[cfg(feature = "oauth")]
#[doc(hidden)]
pub mod oauth;
pub mod report;
pub mod service_accounts;
pub mod transport;
pub mod whoami;

pub use client::{Client, ClientBuilder};
pub use config::{Config, ConfigError, ConfigErrorClass, ConfigErrors, ConfigOptions};
pub use context::ClientContext;
