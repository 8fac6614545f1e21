//! The plugin policy of a kuberc file: locating, loading and validating it.
//!
//! ```text
//! locate ──▶ load ──▶ Policy
//! which      strict: a file that exists but is not fully valid permits nothing
//! file
//! ```
//!
//! Only the policy is decoded. Other kuberc content belongs to kubectl and is not validated.
// §7, C740

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

use crate::kubeconfig::FileSystem;
pub(crate) use preference::{policy as policy_of, preference_range};

/// The location of the kuberc.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KubercSource {
    /// Set by flag or environment variable: it must exist.
    Named(PathBuf),
    /// The default path in the home directory: it may be missing.
    Home(PathBuf),
    /// None: disabled, or there is no home directory.
    Nowhere,
}

/// Flags and environment variables that locate the kuberc.
#[derive(Clone, Copy, Debug, Default)]
pub struct KubercLocation<'a> {
    /// `--kuberc`.
    pub flag: Option<&'a Path>,
    /// `KUBERC`.
    pub variable: Option<&'a OsStr>,
    /// `KUBECTL_KUBERC`.
    pub feature: Option<&'a OsStr>,
    /// The home directory.
    pub home: Option<&'a Path>,
}

/// Why a kuberc has no usable policy. No plugin may run until it is fixed.
// C740
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum KubercError {
    /// `--kuberc` names a file while `KUBERC` is `off`.
    #[error("`--kuberc` cannot be used while KUBERC is `off`")]
    FlagWhileOff,
    /// The file cannot be read.
    #[error("failed to read kuberc `{path}`, so no credential plugin may run")]
    Unreadable {
        /// The file.
        path: String,
        /// I/O error reported by the operating system.
        source: Arc<io::Error>,
    },
    /// The file is not valid.
    #[error("invalid kuberc `{path}`, so no credential plugin may run")]
    Invalid {
        /// The file.
        path: String,
        /// The errors, with line, column and what is expected.
        #[source]
        diagnostics: Diagnostics,
    },
}

impl KubercSource {
    /// Selects the flag, else `KUBERC`, else the file in the home directory.
    ///
    /// # Errors
    /// The flag names a file while `KUBERC` is `off`.
    // C701
    pub fn locate(location: KubercLocation<'_>) -> Result<Self, KubercError> {
        let variable = location.variable.filter(|value| !value.is_empty());
        let is_off = variable.is_some_and(|value| value == "off");
        if location.feature.is_some_and(|value| value.eq_ignore_ascii_case("false")) {
            return Ok(KubercSource::Nowhere);
        }
        let home = location.home.map(|home| home.join(".kube").join("kuberc"));
        match (location.flag, variable) {
            (Some(_), _) if is_off => Err(KubercError::FlagWhileOff),
            // A flag with the default path does not override the variable.
            (Some(flag), Some(variable)) if home.as_deref() == Some(flag) => {
                Ok(KubercSource::Named(variable.into()))
            }
            (Some(flag), _) => Ok(KubercSource::Named(flag.to_owned())),
            (None, Some(_)) if is_off => Ok(KubercSource::Nowhere),
            (None, Some(variable)) => Ok(KubercSource::Named(variable.into())),
            (None, None) => Ok(home.map_or(KubercSource::Nowhere, KubercSource::Home)),
        }
    }
}

/// Loads the policy. A missing file at the default path, or a file without a plugin policy, permits every plugin.
///
/// # Errors
/// The file exists but cannot be read or is not valid; the error names the line and what is expected.
pub fn load(source: &KubercSource, files: &dyn FileSystem) -> Result<Policy, KubercError> {
    let (path, may_be_absent) = match source {
        KubercSource::Named(path) => (path, false),
        KubercSource::Home(path) => (path, true),
        KubercSource::Nowhere => return Ok(Policy::AllowAll),
    };
    let shown = || path.display().to_string();
    match files.read(path) {
        Ok(text) => preference::policy(&text)
            .map(|policy| policy.with_file(path))
            .map_err(|diagnostics| KubercError::Invalid { path: shown(), diagnostics }),
        Err(error) if may_be_absent && error.kind() == io::ErrorKind::NotFound => Ok(Policy::AllowAll),
        Err(error) => Err(KubercError::Unreadable { path: shown(), source: Arc::new(error) }),
    }
}
