//! The exit codes: stable, documented in `navicert --help` and docs/exit-codes.md, decided once for every verb.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Yes, or done.
    Done = 0,
    /// No: rejected, lint errors, mismatch.
    No = 1,
    /// The command line was not understood (clap uses the same number).
    Usage = 2,
    /// A file given to us is not what it should be.
    BadInput = 3,
    /// A peer could not be reached.
    Unreachable = 4,
    /// A policy forbids it.
    Denied = 5,
    /// A bug of ours.
    Bug = 70,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
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
