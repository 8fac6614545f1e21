//! Test support for the workspace: real servers on loopback and files in temporary directories.
//!
//! ```text
//! cli       Program, TestContext and transcripts, Canaries (leaked secrets), tools of others
//! pki       Ca ──issues──▶ Identity; SigningKey ──signs──▶ tokens
//! net       HttpServer, HttpClient, RawServer (any bytes), Watch, Tunnel, Gate; ConnectionFlood, Load, Victim
//! devices   SoftHsm, SoftTpm
//! k8s       ApiServer, a real control plane, Kubeconfig, FakeExecPlugin, vectors (recorded decisions)
//! services  Issuer, LoginProvider, OpenID providers, Browser, FaultProxy, clouds, ImageRegistry
//! ```
//!
//! A new helper goes into the group of what it stands for. A group uses those above it, never one below; what every group
//! uses is in [`wait`], [`soak`] and [`report`]. The types that most tests name are re-exported here.
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

pub mod cli;
pub mod devices;
mod environment;
pub mod k8s;
pub mod net;
pub mod pki;
mod platform;
pub mod report;
pub mod services;
pub mod soak;
pub mod wait;

pub use cli::canary::Canaries;
pub use cli::program::Program;
pub use cli::transcript::TestContext;
pub use devices::softhsm::SoftHsm;
pub use devices::tpm::SoftTpm;
pub use k8s::api_server::{ApiServer, Pod};
pub use k8s::fake_exec_plugin::FakeExecPlugin;
pub use k8s::kubeconfig::Kubeconfig;
pub use k8s::projected_volume::ProjectedVolume;
pub use net::answer::{Answer, Cut};
pub use net::connect_proxy::ConnectProxy;
pub use net::connection_flood::ConnectionFlood;
pub use net::gate::Gate;
pub use net::h2load::H2load;
pub use net::http_client::HttpClient;
pub use net::http_server::{ClientAuth, HttpServer};
pub use net::load::Load;
pub use net::raw::{RawClient, RawServer, Step};
pub use net::tunnel::Tunnel;
pub use net::victim::Victim;
pub use net::watch::Watch;
pub use pki::ca::{Ca, Identity, KeyKind};
pub use pki::jws::{Algorithm, SigningKey};
pub use services::fault_proxy::FaultProxy;
pub use services::image_registry::ImageRegistry;
pub use services::issuer::Issuer;
pub use services::login_provider::LoginProvider;
