//! Verifies the certificates of TLS servers: API servers, issuers, webhooks, proxies and registries.
//!
//! [`ServerVerifier`] is webpki with two differences, both of which Go's verifier has. A self-signed certificate that is
//! itself trusted, as `openssl req -x509` makes it, is accepted as the certificate of a server. And what a trusted
//! certificate says about itself counts: its validity, its key usages, its path length and whether it is a certificate
//! authority at all.
//!
//! ```
//! use std::sync::Arc;
//!
//! use navicert_tls::{ServerVerifier, TrustedRoots};
//!
//! # fn example(pem: &[u8]) -> Result<rustls::ClientConfig, rustls::Error> {
//! let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
//! let roots = Arc::new(TrustedRoots::from_pem(pem));
//! let verifier = Arc::new(ServerVerifier::new(roots, &provider));
//! let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
//! Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
//! # }
//! ```

mod any_certificate;
mod certificate;
pub mod der;
mod handshake_signatures;
pub mod pem;
mod roots;
mod verifier;

pub use any_certificate::AnyCertificate;
pub use roots::TrustedRoots;
pub use verifier::{RootProblem, ServerVerifier};

#[cfg(test)]
mod tests;
