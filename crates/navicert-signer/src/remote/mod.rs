//! Keys in another program: the external signer protocol, both sides of it.
//!
//! ```text
//! client: exec (one process per question) ─┐                  ┌─ answer ──▶ a key ring (pkcs11, or a test's own)
//!         socket (a signer that stays) ────┴── wire ── … ─────┤
//!                                                             └─ server (many questions, one login)
//! ```

mod answer;
mod exec;
mod server;
mod socket;
pub mod wire;

pub use answer::{KeyRing, answer, answer_v1alpha1};
pub use exec::{ExecSigner, Limits, Protocol, Settings};
pub use server::Server;
pub use socket::SocketSigner;
