//! Keys in another program: client and server of the external signer protocol.
//!
//! ```text
//! client: exec (one process per request) ──┐                  ┌─ request_handler ──▶ key store (PKCS#11, or a test's)
//!         socket (a running server) ───────┴── wire ── … ─────┤
//!                                                             └─ server (many requests, one login)
//! ```

mod exec;
mod request_handler;
mod server;
mod socket;
pub mod wire;

pub use exec::{ExecSigner, ExecSignerSettings, SignerProtocol, SignerTimeouts};
pub use request_handler::{KeyStore, handle_request, handle_v1alpha1_request};
pub use server::SignerServer;
pub use socket::SocketSigner;
