//! The only crate that starts someone else's program: credential plugins, image credential providers, signers. It does
//! not know what a program is for.
//!
//! ```text
//! Command ──policy──▶ Permitted<Command> ──runner──▶ Completed | RunError
//! (what is wanted)    (resolved, compared,           (exit, stdout, the end of stderr)
//!                      opened: what will run)
//!
//! many askers ──single_flight──▶ one run ──▶ expiring_cache (good answers) | backoff (bad ones)
//! ```
//!
//! The core blocks and needs no runtime, so that small programs stay small. [`start`] and [`SingleFlight`] put a run on
//! a thread of its own and give back a [`Waiter`], which is a future for any runtime and can also be blocked on.
//!
//! Time comes from a [`Clock`](navicert_types::Clock), the environment from an [`Environment`]: nothing here reads
//! either from the process.

pub mod backoff;
pub mod command;
pub mod completion;
pub mod error;
pub mod expiring_cache;
pub mod foreground;
pub mod policy;
pub mod process;
pub mod resolve;
pub mod runner;
pub mod single_flight;
pub mod terminal;
mod workers;

#[cfg(any(test, feature = "test-util"))]
pub mod contract;
#[cfg(any(test, feature = "test-util"))]
pub mod scripted;

#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as platform;

pub use backoff::{Backoff, BackoffSettings};
pub use command::{Command, Environment, ProcessGroup, Stderr, StderrReceiver, Stdin, StdoutReceiver};
pub use completion::{Lost, Waiter, detach};
pub use error::{MalformedCommand, PermitError, PolicyError, Refusal, ResolveError, RunError};
pub use expiring_cache::{ExpiringCache, Generation, Hit};
pub use policy::{Allowlist, AllowlistEntry, Permitted, Policy, Sha256Digest};
pub use process::ProcessRunner;
pub use runner::{Completed, Exit, Runner, StderrTail, start};
#[cfg(any(test, feature = "test-util"))]
pub use scripted::{Gate, Script, ScriptedRunner};
pub use single_flight::{FlightError, Landed, SingleFlight};
pub use terminal::TerminalTurn;
