//! Why a file was not changed.

use std::io;
use std::path::{Path, PathBuf};

use navicert_types::Diagnostics;
use navicert_types::tree::edit::EditError;
use thiserror::Error;

/// Why a kubeconfig or kuberc was not changed. The file is as it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileEditError {
    /// There is no home directory, and no file was named.
    #[error("no file to write: there is no home directory; name one with `{flag}`")]
    NoLocation {
        /// The flag that names a file.
        flag: &'static str,
    },
    /// The operating system reports an error.
    #[error("failed to {action} `{}`", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// I/O error reported by the operating system.
        source: io::Error,
    },
    /// The file is not valid, so it is not changed.
    #[error("invalid file `{}`", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The errors, with line and column.
        #[source]
        diagnostics: Diagnostics,
    },
    /// The text cannot be changed.
    #[error("failed to edit `{}`", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Why.
        source: EditError,
    },
    /// No file has this context.
    #[error("unknown context `{name}`")]
    UnknownContext {
        /// The name.
        name: String,
    },
    /// The user exists with other content.
    #[error(
        "user `{name}` exists in `{}` with other content; replace it with `--force`, or choose another name with `--user`",
        path.display()
    )]
    UserExists {
        /// The name.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// The allowlist has an entry of this command with other conditions.
    #[error("`{}` has an entry for `{command}` with other conditions; replace it with `--force`", path.display())]
    EntryExists {
        /// The command.
        command: String,
        /// The file.
        path: PathBuf,
    },
    /// The kuberc denies every plugin.
    #[error("`{}` has `credentialPluginPolicy: DenyAll`; replace it by an allowlist with `--force`", path.display())]
    DeniesAll {
        /// The file.
        path: PathBuf,
    },
    /// The kuberc's version has no plugin policy.
    #[error(
        "`{}` has a version without a plugin policy; change its `apiVersion` to `kubectl.config.k8s.io/v1beta1`",
        path.display()
    )]
    NoPolicyInVersion {
        /// The file.
        path: PathBuf,
    },
    /// The kuberc is disabled by the environment.
    #[error("kuberc is disabled by KUBERC or KUBECTL_KUBERC; name a file with `--kuberc`")]
    KubercDisabled,
    /// Another program holds the lock that kubectl uses too.
    #[error("`{}` exists: another program is changing the file; remove it if none is", lock.display())]
    Locked {
        /// The lock file.
        lock: PathBuf,
    },
    /// The file is not the one that the change was made for.
    #[error("`{}` has changed meanwhile; run the command again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// What was written is not what is read.
    #[error("what was written beside `{}` reads differently; the file is unchanged", path.display())]
    NotWritten {
        /// The file.
        path: PathBuf,
    },
}

/// What kind of failure it is, for exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileEditErrorClass {
    /// A file or a name is wrong, or a file cannot be used.
    Invalid,
    /// The file has something else already, or another program changes it.
    Conflict,
    /// The present policy denies it.
    Denied,
}

impl FileEditError {
    /// What kind of failure it is.
    pub fn class(&self) -> FileEditErrorClass {
        match self {
            FileEditError::UserExists { .. }
            | FileEditError::EntryExists { .. }
            | FileEditError::Locked { .. }
            | FileEditError::Changed { .. } => FileEditErrorClass::Conflict,
            FileEditError::DeniesAll { .. } => FileEditErrorClass::Denied,
            _ => FileEditErrorClass::Invalid,
        }
    }

    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileEditError + use<> {
        let path = path.to_owned();
        move |source| FileEditError::Io { action, path, source }
    }
}
