#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
//!
//! # Stages
//!
//! No other crate of navicert starts processes, and this crate knows nothing about what a program is for.
//!
//! ```text
//! Command ──policy──▶ Permitted<Command> ──runner──▶ Completed | RunError
//! (requested)         (resolved, checked,            (exit status, stdout, tail of stderr)
//!                      opened)
//!
//! many callers ──single_flight──▶ one run ──▶ expiring_cache (on success) | backoff (on failure)
//! ```
//!
//! [`keeper`] does the same across processes: it keeps the output of a program in memory between runs.
//!
//! The core is blocking and needs no async runtime. [`start`] and [`SingleFlight`] run a command on its own thread and
//! return a [`Waiter`], which is a runtime-independent future and also supports blocking.
//!
//! Time comes from a [`Clock`](navicert_types::Clock), the environment from an [`Environment`]: nothing here reads
//! them from the process.

mod backoff;
pub mod command;
mod completion;
mod error;
mod expiring_cache;
pub mod foreground;
#[cfg(unix)]
pub mod keeper;
mod policy;
mod process;
mod repeated_stderr;
pub mod resolve;
mod runner;
mod session;
mod single_flight;
mod terminal;
mod workers;

#[cfg(any(test, feature = "test-util"))]
pub mod contract;
#[cfg(any(test, feature = "test-util"))]
mod scripted;

#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as platform;

pub use backoff::Backoff;
pub use command::{Command, Environment, ProcessGroup, Stderr, StderrReceiver, Stdin, StdoutReceiver};
pub use completion::{JoinError, Waiter, detach};
pub use error::{
    DeniedVariables, MalformedCommand, PermitError, PolicyDenial, PolicyError, ResolveError, RunError,
};
pub use expiring_cache::{CacheHit, ExpiringCache, Generation};
pub use navicert_types::backoff::BackoffSettings;
pub use policy::{Allowlist, AllowlistEntry, Permitted, Policy, Sha256Digest};
pub use process::ProcessRunner;
pub use repeated_stderr::RepeatedStderrFilter;
pub use runner::{Completed, Exit, Runner, StderrTail, start};
#[cfg(any(test, feature = "test-util"))]
pub use scripted::{RunGate, Script, ScriptedRunner};
pub use session::Session;
pub use single_flight::{FlightError, FlightResult, SingleFlight};
pub use terminal::TerminalLock;
