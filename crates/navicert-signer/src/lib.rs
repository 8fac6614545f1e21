//! Keys that stay where they are: in a PKCS#11 token, in another program, or (for tests and demonstrations) in memory.
//!
//! ```text
//! pkcs11:… URI ──▶ pkcs11 (module, session, sign) ─┐
//! another program ──▶ remote (exec, socket) ───────┼──▶ dyn Key ──with its chain──▶ Identity ──▶ tls (rustls)
//! PEM ──▶ software ────────────────────────────────┘                               (chain and key match;
//!                                                                                   signatures are checked)
//! ```
//!
//! A [`Key`] signs and blocks while it does: a device may want a touch. rustls signs synchronously too, so whoever
//! shakes hands with an [`Identity`] does it on a thread that may block (client-credentials.md C843); the client's
//! transport uses the runtime's blocking pool, one handshake at a time for one identity.
//!
//! Nothing here speaks HTTP. Programs are started through `navicert-plugin`, PINs are [`Secret`](navicert_types::Secret)s,
//! and this is the only crate that loads a shared library.

mod der;
pub mod error;
pub mod identity;
pub mod key;
pub mod pin;
pub mod pkcs11;
pub mod program;
pub mod public_key;
pub mod remote;
pub mod scheme;
pub mod software;
pub mod tls;

#[cfg(any(test, feature = "test-util"))]
pub mod contract;

pub use error::SignError;
pub use identity::{Identity, IdentityError};
pub use key::Key;
pub use public_key::PublicKey;
pub use scheme::{Hash, Input, KeyAlgorithm, Scheme};
pub use software::SoftwareKey;
