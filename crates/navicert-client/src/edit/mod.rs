//! Changes kubeconfig and kuberc files as a careful person would: one entry, nothing else, and only after showing it.
//!
//! ```text
//! load ──▶ change ──▶ FileChange ──shown, confirmed──▶ write
//! decode   by spans,   before, after,                  lock, compare, backup,
//!          verified    unified diff                    temporary file, rename
//! ```
//!
//! Comments, order, unknown fields, quoting and line ends of everything else stay byte for byte
//! ([`navicert_types::tree::edit`]). A diff shows no secret.

mod diff;
mod error;
mod file;
mod kubeconfig;
#[cfg(feature = "exec")]
mod kuberc;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use navicert_types::tree::{encode_like, source_text};
use zeroize::Zeroizing;

pub use error::{FileEditError, FileEditErrorClass};
pub use kubeconfig::KubeconfigChanges;
#[cfg(feature = "exec")]
pub use kuberc::{AllowedProgram, KubercChanges, UsedPlugin, variables_set_for};

/// A change of one file that is not written yet. Its `Debug` shows no content.
#[derive(Clone)]
pub struct FileChange {
    path: PathBuf,
    before: Option<Zeroizing<Vec<u8>>>,
    after: Zeroizing<Vec<u8>>,
    diff: String,
}

impl FileChange {
    /// `masked` makes a text showable.
    fn new(
        path: &Path,
        before: Option<Zeroizing<Vec<u8>>>,
        after: &str,
        masked: impl Fn(&str) -> String,
    ) -> Self {
        let original = before.as_deref().map(Vec::as_slice).unwrap_or_default();
        let old = masked(&source_text(original));
        let diff = diff::unified(&path.display().to_string(), before.is_some(), &old, &masked(after));
        let after = Zeroizing::new(encode_like(original, after));
        FileChange { path: path.to_owned(), before, after, diff }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file does not exist yet.
    pub fn is_new(&self) -> bool {
        self.before.is_none()
    }

    /// Whether the file stays as it is.
    pub fn is_unchanged(&self) -> bool {
        self.before.as_ref().is_some_and(|before| *before == self.after)
    }

    /// The change as a unified diff, with secrets masked; empty if there is none.
    pub fn diff(&self) -> &str {
        &self.diff
    }

    /// Writes the file, and returns the path of the copy of the previous one. A file that is unchanged is not touched.
    ///
    /// Readers see the old or the new content: it is written beside the file, read back and renamed. Mode and owner stay, a symbolic link
    /// is followed, and a new file can be read by its owner only.
    ///
    /// # Errors
    /// Another program holds the file's lock or has changed the file since it was read, or the operating system reports an error.
    pub fn write(&self) -> Result<Option<PathBuf>, FileEditError> {
        if self.is_unchanged() {
            return Ok(None);
        }
        file::replace(&self.path, self.before.as_deref().map(Vec::as_slice), &self.after)
    }
}

impl fmt::Debug for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileChange").field("path", &self.path).finish_non_exhaustive()
    }
}
