//! Credentials from exec plugins.
//!
//! ```text
//! Config ──▶ Plugin ──▶ Authenticator ──▶ Arc<Credential>
//!                       │  cached? fresh? in back-off?         (shared_credential.rs)
//!                       ├─ interactive ▶ request ▶ policy      (before)
//!                       ├─ run                                 (navicert-plugin)
//!                       └─ response ▶ install                  (after)
//! ```
//!
//! Plugins run on their own threads, at most one run per plugin at a time; no async runtime is needed. Plugin authors use
//! [`author`], and [`conformance`] checks a plugin against the protocol's rules. [`keep`] runs a plugin for other clients.
// §2–§5

mod authenticator;
pub mod author;
pub mod conformance;
mod error;
mod install_help;
pub mod interactive;
#[cfg(unix)]
pub mod keep;
mod plugin;
mod registry;
mod request;
pub mod response;
mod settings;
mod shared_credential;
#[cfg(test)]
mod tests;

pub use authenticator::Authenticator;
pub use error::ExecError;
pub use plugin::Plugin;
pub use registry::AuthenticatorRegistry;
pub use settings::{ExecSettings, PluginPolicy};
