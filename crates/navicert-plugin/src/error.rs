//! What can go wrong, one variant per thing a caller can do something about.
//!
//! Nothing here ever holds the child's stdout: it may be a token. What the child said on stderr is kept apart, in
//! [`StderrTail`], and is in no message.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::completion::Lost;
use crate::runner::{Exit, StderrTail};

/// Why a command as configured is no program that can be run (C320, C321).
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// A bare name that no directory of `PATH` has.
    #[error("`{command}` was not found in PATH")]
    NotInPath {
        /// The name searched for.
        command: String,
    },

    /// `PATH` leads to a file relative to the current directory, from where nothing is run.
    #[error("`{command}` was found only relative to the current directory (PATH has `{}`), where nothing is run from", Dot(.directory))]
    InCurrentDirectory {
        /// The name searched for.
        command: String,
        /// The relative directory in `PATH`.
        directory: PathBuf,
    },

    /// A command that names a place where nothing is. Counts as not found (C321).
    #[error("`{}` does not exist", .path.display())]
    NoSuchFile {
        /// The absolute path.
        path: PathBuf,
    },

    /// Something is there, but not a file this user may execute.
    #[error("`{}` cannot be executed", .path.display())]
    NotExecutable {
        /// The path found.
        path: PathBuf,
        /// The operating system's word.
        source: Arc<io::Error>,
    },
}

impl ResolveError {
    /// Whether an install hint would help: there is no such program (C320; C321 as decided).
    pub fn is_not_found(&self) -> bool {
        matches!(self, ResolveError::NotInPath { .. } | ResolveError::NoSuchFile { .. })
    }
}

/// A command that the operating system could not pass on as written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MalformedCommand {
    /// There is no command.
    #[error("the command is empty")]
    EmptyProgram,
    /// The command has a NUL byte in it.
    #[error("the command contains a NUL byte")]
    NulInProgram,
    /// An argument has a NUL byte in it.
    #[error("an argument contains a NUL byte")]
    NulInArgument,
    /// An empty name, or one with `=` or NUL in it.
    #[error("`{name}` is not the name of an environment variable")]
    VariableName {
        /// The name as given.
        name: String,
    },
    /// A value has a NUL byte in it.
    #[error("the environment variable `{name}` contains a NUL byte")]
    NulInVariable {
        /// The name of the variable.
        name: String,
    },
}

/// Why [`Policy::permit`](crate::Policy::permit) gave no permission.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum PermitError {
    /// The command can be passed to no program.
    #[error(transparent)]
    Malformed(#[from] MalformedCommand),
    /// The policy says no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The policy does not object, but there is no such program.
    #[error(transparent)]
    Unresolved(#[from] ResolveError),
}

/// What a policy says no with. The texts are upstream's where it has one (C730, C731).
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No plugin runs at all.
    #[error("plugin {} not allowed: policy set to \"DenyAll\"", Quoted(.command))]
    DenyAll {
        /// The cleaned configured command.
        command: String,
    },

    /// An allowlist decides, and the command leads to no program that could be compared with it.
    #[error("plugin path {} cannot be resolved for credential plugin allowlist check", Quoted(.path))]
    CannotResolve {
        /// The cleaned configured command.
        path: String,
        /// Why.
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

    /// The entry for this program lists the settings it may have, and this one is not among them.
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

    /// Only listed programs may run for this purpose, and no list was given (C744).
    #[error("plugin path {} is not permitted: it runs only if a credential plugin allowlist names it", Quoted(.path))]
    MustBeListed {
        /// The resolved path, or the command where it leads to no program.
        path: String,
    },

    /// The program is listed, but not with these arguments.
    #[error("plugin path {} is in the credential plugin allowlist, but not with these arguments", Quoted(.path))]
    Arguments {
        /// The resolved path.
        path: String,
    },

    /// The program is listed, but the variable could make it run something else (C741).
    #[error("plugin path {} is in the credential plugin allowlist, but may not be given the environment variable `{name}`", Quoted(.path))]
    Variable {
        /// The resolved path.
        path: String,
        /// The variable's name.
        name: String,
    },

    /// The program is listed, but the file is another one.
    #[error("plugin path {} is in the credential plugin allowlist, but the file's sha256 is {actual}", Quoted(.path))]
    Digest {
        /// The resolved path.
        path: String,
        /// What the file has.
        actual: crate::policy::Sha256Digest,
    },

    /// The program is listed with a digest, and the file cannot be read to compare it.
    #[error("plugin path {} cannot be read to compare its sha256 with the credential plugin allowlist", Quoted(.path))]
    Unreadable {
        /// The resolved path.
        path: String,
        /// The operating system's word.
        source: Arc<io::Error>,
    },
}

/// A policy that makes no sense (C720; the texts are upstream's).
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// The policy's name is none of the three.
    #[error("unknown plugin policy: {}", Quoted(.0))]
    UnknownPolicy(String),
    /// An allowlist beside a policy that does not use it.
    #[error("misconfigured credential plugin allowlist: plugin policy is {} but allowlist is non-nil", Quoted(.0))]
    UnusedAllowlist(String),
    /// The policy is `Allowlist` and there is none.
    #[error("credential plugin policy set to \"Allowlist\", but allowlist is unspecified")]
    NoAllowlist,
    /// The policy is `Allowlist` and it is empty.
    #[error(
        "credential plugin policy set to \"Allowlist\", but allowlist is empty; use \"DenyAll\" policy instead"
    )]
    EmptyAllowlist,
    /// An entry names no command.
    #[error("misconfigured credential plugin allowlist: empty allowlist entry #{0}")]
    EmptyEntry(usize),
    /// An entry's command is written in a roundabout way.
    #[error("non-normalized file path: {} vs {}", Quoted(.written), Quoted(.cleaned))]
    NotNormalized {
        /// As written.
        written: String,
        /// As it should be.
        cleaned: String,
    },
    /// A digest that is not 64 hexadecimal digits.
    #[error("`{0}` is not a sha256 digest: 64 hexadecimal digits are expected")]
    Digest(String),
}

/// Why a run gave no result.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The program is not there (any more). Counts as not found (C321).
    #[error("`{}` does not exist", .program.display())]
    NotFound {
        /// The resolved path.
        program: PathBuf,
    },

    /// The program is there, but what it needs to start is not: the interpreter of its first line, or its loader.
    #[error("`{}` exists, but its interpreter does not", .program.display())]
    InterpreterNotFound {
        /// The resolved path.
        program: PathBuf,
    },

    /// The operating system would not start it: not executable, bad format, too many processes, … (C321, C324).
    #[error("`{}` could not be started", .program.display())]
    Start {
        /// The resolved path.
        program: PathBuf,
        /// The operating system's word.
        source: Arc<io::Error>,
    },

    /// It ran past its limit and was ended (C306).
    #[error("`{}` timed out after {after:?}", .program.display())]
    TimedOut {
        /// The resolved path.
        program: PathBuf,
        /// The limit.
        after: Duration,
        /// What it had said on stderr, if that was kept.
        stderr: Option<StderrTail>,
    },

    /// It printed more than may be read, and was killed (C305).
    #[error("`{}` printed more than {cap} bytes", .program.display())]
    StdoutTooLarge {
        /// The resolved path.
        program: PathBuf,
        /// The most that is accepted.
        cap: usize,
        /// What it had said on stderr, if that was kept.
        stderr: Option<StderrTail>,
    },

    /// It ended unsuccessfully. Its stdout is dropped: it may hold a token. From
    /// [`Completed::require_success`](crate::Completed::require_success) only.
    #[error("`{}` failed with {exit}", .program.display())]
    Failed {
        /// The resolved path.
        program: PathBuf,
        /// How it ended.
        exit: Exit,
        /// What it had said on stderr, if that was kept.
        stderr: Option<StderrTail>,
    },

    /// It ended, and somebody else in this process took its exit status: SIGCHLD is ignored, or another part of the
    /// program waits for every child.
    #[error("the exit status of `{}` was taken by another part of this process", .program.display())]
    StatusLost {
        /// The resolved path.
        program: PathBuf,
        /// The operating system's word.
        source: Arc<io::Error>,
    },

    /// Nobody could run it: see [`start`](crate::start).
    #[error("the run of `{}` was lost", .program.display())]
    Lost {
        /// The resolved path.
        program: PathBuf,
        /// What happened to it.
        source: Lost,
    },

    /// Reading from it failed half-way.
    #[error("lost contact with `{}`", .program.display())]
    Contact {
        /// The resolved path.
        program: PathBuf,
        /// The operating system's word.
        source: Arc<io::Error>,
    },
}

impl RunError {
    /// What the child said on stderr, where it was kept (I98).
    pub fn stderr(&self) -> Option<&StderrTail> {
        match self {
            RunError::TimedOut { stderr, .. }
            | RunError::StdoutTooLarge { stderr, .. }
            | RunError::Failed { stderr, .. } => stderr.as_ref(),
            _ => None,
        }
    }

    /// Whether an install hint would help: there is no such program (C321 as decided).
    pub fn is_not_found(&self) -> bool {
        matches!(self, RunError::NotFound { .. })
    }
}

/// Text in double quotes, escaped as Go's `%q` does it: these messages are searched for by users of kubectl.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                '\u{7}' => f.write_str("\\a")?,
                '\u{8}' => f.write_str("\\b")?,
                '\u{b}' => f.write_str("\\v")?,
                '\u{c}' => f.write_str("\\f")?,
                ' '..='~' => write!(f, "{character}")?,
                '\0'..' ' | '\u{7f}' => write!(f, "\\x{:02x}", u32::from(character))?,
                // Rust and Go agree closely on what can be printed; both escape the rest.
                _ if character.escape_debug().len() == 1 => write!(f, "{character}")?,
                '\u{80}'..='\u{ffff}' => write!(f, "\\u{:04x}", u32::from(character))?,
                _ => write!(f, "\\U{:08x}", u32::from(character))?,
            }
        }
        f.write_str("\"")
    }
}

/// A relative directory as a person would write it: the empty one is `.`.
struct Dot<'a>(&'a Path);

impl fmt::Display for Dot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.as_os_str().is_empty() { f.write_str(".") } else { self.0.display().fmt(f) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_is_gos() {
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
