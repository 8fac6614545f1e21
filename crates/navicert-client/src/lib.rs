//! Kubernetes API client: resolves a kubeconfig, gets credentials and sends authenticated requests.
//!
//! ```text
//! Config ──▶ credential ──▶ transport ──▶ Client
//! kubeconfig,   static, files,  pools, proxies, rotation
//! in_cluster    exec ◀── kuberc (which plugins may run)
//! doctor checks every step and reports problems; whoami asks the server for the authenticated user.
//! ```
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

mod client;
pub mod config;
mod context;
pub mod credential;
pub mod doctor;
pub mod exec;
pub mod front_proxy;
pub mod in_cluster;
pub mod kubeconfig;
pub mod kuberc;
pub mod metrics;
pub mod report;
pub mod service_accounts;
pub mod transport;
pub mod whoami;

pub use client::{Client, ClientBuilder};
pub use config::{Config, ConfigError, ConfigErrorClass, ConfigErrors, ConfigOptions};
pub use context::ClientContext;
