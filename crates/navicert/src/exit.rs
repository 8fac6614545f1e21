//! Exit codes: stable, the same for every verb, documented in `navicert --help` and docs/exit-codes.md.

use std::process::ExitCode;

use navicert_client::ConfigErrorClass;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Done,
    /// Failure: rejected, not valid, mismatch, address in use.
    No,
    /// Usage error; clap uses the same number.
    Usage,
    /// A configuration or input file is missing or invalid.
    BadInput,
    /// A peer is unreachable.
    Unreachable,
    /// Denied by a policy.
    Denied,
    /// Internal error.
    Bug,
    /// The exit code of the command started by `run`, or of the plugin of `exec-plugin keep`.
    Child(u8),
}

impl Exit {
    /// The exit codes that shells use for a command that is not found and for one that is not executable.
    pub(crate) const NOT_FOUND: Exit = Exit::Child(127);
    pub(crate) const NOT_EXECUTABLE: Exit = Exit::Child(126);

    /// The numeric exit code.
    pub(crate) fn number(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::No => 1,
            Exit::Usage => 2,
            Exit::BadInput => 3,
            Exit::Unreachable => 4,
            Exit::Denied => 5,
            Exit::Bug => 70,
            Exit::Child(code) => code,
        }
    }
}

/// The same for every verb that needs a client.
impl From<ConfigErrorClass> for Exit {
    fn from(class: ConfigErrorClass) -> Exit {
        match class {
            ConfigErrorClass::PolicyDenied => Exit::Denied,
            _ => Exit::BadInput,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.number())
    }
}

/// The table at the end of `--help`. Codes 4 and 5 come only from verbs that connect to a peer or run a plugin.
pub(crate) const HELP: &str = "\
Exit codes:
  0   success
  1   failure: rejected, not valid, mismatch, address in use
  2   usage error
  3   invalid configuration or input file
  4   peer unreachable
  5   denied by policy
  70  internal error";
