//! Errors: one variant per failure a caller can act on.
//!
//! No error contains the child's stdout, which may be a token. Captured stderr is kept in [`StderrTail`] and never part of
//! a message.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use navicert_go::quote::Quoted;
use thiserror::Error;

use crate::completion::JoinError;
use crate::runner::{Exit, StderrTail};

/// Why a command cannot be resolved to a program.
// C320, C321
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// No directory in `PATH` contains the name.
    #[error("`{command}` was not found in PATH")]
    NotInPath {
        /// The name searched for.
        command: String,
    },

    /// The first match in `PATH` is relative to the current directory, which is not allowed.
    #[error("`{command}` was found relative to the current directory (PATH contains `{}`), which is not allowed", DirectoryDisplay(.directory))]
    InCurrentDirectory {
        /// The name searched for.
        command: String,
        /// The relative directory in `PATH`.
        directory: PathBuf,
    },

    /// The command is a path that does not exist. Counts as not found.
    // C321
    #[error("`{}` does not exist", .path.display())]
    NoSuchFile {
        /// The absolute path.
        path: PathBuf,
    },

    /// The file exists but is not executable by this user.
    #[error("`{}` is not executable", .path.display())]
    NotExecutable {
        /// The path found.
        path: PathBuf,
        /// I/O error reported by the operating system.
        source: Arc<io::Error>,
    },
}

impl ResolveError {
    /// Whether the program does not exist, so that an install hint helps.
    // C320, C321
    pub fn is_not_found(&self) -> bool {
        matches!(self, ResolveError::NotInPath { .. } | ResolveError::NoSuchFile { .. })
    }
}

/// A command that the operating system cannot execute as written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MalformedCommand {
    /// The command is empty.
    #[error("the command is empty")]
    EmptyProgram,
    /// The command contains a NUL byte.
    #[error("the command contains a NUL byte")]
    NulInProgram,
    /// An argument contains a NUL byte.
    #[error("an argument contains a NUL byte")]
    NulInArgument,
    /// The name is empty or contains `=` or NUL.
    #[error("invalid environment variable name `{name}`")]
    VariableName {
        /// The name.
        name: String,
    },
    /// The value contains a NUL byte.
    #[error("environment variable `{name}` contains a NUL byte")]
    NulInVariable {
        /// The name of the variable.
        name: String,
    },
}

/// Why [`Policy::permit`](crate::Policy::permit) did not permit a command.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum PermitError {
    /// The command is malformed.
    #[error(transparent)]
    Malformed(#[from] MalformedCommand),
    /// The policy denies the command.
    #[error(transparent)]
    Denied(#[from] PolicyDenial),
    /// The policy allows the command, but the program does not exist.
    #[error(transparent)]
    Unresolved(#[from] ResolveError),
}

/// Why a policy denied a command. Messages are client-go's where it has one.
// C730, C731
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum PolicyDenial {
    /// The policy denies all plugins.
    #[error("plugin {} not allowed: policy set to \"DenyAll\"", Quoted(.command))]
    DenyAll {
        /// The cleaned configured command.
        command: String,
    },

    /// The command cannot be resolved, so it cannot be compared with the allowlist.
    #[error("plugin path {} cannot be resolved for credential plugin allowlist check", Quoted(.path))]
    CannotResolve {
        /// The cleaned configured command.
        path: String,
        /// The cause.
        source: ResolveError,
    },

    /// The entry for this program does not allow the value of a declared setting.
    #[error("the allowlist entry for {} does not allow {name} {}", Quoted(.path), Quoted(.value))]
    Setting {
        /// The program.
        path: String,
        /// The setting.
        name: String,
        /// Its value.
        value: String,
    },

    /// The entry for this program does not list this setting.
    #[error("the allowlist entry for {} does not allow the setting {}", Quoted(.path), Quoted(.name))]
    SettingName {
        /// The program.
        path: String,
        /// The setting.
        name: String,
    },

    /// No entry names this program.
    #[error("plugin path {} is not permitted by the credential plugin allowlist", Quoted(.path))]
    NotListed {
        /// The resolved path, ready to be written into an allowlist.
        path: String,
    },

    /// Only listed programs may run for this purpose, and there is no allowlist.
    // C744
    #[error("plugin path {} is not permitted: it runs only if a credential plugin allowlist names it", Quoted(.path))]
    MustBeListed {
        /// The resolved path, or the command if it cannot be resolved.
        path: String,
    },

    /// The program is listed, but not with these arguments.
    #[error("plugin path {} is in the credential plugin allowlist, but not with these arguments", Quoted(.path))]
    Arguments {
        /// The resolved path.
        path: String,
    },

    /// The program is listed, but its entry does not name all variables that the configuration sets.
    // C741
    #[error("{0}")]
    Variables(Box<DeniedVariables>),

    /// The program is listed with another digest.
    #[error("plugin path {} is in the credential plugin allowlist, but the file's sha256 is {actual}", Quoted(.path))]
    Digest {
        /// The resolved path.
        path: String,
        /// The digest of the file.
        actual: crate::policy::Sha256Digest,
    },

    /// The program has the listed digest, but another one could run in its place.
    // C743
    #[error(
        "plugin path {} has the sha256 of the credential plugin allowlist, but its interpreter opens it again by its path, \
         where others than root can replace it (they can change {}); move it to a directory that only root can change, \
         or remove `sha256` from the entry",
        Quoted(.path), Quoted(.replaceable)
    )]
    Replaceable {
        /// The resolved path.
        path: String,
        /// The file or directory on the way to it that others than root can change.
        replaceable: String,
    },

    /// The program is listed with a digest, and the file cannot be read.
    #[error("plugin path {} cannot be read to compare its sha256 with the credential plugin allowlist", Quoted(.path))]
    Unreadable {
        /// The resolved path.
        path: String,
        /// I/O error reported by the operating system.
        source: Arc<io::Error>,
    },
}

impl PolicyDenial {
    /// The line to write in the allowlist entry, if one line would allow the command.
    pub fn line_to_write(&self) -> Option<String> {
        match self {
            PolicyDenial::Variables(denied) => Some(EnvNames(&denied.allowed, &denied.names).to_string()),
            PolicyDenial::Digest { actual, .. } => Some(format!("sha256: {actual}")),
            _ => None,
        }
    }
}

/// Variables of a configuration that an allowlist entry does not name.
// C741
#[derive(Clone, Debug, Error)]
#[error(
    "plugin path {} is in the credential plugin allowlist, but its entry does not allow the environment variable{} {}; \
     to let every kubeconfig set {}, write in the entry `command: {entry}`{}: {}",
    Quoted(.path), if .names.len() == 1 { "" } else { "s" }, Names(.names),
    if .names.len() == 1 { "it" } else { "them" }, InFile(.file.as_deref()), EnvNames(.allowed, .names)
)]
pub struct DeniedVariables {
    /// The resolved path.
    pub path: String,
    /// The denied names, each once.
    pub names: Vec<String>,
    /// The entry's command.
    pub entry: String,
    /// The names that the entry allows.
    pub allowed: Vec<String>,
    /// The file of the allowlist, if it was read from one.
    pub file: Option<String>,
}

/// An invalid policy. Messages are client-go's.
// C720
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// The policy name is unknown.
    #[error("unknown plugin policy: {}", Quoted(.0))]
    UnknownPolicy(String),
    /// An allowlist beside a policy that does not use it.
    #[error("misconfigured credential plugin allowlist: plugin policy is {} but allowlist is non-nil", Quoted(.0))]
    UnusedAllowlist(String),
    /// The policy is `Allowlist` and the list is missing.
    #[error("credential plugin policy set to \"Allowlist\", but allowlist is unspecified")]
    NoAllowlist,
    /// The policy is `Allowlist` and the list is empty.
    #[error(
        "credential plugin policy set to \"Allowlist\", but allowlist is empty; use \"DenyAll\" policy instead"
    )]
    EmptyAllowlist,
    /// An entry has no command.
    #[error("misconfigured credential plugin allowlist: empty allowlist entry #{0}")]
    EmptyEntry(usize),
    /// An entry's path is not in its cleaned form.
    #[error("non-normalized file path: {} vs {}", Quoted(.written), Quoted(.cleaned))]
    NotNormalized {
        /// As written.
        written: String,
        /// The cleaned form.
        cleaned: String,
    },
    /// An entry allows a variable whose name is empty or contains `=` or NUL.
    #[error("invalid environment variable name {} in `envNames` of allowlist entry #{entry}", Quoted(.name))]
    VariableName {
        /// The number of the entry, from 1.
        entry: usize,
        /// The name.
        name: String,
    },
    /// A digest that is not 64 hexadecimal digits.
    #[error("`{0}` is not a sha256 digest: expected 64 hexadecimal digits")]
    Digest(String),
}

/// Why a run returned no result.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The program does not exist. Counts as not found.
    // C321
    #[error("`{}` does not exist", .program.display())]
    NotFound {
        /// The resolved path.
        program: PathBuf,
    },

    /// The program exists, but its interpreter or dynamic loader does not.
    #[error("`{}` exists, but its interpreter does not", .program.display())]
    InterpreterNotFound {
        /// The resolved path.
        program: PathBuf,
    },

    /// The operating system could not start it: not executable, bad format, too many processes, ….
    // C321, C324
    #[error("failed to start `{}`", .program.display())]
    Start {
        /// The resolved path.
        program: PathBuf,
        /// I/O error reported by the operating system.
        source: Arc<io::Error>,
    },

    /// The program exceeded its time limit and was terminated.
    // C306
    #[error("`{}` timed out after {after:?}", .program.display())]
    TimedOut {
        /// The resolved path.
        program: PathBuf,
        /// The limit.
        after: Duration,
        /// The tail of stderr, if it was captured.
        stderr: Option<StderrTail>,
    },

    /// The program printed more than the cap and was killed.
    // C305
    #[error("`{}` printed more than {cap} bytes", .program.display())]
    StdoutTooLarge {
        /// The resolved path.
        program: PathBuf,
        /// The cap.
        cap: usize,
        /// The tail of stderr, if it was captured.
        stderr: Option<StderrTail>,
    },

    /// The program failed. Its stdout is dropped: it may contain a token. Returned only by
    /// [`Completed::require_success`](crate::Completed::require_success).
    #[error("`{}` failed with {exit}", .program.display())]
    Failed {
        /// The resolved path.
        program: PathBuf,
        /// The exit status.
        exit: Exit,
        /// The tail of stderr, if it was captured.
        stderr: Option<StderrTail>,
    },

    /// The program exited, but its exit status is lost: SIGCHLD is ignored, or another part of this process reaps every
    /// child.
    #[error("failed to get the exit status of `{}`: another part of this process reaped it", .program.display())]
    StatusLost {
        /// The resolved path.
        program: PathBuf,
        /// I/O error reported by the operating system.
        source: Arc<io::Error>,
    },

    /// The worker thread of [`start`](crate::start) panicked or could not be started.
    #[error("failed to run `{}`", .program.display())]
    Join {
        /// The resolved path.
        program: PathBuf,
        /// The cause.
        source: JoinError,
    },

    /// I/O with the program failed.
    #[error("I/O error while running `{}`", .program.display())]
    Io {
        /// The resolved path.
        program: PathBuf,
        /// I/O error reported by the operating system.
        source: Arc<io::Error>,
    },
}

impl RunError {
    /// The tail of stderr, if it was captured.
    // I98
    pub fn stderr(&self) -> Option<&StderrTail> {
        match self {
            RunError::TimedOut { stderr, .. }
            | RunError::StdoutTooLarge { stderr, .. }
            | RunError::Failed { stderr, .. } => stderr.as_ref(),
            _ => None,
        }
    }

    /// Whether the program does not exist, so that an install hint helps.
    // C321
    pub fn is_not_found(&self) -> bool {
        matches!(self, RunError::NotFound { .. })
    }
}

/// Names for a message: `A`, `B`.
struct Names<'a>(&'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().enumerate() {
            write!(f, "{}`{}`", if index == 0 { "" } else { ", " }, name.escape_debug())?;
        }
        Ok(())
    }
}

/// The file of an allowlist, if it is known.
struct InFile<'a>(Option<&'a str>);

impl fmt::Display for InFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |path| write!(f, " of {}", Quoted(path)))
    }
}

/// The line of an allowlist entry that allows both lists of names. Quoted names are valid YAML, whatever they contain.
struct EnvNames<'a>(&'a [String], &'a [String]);

impl fmt::Display for EnvNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("envNames: [")?;
        for (index, name) in self.0.iter().chain(self.1).enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { ", " }, Quoted(name))?;
        }
        f.write_str("]")
    }
}

/// Displays a relative directory; the empty one is `.`.
struct DirectoryDisplay<'a>(&'a Path);

impl fmt::Display for DirectoryDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.as_os_str().is_empty() { f.write_str(".") } else { self.0.display().fmt(f) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_like_go() {
        for (text, quoted) in [
            ("plain path", "\"plain path\""),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("\n\t\r\u{7}\u{1}\u{7f}\0", r#""\n\t\r\a\x01\x7f\x00""#),
            ("it's größe 本", "\"it's größe 本\""),
            ("\u{85}\u{200b}\u{e0001}", r#""\u0085\u200b\U000e0001""#),
        ] {
            assert_eq!(Quoted(text).to_string(), quoted);
        }
    }
}
