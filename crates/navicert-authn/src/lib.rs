//! Kubernetes structured authentication (`AuthenticationConfiguration`): decides as kube-apiserver does, with optional
//! hardening.
//!
//! An `AuthenticationConfiguration` is loaded, validated and compiled once; then each token passes the stages below, each
//! of which takes the result of the one before it. Nothing here opens a socket or reads a clock.
//!
//! ```text
//! text ──config::load──▶ types ──config::validate──▶ CompiledConfig ──▶ Authenticators
//!
//! token ──jwt::compact──▶ RawToken ──jwt::claims──▶ unverified claims ──issuers──▶ the issuer's authenticator
//!   ──jwt::claims──▶ types, audience, times ──jwt::header──▶ algorithm ──jwks──▶ keys ──jwt::signature──▶ VerifiedClaims
//!   ──mapping──▶ AuthenticatedUser, rules ──▶ AuthnOutcome: Authenticated, NoOpinion or Rejected
//! ```

pub mod authenticator;
pub mod batch;
pub mod config;
mod deadlines;
mod decision;
mod decision_flights;
pub mod explain;
mod issuers;
pub mod jwks;
pub mod jwt;
mod mapping;
pub mod metrics;
pub mod model;
pub mod profile;
pub mod reloadable;
pub mod report;
pub mod revocation;
pub mod suite;
pub mod token_cache;
mod verifier;

pub use authenticator::Authenticators;
pub use deadlines::Deadlines;
pub use decision::AuthnDecision;
pub use reloadable::ReloadableAuthenticator;

pub use model::outcome::{self, AuthnOutcome, NoOpinion, Refusal, Rejection};
pub use model::{AuthenticatedUser, AuthnRequest, CREDENTIAL_ID};
pub use profile::{AuthnProfile, Hardening};
