#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
//!
//! # Keys
//!
//! Software keys exist for tests and demonstrations.
//!
//! ```text
//! pkcs11:… URI ──▶ pkcs11 (module, session, sign) ─┐
//! another program ──▶ remote (exec, socket) ───────┼──▶ dyn Key ──with its chain──▶ SigningIdentity ──▶ tls (rustls)
//! PEM ──▶ software ────────────────────────────────┘                               (chain and key match;
//!                                                                                   signatures are checked)
//! ```
//!
//! [`Key::sign`] blocks: a device may wait for a touch. rustls signs synchronously too, so a handshake with a
//! [`SigningIdentity`] must run on a thread that may block. The client's transport uses the runtime's blocking pool, one
//! handshake at a time per identity.
//!
//! Without the default feature `pkcs11`, the crate opens no token itself and does not depend on `cryptoki`; the protocol of external
//! signers ([`remote`]) and TLS remain.
//!
//! This crate does no HTTP. It starts programs through `navicert-plugin`, wraps PINs in [`Secret`], and
//! is the only crate that loads a shared library.
// C843

pub mod certificate_request;
mod der;
pub mod error;
pub mod identity;
pub mod key;
pub mod pin;
pub mod pkcs11;
#[cfg(feature = "pkcs11")]
pub mod program;
pub mod public_key;
pub mod remote;
pub mod report;
pub mod scheme;
pub mod software;
pub mod tls;

#[cfg(any(test, feature = "test-util"))]
pub mod contract;

pub use error::SignError;
pub use identity::{IdentityError, SigningIdentity};
pub use key::Key;
pub use public_key::PublicKey;
pub use scheme::{Hash, Input, KeyAlgorithm, Scheme};
pub use software::SoftwareKey;

pub use navicert_types::{Secret, Timestamp};
pub use rustls;
pub use rustls_pki_types as pki_types;
