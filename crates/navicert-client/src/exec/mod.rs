//! Credentials from exec plugins (client-credentials.md §2–§5).
//!
//! ```text
//! kubeconfig::Effective ──▶ Plugin ──▶ Authenticator ──▶ Arc<Credential>
//!                                      │  ready? fresh? may it run?           (entry.rs)
//!                                      ├─ interactive ▶ request ▶ policy      (before)
//!                                      ├─ run                                 (navicert-plugin)
//!                                      └─ response ▶ install                  (after)
//! ```
//!
//! Plugins run on threads of their own, at most one per plugin at a time; nothing here needs a runtime. For people who
//! write plugins there is [`author`], and [`conformance`] says which rules a plugin breaks.

mod authenticator;
pub mod author;
pub mod conformance;
mod entry;
mod error;
mod install_help;
pub mod interactive;
mod plugin;
mod registry;
mod request;
pub mod response;
mod settings;
#[cfg(test)]
mod tests;

pub use authenticator::Authenticator;
pub use error::ExecError;
pub use plugin::Plugin;
pub use registry::Registry;
pub use settings::{PluginPolicy, Settings, Surroundings};
