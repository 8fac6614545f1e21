//! Implementations of rustls traits.
//!
//! rustls calls [`sign`](rustls::sign::Signer::sign) synchronously during the handshake. A device may wait until the user
//! touches it, so such a handshake must run on a thread that may block, never on a runtime's worker thread.
// C843

mod resolver;
mod signer;

pub use resolver::ClientCertificate;
pub(crate) use resolver::certified_key;
pub use signer::sign_error;
