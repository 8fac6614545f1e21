//! From kubeconfig files to the selected cluster and user.
//!
//! ```text
//! locate ──▶ load ──▶ merge ──▶ resolve ──▶ validate
//! which      read,    first     context,    every problem, with
//! files      decode   wins      overrides   kubectl's messages
//! ```
//!
//! [`ConfigOptions`](crate::ConfigOptions) calls every step. Values are immutable: two contexts that share a user never affect each other.
// C166

mod file_system;
mod load;
mod locate;
mod merge;
mod paths;
mod resolve;
mod source_location;
#[cfg(test)]
mod tests;
mod validate;

pub use file_system::{FileSystem, MemoryFileSystem, OsFileSystem};
pub use load::KubeconfigText;
pub(crate) use load::{
    KubeconfigFile, KubeconfigFileError, KubeconfigFileErrorReason, LoadError, LoadedKubeconfig, load,
};
pub use locate::KubeconfigSources;
pub(crate) use merge::EntryKind;
pub use merge::{EntryOrigin, MergedKubeconfig};
pub(crate) use resolve::Effective;
pub use resolve::Overrides;
pub(crate) use resolve::base_address;
pub(crate) use validate::{ValidationError, validate};

/// The names of the selected entries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SelectedNames {
    /// The context.
    pub context: String,
    /// The cluster that it names.
    pub cluster: String,
    /// The user that it names.
    pub user: String,
}

impl MergedKubeconfig {
    /// Selects a context without validating it.
    ///
    /// # Errors
    /// An entry requested by name does not exist.
    // C141
    pub(crate) fn selection(&self, overrides: &Overrides) -> Result<Effective, ValidationError> {
        Effective::select(self, overrides)
    }
}
