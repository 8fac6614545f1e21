//! From kubeconfig files to the one cluster and user that count.
//!
//! ```text
//! locate ──▶ load ──▶ merge ──▶ resolve ──▶ validate
//! which      read,    first     context,    every problem,
//! files      decode   wins      overrides   kubectl's words
//! ```
//!
//! [`select`] is the spine. Values are immutable once made: two contexts that share a user never see each other (C166).

mod address;
mod advice;
mod files;
mod load;
mod locate;
mod merge;
mod obstacle;
mod paths;
mod place;
mod resolve;
#[cfg(test)]
mod tests;
mod validate;
mod way_out;

use std::path::Path;

pub use address::{Address, AddressError};
pub use advice::Advice;
pub use files::{Disk, Files, MemoryFolder};
pub use load::{File, FileError, FileErrorReason, Loaded, Text, load};
pub use locate::Sources;
pub use merge::{EntryKind, Merged, Origin};
pub use obstacle::Obstacle;
pub use paths::clean as clean_path;
pub use place::Place;
pub use resolve::{Effective, Overrides};
pub use validate::Problem;

/// Why there is no usable configuration.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Files that could not be loaded.
    #[error("{}", joined(.0))]
    Load(Vec<FileError>),
    /// The selected context is not usable.
    #[error("invalid configuration: {}", joined(.0))]
    Invalid(Vec<Problem>),
}

/// The spine: from files to the selected cluster and user, or everything that stands in the way.
///
/// # Errors
/// Every file that cannot be loaded, or else every problem of the selected context.
pub fn select(
    sources: &Sources,
    overrides: &Overrides,
    current_dir: &Path,
    files: &dyn Files,
) -> Result<(Merged, Effective), Refusal> {
    let loaded = load(sources, current_dir, files).map_err(Refusal::Load)?;
    let merged = Merged::new(loaded);
    let effective = merged.select(overrides, files).map_err(Refusal::Invalid)?;
    Ok((merged, effective))
}

impl Merged {
    /// The second half of the spine: what is left to do for every context of the same files.
    ///
    /// # Errors
    /// Every problem of the selected context.
    pub fn select(&self, overrides: &Overrides, files: &dyn Files) -> Result<Effective, Vec<Problem>> {
        let effective = self.selection(overrides).map_err(|problem| vec![problem])?;
        let problems = validate::validate(&effective, files);
        if problems.is_empty() { Ok(effective) } else { Err(problems) }
    }

    /// Only what is selected, not judged.
    ///
    /// # Errors
    /// Something that was asked for by name does not exist (C141).
    pub fn selection(&self, overrides: &Overrides) -> Result<Effective, Problem> {
        Effective::select(self, overrides)
    }
}

fn joined<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
