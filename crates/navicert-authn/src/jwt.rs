//! A token's text and what can be said of it before and after its signature is checked:
//! `compact` (text) → `claims` (unverified: for routing and cheap checks) → `header` → `signature` → [`VerifiedClaims`].

pub(crate) mod algorithm;
pub(crate) mod claims;
pub(crate) mod compact;
pub(crate) mod header;
mod rare_rsa;
pub(crate) mod signature;

pub use algorithm::{Algorithm, Algorithms};
pub use claims::VerifiedClaims;
