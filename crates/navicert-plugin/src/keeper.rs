//! Keeps the output of programs in memory for later processes of the same user that would run the same program again.
//!
//! ```text
//! process ──CommandKey──▶ KeeperClient ──private socket──▶ KeeperServer (one process per user)
//!                            │  Kept: use the output              │
//!                            │  Run: run the program,             ├─ kept_outputs: key ▶ output, until when
//!                            │       then give its output         └─ one run per key, its result shared by all waiters
//!                            ▼
//!                         no answer: run the program as if there were no keeper
//! ```
//!
//! The keeper runs no program: each program runs in the process that wants its output, with that process's terminal and
//! environment. The keeper is started on demand, ends by itself, and writes nothing to disk.

mod client;
mod command_key;
mod kept_outputs;
mod server;
mod wire;

pub use client::{KeeperClient, KeeperReply, RunLease, StartKeeper};
pub use command_key::CommandKey;
pub use server::KeeperServer;
pub use wire::{KeeperRequest, MAX_KEPT_BYTES};
