//! Real OpenID providers for tests: npm's certified `oidc-provider`, and dex. Each issues ID tokens and can be told to sign with
//! a new key; either may stand behind a [`FaultProxy`](crate::FaultProxy).

mod dex;
mod npm;

pub use dex::Dex;
pub use npm::NpmProvider;

/// The audience of the tokens.
pub const AUDIENCE: &str = "kubernetes";
