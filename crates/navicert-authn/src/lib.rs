#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
//!
//! # Stages
//!
//! An `AuthenticationConfiguration` is loaded, validated and compiled once; then each token passes the stages below, each
//! of which takes the result of the one before it. Nothing here opens a socket; time comes from
//! a [`Clock`].
//!
//! ```text
//! text ──config::load──▶ types ──config::validate──▶ CompiledConfig ──▶ Authenticators
//!
//! token ──jwt::compact──▶ RawToken ──jwt::claims──▶ unverified claims ──issuers──▶ the issuer's authenticator
//!   ──jwt::claims──▶ types, audience, times ──jwt::header──▶ algorithm ──jwks──▶ keys ──jwt::signature──▶ VerifiedClaims
//!   ──mapping──▶ AuthenticatedUser, rules ──▶ AuthnOutcome: Authenticated, NoOpinion or Rejected
//! ```

mod authenticator;
pub mod batch;
mod builder;
pub mod config;
mod deadlines;
mod decision;
mod decision_flights;
pub mod diff;
pub mod explain;
mod given_keys;
mod issuers;
pub mod jwks;
pub mod jwt;
mod mapping;
pub mod metrics;
mod model;
pub mod profile;
pub mod reloadable;
pub mod report;
pub mod revocation;
pub mod suite;
mod token_cache;
mod verifier;

pub use authenticator::Authenticators;
pub use builder::{Authenticator, AuthenticatorBuilder, AuthenticatorError};
pub use deadlines::Deadlines;
pub use decision::AuthnDecision;
pub use reloadable::ReloadableAuthenticator;

pub use model::outcome::{self, AuthnOutcome, NoOpinion, Refusal, Rejection};
pub use model::{AuthenticatedUser, AuthnRequest, AuthnStep, CREDENTIAL_ID, Interrupt, StepObserver};
pub use profile::{AuthnProfile, Hardening, KubeVersion, TokenLimits, UnknownKubeVersion};

pub use navicert_types::{Clock, Secret, SystemClock, Timestamp};
