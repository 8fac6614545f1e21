//! Step two: reads and decodes every located file and reports all errors.
// C120–C122

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use navicert_types::diagnostic::Diagnostics;
use navicert_types::kubeconfig::{self, Kubeconfig};

use super::file_system::FileSystem;
use super::locate::KubeconfigSources;
use super::paths;

/// A loaded kubeconfig file.
#[derive(Clone, Debug)]
pub struct KubeconfigFile {
    /// The path as given.
    pub path: PathBuf,
    /// The absolute directory of the file; its relative paths are resolved against it.
    pub directory: String,
    /// Its text, for source locations in messages.
    pub text: KubeconfigText,
    /// Its content.
    pub config: Kubeconfig,
}

/// A file's text. `Debug` omits it because it contains secrets. Cheap to clone.
#[derive(Clone)]
pub struct KubeconfigText(Arc<zeroize::Zeroizing<Vec<u8>>>);

impl KubeconfigText {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        KubeconfigText(Arc::new(zeroize::Zeroizing::new(bytes)))
    }

    /// The bytes, secrets included.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for KubeconfigText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes)", self.0.len())
    }
}

/// Loaded files, highest precedence first.
#[derive(Clone, Debug, Default)]
pub struct LoadedKubeconfig {
    /// The files that exist.
    pub files: Vec<KubeconfigFile>,
    /// The files of a list that do not exist.
    pub missing: Vec<PathBuf>,
}

/// Why a file could not be loaded.
#[derive(Debug, thiserror::Error)]
#[error("error loading config file {:?}", path.display().to_string())]
pub struct KubeconfigFileError {
    /// The path as given.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub reason: KubeconfigFileErrorReason,
}

/// Why one file could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigFileErrorReason {
    /// The file could not be read.
    #[error(transparent)]
    Unreadable(io::Error),
    /// The file is not a valid kubeconfig.
    #[error("{diagnostics}")]
    Undecodable {
        /// Every error with its position.
        diagnostics: Diagnostics,
        /// The text, for source locations.
        text: KubeconfigText,
    },
}

/// Loads every file and collects the errors of all of them.
///
/// # Errors
/// Every file that exists but cannot be loaded; an explicit file also if it does not exist.
pub fn load(
    sources: &KubeconfigSources,
    current_dir: &Path,
    files: &dyn FileSystem,
) -> Result<LoadedKubeconfig, Vec<KubeconfigFileError>> {
    let mut loaded = LoadedKubeconfig::default();
    let mut errors = Vec::new();
    for path in sources.files() {
        match load_file(path, current_dir, files) {
            Ok(file) => loaded.files.push(file),
            Err(KubeconfigFileErrorReason::Unreadable(error)) if may_be_missing(sources, &error) => {
                loaded.missing.push(path.clone());
            }
            Err(reason) => errors.push(KubeconfigFileError { path: path.clone(), reason }),
        }
    }
    if errors.is_empty() { Ok(loaded) } else { Err(errors) }
}

fn may_be_missing(sources: &KubeconfigSources, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound && !matches!(sources, KubeconfigSources::Explicit(_))
}

fn load_file(
    path: &Path,
    current_dir: &Path,
    files: &dyn FileSystem,
) -> Result<KubeconfigFile, KubeconfigFileErrorReason> {
    let absolute = current_dir.join(path);
    let text = KubeconfigText::new(files.read(&absolute).map_err(KubeconfigFileErrorReason::Unreadable)?);
    let directory = paths::parent_directory(&paths::clean(&absolute.to_string_lossy()));
    match kubeconfig::decode(text.expose()) {
        Ok(config) => Ok(KubeconfigFile { path: path.to_owned(), directory, text, config }),
        Err(diagnostics) => Err(KubeconfigFileErrorReason::Undecodable { diagnostics, text }),
    }
}
