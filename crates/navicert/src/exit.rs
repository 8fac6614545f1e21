//! The exit codes: stable, documented in `navicert --help` and docs/exit-codes.md, decided once for every verb.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Yes, or done.
    Done,
    /// No: rejected, lint errors, mismatch.
    No,
    /// The command line was not understood (clap uses the same number).
    Usage,
    /// A file given to us is not what it should be.
    BadInput,
    /// A peer could not be reached.
    Unreachable,
    /// A policy says no.
    Denied,
    /// A bug of ours.
    Bug,
    /// As the command that `run` ran.
    Child(u8),
}

impl Exit {
    /// What shells say of a command that is not there, and of one that is and cannot be executed.
    pub(crate) const NOT_FOUND: Exit = Exit::Child(127);
    pub(crate) const NOT_EXECUTABLE: Exit = Exit::Child(126);

    /// The number a shell sees. A larger one is worse.
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

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.number())
    }
}

/// The table shown at the end of `--help`. The codes 4 and 5 belong to verbs that talk to a peer or run a plugin.
pub(crate) const HELP: &str = "\
Exit codes:
  0   yes, or done
  1   no: rejected, lint errors, mismatch
  2   usage: the command line was not understood
  3   bad input file
  4   a peer could not be reached
  5   denied by policy
  70  a bug in navicert";
