//! Sockets, HTTP, long-running: what listens, and what fetches keys. It does not decide who a token is.
//!
//! ```text
//! listener ──▶ limits ──▶ forward ──▶ navicert-client's transport ──▶ API server
//! (TLS, HTTP)     │       (headers, streams, upgrades)
//!                 │          ▲ who may pass, and as whom: the caller's step
//!                 │       gateway (one user's own commands)
//!                 └─────▶ webhook ──▶ navicert_authn::Live       whose is this token?
//!
//! serving: one server's life, with health, metrics, audit, tls (files) beside it
//!
//! navicert_authn::jwks::Keeper ──Fetch──▶ fetch::HttpFetch ──▶ navicert_client::transport (TLS, proxies, pools)
//! navicert_authn::Live ◀──tend── keeping ◀── watch (files), timer
//! ```
//!
//! [`problem`] is the one map from what went wrong to what a client may read.

pub mod audit;
pub mod bearer;
pub mod callers;
pub mod descriptors;
pub mod fetch;
pub mod files;
pub mod forward;
pub mod gateway;
pub mod health;
pub mod keeping;
pub mod limits;
pub mod listener;
pub mod metrics;
pub mod problem;
pub mod proxy;
pub mod serving;
pub mod settings;
pub mod tls;
pub mod token_review_client;
pub mod watch;
pub mod webhook;
pub mod who;

pub use forward::{Forwarder, Identify, Identity, ReplyBody};
pub use limits::Limits;
pub use problem::Problem;
