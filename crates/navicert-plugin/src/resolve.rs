//! Resolves a configured command to the absolute path of the program.
// C301, C134

use std::env::split_paths;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf, is_separator};
use std::sync::Arc;

use crate::error::ResolveError;
use crate::platform;

/// Finds the program: searches `search_path` (a `PATH` value) for a bare name, and uses a command with a separator as a path.
///
/// The result is absolute. The first match decides: if it is in a relative directory of the search path, the command is
/// rejected and later directories are not searched, because the user's shell would have run that match.
///
/// # Errors
/// [`ResolveError`].
pub fn resolve(command: &OsStr, search_path: Option<&OsStr>) -> Result<PathBuf, ResolveError> {
    if has_separator(command) { resolve_as_given(command) } else { search(command, search_path) }
}

/// Cleans a path lexically: removes `.`, repeated separators, and `..` where possible. An empty result becomes `.`, as in
/// Go's `path/filepath`.
pub fn clean(path: &OsStr) -> OsString {
    let mut cleaned = PathBuf::new();
    for component in Path::new(path).components() {
        match (component, cleaned.components().next_back()) {
            (Component::CurDir, _)
            | (Component::ParentDir, Some(Component::RootDir | Component::Prefix(_))) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                cleaned.pop();
            }
            (other, _) => cleaned.push(other),
        }
    }
    if cleaned.as_os_str().is_empty() { ".".into() } else { cleaned.into_os_string() }
}

/// Like [`clean`], but a command with a separator keeps one: `./p` must not become `p` and be searched for in `PATH`.
// C134
pub fn clean_command(command: &OsStr) -> OsString {
    let cleaned = clean(command);
    if !has_separator(command) || has_separator(&cleaned) {
        return cleaned;
    }
    Path::new(".").join(cleaned).into_os_string()
}

/// Whether the command is a path rather than a name to search for.
pub fn has_separator(command: &OsStr) -> bool {
    command.as_encoded_bytes().iter().any(|byte| is_separator(char::from(*byte)))
}

fn resolve_as_given(command: &OsStr) -> Result<PathBuf, ResolveError> {
    // Only an empty command or an unreadable working directory fails here.
    let path = std::path::absolute(command)
        .map_err(|source| ResolveError::NotExecutable { path: command.into(), source: Arc::new(source) })?;
    match platform::check_executable(&path) {
        Ok(()) => Ok(path),
        Err(ExecutableError::NoFile(source)) if is_not_found(&source) => {
            Err(ResolveError::NoSuchFile { path })
        }
        Err(ExecutableError::NoFile(source) | ExecutableError::NotExecutable(source)) => {
            Err(ResolveError::NotExecutable { path, source: Arc::new(source) })
        }
    }
}

fn search(command: &OsStr, search_path: Option<&OsStr>) -> Result<PathBuf, ResolveError> {
    let shown = || command.to_string_lossy().into_owned();
    let mut present = None;
    // An empty value means no directory, although an empty element between two colons means the current one.
    for directory in search_path.filter(|value| !value.is_empty()).into_iter().flat_map(split_paths) {
        let path = directory.join(command);
        match platform::check_executable(&path) {
            Ok(()) if path.is_absolute() => return Ok(path),
            Ok(()) => return Err(ResolveError::InCurrentDirectory { command: shown(), directory }),
            Err(ExecutableError::NoFile(_)) => {}
            Err(ExecutableError::NotExecutable(source)) => {
                present.get_or_insert((path, source));
            }
        }
    }
    Err(match present {
        Some((path, source)) => ResolveError::NotExecutable { path, source: Arc::new(source) },
        None => ResolveError::NotInPath { command: shown() },
    })
}

/// Why a path cannot be executed.
#[derive(Debug)]
pub(crate) enum ExecutableError {
    /// The file does not exist or cannot be inspected.
    NoFile(io::Error),
    /// The file is not executable by this user.
    NotExecutable(io::Error),
}

/// Whether the error means that the path does not exist.
pub(crate) fn is_not_found(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
