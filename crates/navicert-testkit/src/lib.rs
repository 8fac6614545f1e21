//! Test support for the workspace: real servers on loopback and files in temporary directories.
//!
//! ```text
//! Ca ──issues──▶ Identity ──▶ HttpServer ◀── HttpClient, RawClient     SoftHsm (PKCS#11 keys)
//!                             ├─ Issuer     (SigningKey ▶ tokens)       TestContext, transcript (the CLI as text)
//!                             └─ ApiServer  (Watch, Tunnel)             vectors (recorded decisions), Canaries (leaked secrets)
//!                RawServer (any bytes)                                 FakeExecPlugin (an exec plugin that the test controls)
//!                ConnectionFlood (ten thousand connections), Load (steady load during faults), Victim (a user
//!                during an attack)
//!                openid_provider (oidc-provider, dex), FaultProxy (delays and breaks the keys of one)
//!                cloud (Amazon, Google, Azure: services that issue registry passwords)
//! ```
//!
//! Servers listen on `127.0.0.1`, each in a thread of its own, and stop when dropped. Nothing sleeps: a slow response
//! waits at a [`Gate`] that the test opens, and a test waits for the event itself, with a limit ([`wait::LIMIT`]). The
//! waits are async; [`wait::blocking`] serves synchronous tests. Failures panic: this crate is test support, and a panic
//! is how a test fails.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    reason = "test support: a panic with a clear sentence is how it fails a test"
)]

pub mod answer;
pub mod api_server;
mod background;
pub mod bare_server;
pub mod ca;
pub mod canary;
pub mod cloud;
pub mod cluster;
pub mod connection_flood;
mod environment;
pub mod fake_exec_plugin;
pub mod fault_proxy;
pub mod gate;
pub mod h2load;
pub mod http_client;
pub mod http_server;
pub mod image_registry;
pub mod issuer;
pub mod json_schema;
pub mod jws;
pub mod load;
pub mod openid_provider;
pub mod output_schema;
mod platform;
pub mod process;
pub mod program;
mod projected_volume;
pub mod raw;
pub mod report;
pub mod soak;
pub mod softhsm;
mod spdy;
pub mod tools;
pub mod tpm;
pub mod transcript;
pub mod tunnel;
pub mod vectors;
pub mod victim;
pub mod wait;
pub mod watch;

pub use answer::{Answer, Cut};
pub use api_server::{ApiServer, Pod};
pub use ca::{Ca, Identity, KeyKind};
pub use canary::Canaries;
pub use connection_flood::ConnectionFlood;
pub use fake_exec_plugin::FakeExecPlugin;
pub use fault_proxy::FaultProxy;
pub use gate::Gate;
pub use h2load::H2load;
pub use http_client::HttpClient;
pub use http_server::{ClientAuth, HttpServer};
pub use image_registry::ImageRegistry;
pub use issuer::Issuer;
pub use jws::{Algorithm, SigningKey};
pub use load::Load;
pub use program::Program;
pub use projected_volume::ProjectedVolume;
pub use raw::{RawClient, RawServer, Step};
pub use softhsm::SoftHsm;
pub use tpm::SoftTpm;
pub use transcript::TestContext;
pub use tunnel::Tunnel;
pub use victim::Victim;
pub use watch::Watch;
