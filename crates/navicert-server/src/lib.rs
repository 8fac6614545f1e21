//! Sockets, HTTP, long-running: what listens. It does not decide who a token is.
//!
//! ```text
//! listener ──▶ limits ──▶ forward ──▶ navicert-client's transport ──▶ API server
//! (TLS, HTTP)             (headers, streams, upgrades)
//!                            ▲ who may pass, and as whom: the caller's step
//!                         gateway (one user's own commands)
//! ```
//!
//! [`problem`] is the one map from what went wrong to what a client may read.

pub mod forward;
pub mod gateway;
pub mod limits;
pub mod listener;
pub mod problem;

pub use forward::{Forwarder, Identify, Identity, ReplyBody};
pub use limits::Limits;
pub use problem::Problem;
