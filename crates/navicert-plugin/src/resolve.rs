//! From the command as configured to the absolute path of the file that will run (client-credentials.md C301, C134).

use std::env::split_paths;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf, is_separator};
use std::sync::Arc;

use crate::error::ResolveError;
use crate::platform;

/// Finds the program: a bare name in `search_path` (a `PATH` value), a command with a separator where it says.
///
/// The result is absolute. The first hit decides: if it comes from a relative directory of the search path, the
/// command is refused rather than searched for further on, because that is the one the user's shell would have run.
///
/// # Errors
/// [`ResolveError`], one variant per thing that can be done about it.
pub fn resolve(command: &OsStr, search_path: Option<&OsStr>) -> Result<PathBuf, ResolveError> {
    if has_separator(command) { resolve_as_given(command) } else { search(command, search_path) }
}

/// The path without `.`, repeated separators and `..` where these can be removed by looking at the text alone.
/// Nothing left is `.`, as in Go's `path/filepath`.
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

/// [`clean`], except that a command with a separator keeps one: `./p` must never turn into `p` and be searched for
/// in `PATH` (C134).
pub fn clean_command(command: &OsStr) -> OsString {
    let cleaned = clean(command);
    if !has_separator(command) || has_separator(&cleaned) {
        return cleaned;
    }
    Path::new(".").join(cleaned).into_os_string()
}

/// Whether the command names a place rather than something to search for.
pub fn has_separator(command: &OsStr) -> bool {
    command.as_encoded_bytes().iter().any(|byte| is_separator(char::from(*byte)))
}

fn resolve_as_given(command: &OsStr) -> Result<PathBuf, ResolveError> {
    // Only an empty command or an unreadable working directory fails here.
    let path = std::path::absolute(command)
        .map_err(|source| ResolveError::NotExecutable { path: command.into(), source: Arc::new(source) })?;
    match platform::check_executable(&path) {
        Ok(()) => Ok(path),
        Err(Unusable::NoFile(source)) if is_absence(&source) => Err(ResolveError::NoSuchFile { path }),
        Err(Unusable::NoFile(source) | Unusable::NotExecutable(source)) => {
            Err(ResolveError::NotExecutable { path, source: Arc::new(source) })
        }
    }
}

fn search(command: &OsStr, search_path: Option<&OsStr>) -> Result<PathBuf, ResolveError> {
    let shown = || command.to_string_lossy().into_owned();
    let mut present = None;
    // An empty value is no directory at all, although an empty element between two colons is the current one.
    for directory in search_path.filter(|value| !value.is_empty()).into_iter().flat_map(split_paths) {
        let path = directory.join(command);
        match platform::check_executable(&path) {
            Ok(()) if path.is_absolute() => return Ok(path),
            Ok(()) => return Err(ResolveError::InCurrentDirectory { command: shown(), directory }),
            Err(Unusable::NoFile(_)) => {}
            Err(Unusable::NotExecutable(source)) => {
                present.get_or_insert((path, source));
            }
        }
    }
    Err(match present {
        Some((path, source)) => ResolveError::NotExecutable { path, source: Arc::new(source) },
        None => ResolveError::NotInPath { command: shown() },
    })
}

/// Why a path cannot be run.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// There is nothing to be seen there.
    NoFile(io::Error),
    /// There is something, but not a file this user may execute.
    NotExecutable(io::Error),
}

/// Whether the error says that there is nothing at that path.
pub(crate) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
