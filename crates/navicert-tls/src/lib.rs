#![doc = include_str!("../README.md")]
//!
//! # Differences from webpki
//!
//! [`ServerVerifier`] is webpki with two differences, both of which Go's verifier has. A self-signed certificate that is
//! itself trusted, as `openssl req -x509` makes it, is accepted as the certificate of a server. And what a trusted
//! certificate says about itself counts: its validity, its key usages, its path length and whether it is a certificate
//! authority at all.

mod any_certificate;
mod certificate;
pub mod der;
mod handshake_signatures;
mod roots;
mod verifier;

pub use any_certificate::AnyCertificate;
pub use roots::TrustedRoots;
pub use verifier::{RootProblem, ServerVerifier};

#[cfg(test)]
mod tests;
