//! From kubeconfig files to the selected cluster and user.
//!
//! ```text
//! locate ──▶ load ──▶ merge ──▶ resolve ──▶ validate
//! which      read,    first     context,    every problem, with
//! files      decode   wins      overrides   kubectl's messages
//! ```
//!
//! [`select`] is the entry function. Values are immutable: two contexts that share a user never affect each other.
// C166

mod address;
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

use std::path::Path;

use crate::config::ConfigErrors;

pub use address::{Address, AddressError};
pub use file_system::{FileSystem, MAX_FILE_BYTES, MemoryFileSystem, OsFileSystem};
pub use load::{
    KubeconfigFile, KubeconfigFileError, KubeconfigFileErrorReason, KubeconfigText, LoadedKubeconfig, load,
};
pub use locate::KubeconfigSources;
pub use merge::{EntryKind, EntryOrigin, MergedKubeconfig};
pub use paths::clean as clean_path;
pub(crate) use resolve::base_address;
pub use resolve::{Effective, Overrides};
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

/// Loads the files and selects the cluster and user, or returns every problem.
///
/// # Errors
/// Every file that cannot be loaded, otherwise every problem of the selected context.
pub fn select(
    sources: &KubeconfigSources,
    overrides: &Overrides,
    current_dir: &Path,
    files: &dyn FileSystem,
) -> Result<(MergedKubeconfig, Effective), ConfigErrors> {
    let loaded = load(sources, current_dir, files).map_err(ConfigErrors::from_files)?;
    let merged = MergedKubeconfig::new(loaded);
    let effective = merged.select(overrides, files).map_err(ConfigErrors::from_validation)?;
    Ok((merged, effective))
}

impl MergedKubeconfig {
    /// Selects and validates a context of already loaded files.
    ///
    /// # Errors
    /// Every problem of the selected context.
    pub fn select(
        &self,
        overrides: &Overrides,
        files: &dyn FileSystem,
    ) -> Result<Effective, Vec<ValidationError>> {
        let effective = self.selection(overrides).map_err(|problem| vec![problem])?;
        let problems = validate(&effective, files);
        if problems.is_empty() { Ok(effective) } else { Err(problems) }
    }

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
    pub fn selection(&self, overrides: &Overrides) -> Result<Effective, ValidationError> {
        Effective::select(self, overrides)
    }
}
