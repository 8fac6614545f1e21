//! Step two: read and decode every file that was located; all errors at once (C120–C122).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use navicert_types::diagnostic::Diagnostics;
use navicert_types::kubeconfig::{self, Config};

use super::files::Files;
use super::locate::Sources;
use super::paths;

/// A kubeconfig file as read.
#[derive(Clone, Debug)]
pub struct File {
    /// As it was named.
    pub path: PathBuf,
    /// The absolute folder it lies in; relative paths inside are relative to it.
    pub folder: String,
    /// Its text, for messages that point into it.
    pub text: Text,
    /// What it says.
    pub config: Config,
}

/// A file's text. It holds secrets, so it does not show itself.
#[derive(Clone)]
pub struct Text(zeroize::Zeroizing<Vec<u8>>);

impl Text {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Text(zeroize::Zeroizing::new(bytes))
    }

    /// The bytes, secrets included.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes)", self.0.len())
    }
}

/// Files that were read, most important first.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The files that exist.
    pub files: Vec<File>,
    /// The files of a list that do not.
    pub missing: Vec<PathBuf>,
}

/// Why a file could not be loaded.
#[derive(Debug, thiserror::Error)]
#[error("error loading config file {:?}: {reason}", path.display().to_string())]
pub struct FileError {
    /// The file as it was named.
    pub path: PathBuf,
    /// What went wrong.
    #[source]
    pub reason: FileErrorReason,
}

/// What went wrong with one file.
#[derive(Debug, thiserror::Error)]
pub enum FileErrorReason {
    /// It could not be read.
    #[error("{0}")]
    Unreadable(#[source] io::Error),
    /// It is not a kubeconfig.
    #[error("{diagnostics}")]
    Undecodable {
        /// Every fault, with its place.
        #[source]
        diagnostics: Diagnostics,
        /// The text, to point into.
        text: Text,
    },
}

/// Reads every file; what one file's error is does not hide another's.
///
/// # Errors
/// Every file that exists and cannot be used; an explicit file also if it does not exist.
pub fn load(sources: &Sources, current_dir: &Path, files: &dyn Files) -> Result<Loaded, Vec<FileError>> {
    let mut loaded = Loaded::default();
    let mut errors = Vec::new();
    for path in sources.files() {
        match load_file(path, current_dir, files) {
            Ok(file) => loaded.files.push(file),
            Err(FileErrorReason::Unreadable(error)) if may_be_missing(sources, &error) => {
                loaded.missing.push(path.clone());
            }
            Err(reason) => errors.push(FileError { path: path.clone(), reason }),
        }
    }
    if errors.is_empty() { Ok(loaded) } else { Err(errors) }
}

fn may_be_missing(sources: &Sources, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound && !matches!(sources, Sources::Explicit(_))
}

fn load_file(path: &Path, current_dir: &Path, files: &dyn Files) -> Result<File, FileErrorReason> {
    let absolute = current_dir.join(path);
    let text = Text::new(files.read(&absolute).map_err(FileErrorReason::Unreadable)?);
    let folder = paths::folder_of(&paths::clean(&absolute.to_string_lossy()));
    match kubeconfig::decode(text.expose()) {
        Ok(config) => Ok(File { path: path.to_owned(), folder, text, config }),
        Err(diagnostics) => Err(FileErrorReason::Undecodable { diagnostics, text }),
    }
}
