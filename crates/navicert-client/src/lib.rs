//! From a kubeconfig to an authenticated request: for whoever calls an API server.
//!
//! ```text
//! kubeconfig ──▶ credential ──▶ transport
//! in_cluster     fixed, files,   pools, proxies, rotation
//!                exec ◀── kuberc (which plugins may run)
//! doctor walks all of it and says what is wrong; whoami asks the server who is calling.
//! ```
//!
//! ```
//! use navicert_client::kubeconfig::{self, Disk, Overrides, Sources};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("config");
//! # std::fs::write(&path, "
//! # clusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443'}}]
//! # users: [{name: u, user: {token: t}}]
//! # contexts: [{name: dev, context: {cluster: c, user: u}}]
//! # current-context: dev").unwrap();
//!
//! let sources = Sources::locate(Some(&path), None, None);
//! let (_, effective) = kubeconfig::select(&sources, &Overrides::default(), folder.path(), &Disk).unwrap();
//! assert_eq!(effective.server(), "https://127.0.0.1:6443");
//! assert_eq!(effective.credential_kinds(), ["token"]);
//! ```

pub mod at_once;
pub mod credential;
pub mod doctor;
pub mod exec;
pub mod in_cluster;
pub mod kubeconfig;
pub mod kuberc;
pub mod metrics;
pub mod piecewise;
pub mod transport;
pub mod when_rung;
pub mod whoami;
