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
pub(crate) struct KubeconfigFile {
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
pub(crate) struct LoadedKubeconfig {
    /// The files that exist.
    pub files: Vec<KubeconfigFile>,
    /// The files of a list that do not exist.
    pub missing: Vec<PathBuf>,
}

/// Why a file could not be loaded.
#[derive(Debug, thiserror::Error)]
#[error("error loading config file {:?}", path.display().to_string())]
pub(crate) struct KubeconfigFileError {
    /// The path as given.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub reason: KubeconfigFileErrorReason,
}

/// Why one file could not be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KubeconfigFileErrorReason {
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

/// Files that cannot all be loaded.
#[derive(Debug)]
pub(crate) struct LoadError {
    /// Every file that exists but cannot be loaded. Never empty.
    pub errors: Vec<KubeconfigFileError>,
    /// The files in order, with the valid fields of those that cannot be decoded; `None` if nothing is known about one of
    /// them.
    pub(crate) partial: Option<LoadedKubeconfig>,
}

/// Loads every file and collects the errors of all of them.
///
/// # Errors
/// Every file that exists but cannot be loaded; an explicit file also if it does not exist.
pub(crate) fn load(
    sources: &KubeconfigSources,
    current_dir: &Path,
    files: &dyn FileSystem,
) -> Result<LoadedKubeconfig, LoadError> {
    let mut loaded = LoadedKubeconfig::default();
    let (mut errors, mut is_known) = (Vec::new(), true);
    for path in sources.files() {
        match load_file(path, current_dir, files) {
            (file, None) => loaded.files.extend(file),
            (_, Some(KubeconfigFileErrorReason::Unreadable(error))) if may_be_missing(sources, &error) => {
                loaded.missing.push(path.clone());
            }
            (partial, Some(reason)) => {
                is_known &= partial.is_some();
                loaded.files.extend(partial);
                errors.push(KubeconfigFileError { path: path.clone(), reason });
            }
        }
    }
    if errors.is_empty() {
        return Ok(loaded);
    }
    Err(LoadError { errors, partial: is_known.then_some(loaded) })
}

fn may_be_missing(sources: &KubeconfigSources, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound && !matches!(sources, KubeconfigSources::Explicit(_))
}

/// The file, or its valid fields and why it cannot be loaded.
fn load_file(
    path: &Path,
    current_dir: &Path,
    files: &dyn FileSystem,
) -> (Option<KubeconfigFile>, Option<KubeconfigFileErrorReason>) {
    let absolute = current_dir.join(path);
    let text = match files.read(&absolute) {
        Ok(bytes) => KubeconfigText::new(bytes),
        Err(error) => return (None, Some(KubeconfigFileErrorReason::Unreadable(error))),
    };
    let (config, error) = match kubeconfig::decode(text.expose()) {
        Ok(config) => (Some(config), None),
        Err(diagnostics) => {
            let error = KubeconfigFileErrorReason::Undecodable { diagnostics, text: text.clone() };
            (kubeconfig::decode_partially(text.expose()), Some(error))
        }
    };
    let directory = paths::parent_directory(&paths::clean(&absolute.to_string_lossy()));
    (config.map(|config| KubeconfigFile { path: path.to_owned(), directory, text, config }), error)
}
