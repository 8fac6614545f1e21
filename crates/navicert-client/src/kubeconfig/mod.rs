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

pub mod batch;
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

use crate::config::ConfigErrors;

pub use file_system::{FileSystem, MAX_FILE_BYTES, MemoryFileSystem, OsFileSystem};
pub use load::{
    KubeconfigFile, KubeconfigFileError, KubeconfigFileErrorReason, KubeconfigText, LoadError,
    LoadedKubeconfig, load,
};
pub use locate::KubeconfigSources;
pub use merge::{EntryKind, EntryOrigin, MergedKubeconfig};
pub use paths::clean as clean_path;
pub(crate) use resolve::Effective;
pub use resolve::Overrides;
pub(crate) use resolve::base_address;
pub use validate::ValidationError;
pub(crate) use validate::validate;

/// The names of the selected entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedNames {
    /// The context.
    pub context: String,
    /// The cluster that it names.
    pub cluster: String,
    /// The user that it names.
    pub user: String,
}

impl MergedKubeconfig {
    /// The names of the selected context, cluster and user.
    ///
    /// # Errors
    /// An entry requested by name does not exist, or no context is selected.
    pub fn selected_names(&self, overrides: &Overrides) -> Result<SelectedNames, ConfigErrors> {
        let effective =
            self.selection(overrides).map_err(|error| ConfigErrors::missing_entry(error, self))?;
        match effective.context.filter(|_| effective.context_exists) {
            Some(context) => {
                Ok(SelectedNames { context, cluster: effective.cluster_name, user: effective.user_name })
            }
            None => Err(ConfigErrors::missing_entry(ValidationError::NoConfiguration, self)),
        }
    }

    /// Selects a context without validating it.
    ///
    /// # Errors
    /// An entry requested by name does not exist.
    // C141
    pub(crate) fn selection(&self, overrides: &Overrides) -> Result<Effective, ValidationError> {
        Effective::select(self, overrides)
    }
}
