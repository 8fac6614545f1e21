//! Who is this token? Structured authentication as kube-apiserver decides it, and safer.
//!
//! An `AuthenticationConfiguration` is loaded, validated and compiled once; then a token goes through the stages
//! below, each of which only the one before it can lead to. Nothing here opens a socket or reads a clock.
//!
//! ```text
//! text ──config::load──▶ types ──config::validate──▶ Compiled ──▶ Authenticators
//!
//! token ──jwt::compact──▶ RawToken ──jwt::claims──▶ unverified claims ──issuers──▶ the one authenticator
//!   ──jwt::claims──▶ types, audience, times ──jwt::header──▶ algorithm ──jwks──▶ keys ──jwt::signature──▶ VerifiedClaims
//!   ──mapping──▶ User, rules ──▶ Outcome: Authenticated, NoOpinion or Rejected
//! ```

pub mod authenticator;
pub mod batch;
pub mod config;
pub mod explain;
mod flights;
mod issuers;
mod json;
pub mod jwks;
pub mod jwt;
pub mod live;
pub mod mapping;
pub mod metrics;
pub mod outcome;
pub mod profile;
pub mod revocation;
pub mod suite;
pub mod token_cache;

pub use authenticator::{Authenticators, Question};
pub use live::{Judgement, Live};

pub use mapping::{CREDENTIAL_ID, User};
pub use outcome::{NoOpinion, Outcome, Refusal, Rejection};
pub use profile::{Profile, Rule};
