//! Keys in another program: client and server of the external signer protocol.
//!
//! ```text
//! client: exec (one process per request) ──┐                  ┌─ request_handler ──▶ key store (PKCS#11, or a test's)
//!         session_runner (one process) ────┼── wire ── … ─────┤
//!         socket (a running server) ───────┘                  └─ server (many requests, one login)
//! ```

mod exec;
mod request_handler;
mod server;
mod session_runner;
mod socket;
pub mod wire;

pub use exec::{ExecSigner, ExecSignerSettings, SignerProtocol, SignerTimeouts};
#[cfg(feature = "pkcs11")]
pub(crate) use request_handler::error_message;
pub use request_handler::{KeyStore, handle_request, handle_v1alpha1_request};
pub use server::SignerServer;
#[cfg(feature = "pkcs11")]
pub(crate) use session_runner::SESSION_VARIABLE;
pub use session_runner::SessionRunner;
pub use socket::SocketSigner;
