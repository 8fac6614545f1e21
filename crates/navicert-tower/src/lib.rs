#![doc = include_str!("../README.md")]
//!
//! # Decisions
//!
//! ```text
//! request ──▶ AuthnService ──▶ your service, with an AuthenticatedUser in the request's extensions
//!             │ no: 401, `WWW-Authenticate: Bearer`
//!             ├─ AuthenticationConfiguration (navicert-authn)
//!             ├─ ServiceAccounts: tokens of the cluster, verified offline
//!             └─ TokenReview: every other token, bounded and cached
//! ```
//!
//! The file is Kubernetes' `AuthenticationConfiguration`. It is read again when it changes, and the signing keys of its
//! issuers are refreshed in the background. [`AuthnLayer::builder`] sets the profile, audiences and what happens without a
//! token, and adds the cluster's service accounts.
//!
//! Tokens are never logged, and the `Authorization` header of a request that is passed on is marked sensitive.

mod authenticate;
mod builder;
mod layer;
mod service_accounts;

pub use authenticate::MissingToken;
pub use builder::{AuthnLayerBuilder, AuthnLayerError};
pub use layer::{AuthnLayer, AuthnService};
pub use service_accounts::{ServiceAccounts, ServiceAccountsError};

pub use navicert_authn::config::BaseProfile;
pub use navicert_authn::jwks::IssuerHealth;
pub use navicert_authn::{AuthenticatedUser, KubeVersion};
