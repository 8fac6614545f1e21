//! The plugin policy of a kuberc file (client-credentials.md §7): where it is, what it says, and what is wrong with it.
//!
//! ```text
//! locate ──▶ load ──▶ Policy
//! which      strictly: a file that is there and cannot be read in full permits nothing (C740)
//! file
//! ```
//!
//! Only the policy is read. Whatever else a kuberc holds is kubectl's business and is not judged.

mod preference;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use navicert_plugin::Policy;
use navicert_types::Diagnostics;
use thiserror::Error;

use crate::kubeconfig::Files;

/// Where a kuberc is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Named on purpose, by flag or variable: it has to exist.
    Named(PathBuf),
    /// In the home folder, where it may be absent.
    Home(PathBuf),
    /// Nowhere: switched off, or no home.
    Nowhere,
}

/// What a user says about where it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes<'a> {
    /// `--kuberc`.
    pub flag: Option<&'a Path>,
    /// `KUBERC`.
    pub variable: Option<&'a OsStr>,
    /// `KUBECTL_KUBERC`.
    pub feature: Option<&'a OsStr>,
    /// The home folder.
    pub home: Option<&'a Path>,
}

/// Why a kuberc gives no policy; nothing may run until it is mended (C740).
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum KubercError {
    /// The flag names a file and the variable says that there is none.
    #[error("`--kuberc` cannot be used while KUBERC is `off`")]
    FlagWhileOff,
    /// It is there, or should be, and cannot be read.
    #[error("the kuberc `{path}` cannot be read, so no credential plugin may run")]
    Unreadable {
        /// The file.
        path: String,
        /// The operating system's word.
        source: Arc<io::Error>,
    },
    /// It can be read and makes no sense.
    #[error("the kuberc `{path}` is not valid, so no credential plugin may run: {diagnostics}")]
    Invalid {
        /// The file.
        path: String,
        /// What is wrong, with line, column and what is expected there.
        #[source]
        diagnostics: Diagnostics,
    },
}

impl Source {
    /// Chooses: the flag, else `KUBERC`, else the file in the home folder (C701).
    ///
    /// # Errors
    /// The flag names a file while `KUBERC` is `off`.
    pub fn locate(wishes: Wishes<'_>) -> Result<Self, KubercError> {
        let variable = wishes.variable.filter(|value| !value.is_empty());
        let is_off = variable.is_some_and(|value| value == "off");
        if wishes.feature.is_some_and(|value| value.eq_ignore_ascii_case("false")) {
            return Ok(Source::Nowhere);
        }
        let home = wishes.home.map(|home| home.join(".kube").join("kuberc"));
        match (wishes.flag, variable) {
            (Some(_), _) if is_off => Err(KubercError::FlagWhileOff),
            // A flag that only spells out the default does not count against the variable.
            (Some(flag), Some(variable)) if home.as_deref() == Some(flag) => {
                Ok(Source::Named(variable.into()))
            }
            (Some(flag), _) => Ok(Source::Named(flag.to_owned())),
            (None, Some(_)) if is_off => Ok(Source::Nowhere),
            (None, Some(variable)) => Ok(Source::Named(variable.into())),
            (None, None) => Ok(home.map_or(Source::Nowhere, Source::Home)),
        }
    }
}

/// Reads the policy. No file at the default place, or a file that says nothing about plugins, permits everything.
///
/// # Errors
/// The file is there and cannot be read in full: which line is wrong, and what is expected there.
pub fn load(source: &Source, files: &dyn Files) -> Result<Policy, KubercError> {
    let (path, may_be_absent) = match source {
        Source::Named(path) => (path, false),
        Source::Home(path) => (path, true),
        Source::Nowhere => return Ok(Policy::AllowAll),
    };
    let shown = || path.display().to_string();
    match files.read(path) {
        Ok(text) => preference::policy(&text)
            .map_err(|diagnostics| KubercError::Invalid { path: shown(), diagnostics }),
        Err(error) if may_be_absent && error.kind() == io::ErrorKind::NotFound => Ok(Policy::AllowAll),
        Err(error) => Err(KubercError::Unreadable { path: shown(), source: Arc::new(error) }),
    }
}
