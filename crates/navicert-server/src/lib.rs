#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! Token verification itself is in `navicert-authn`.
//!
//! ```text
//! listener ──▶ forward ──▶ navicert-client's transport ──▶ API server
//! (TLS, HTTP)  │  (headers, streams, upgrades; a seat of the user's share: fairness)
//!              │     ▲ Identify: authentication step of the proxy or the gateway
//!              │  gateway (one user's own commands)
//!              └─▶ webhook ──▶ navicert_authn::ReloadableAuthenticator
//!
//! startup: from files and settings to a running process; serving: start, drain and shutdown of one server, with health,
//! metrics, audit and TLS reload
//!
//! navicert_authn::jwks::JwksRefresher ──Fetch──▶ fetch::HttpFetch ──▶ navicert_client::transport (TLS, proxies, pools)
//! navicert_authn::ReloadableAuthenticator ◀── background_tasks ◀── watch (files), timer
//! ```
//!
//! [`Problem`] maps every failure to the response that a client receives.

pub mod audit;
pub mod background_tasks;
pub mod bearer;
pub mod client_auth;
pub mod confinement;
pub mod descriptors;
mod fairness;
pub mod fetch;
pub mod forward;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod gateway;
pub mod health;
mod limits;
pub mod listener;
pub mod memory;
pub mod metrics;
mod problem;
pub mod proxy;
pub mod reload;
pub mod report;
pub mod request_info;
pub mod serving;
mod setting_values;
pub mod settings;
pub mod startup;
pub mod tls;
pub mod token_review_client;
mod trace_context;
mod user_ref;
mod watch;
pub mod webhook;

pub use fairness::{FlowId, Overloaded};
pub use forward::{Forwarder, Identify, ReplyBody, UpstreamIdentity};
pub use limits::{ServerLimits, with_timeout};
pub use problem::Problem;
