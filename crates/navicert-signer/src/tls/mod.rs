//! Everything that implements a trait of rustls, and nothing else does.
//!
//! rustls calls [`sign`](rustls::sign::Signer::sign) in the middle of a handshake and waits. With a device that can take
//! as long as a human takes to touch it, so a handshake with these is driven from a thread that may block (C843), never
//! from a reactor's.

mod resolver;
mod signer;

pub use resolver::ClientCertificate;
pub use signer::sign_error;
