//! The OAuth client of this workspace: requests to an OpenID provider, and what its answers mean. The auth provider `oidc` of old
//! kubeconfigs and the crate `navicert-login` use it; it makes no promise of stability to others.
//!
//! ```text
//! Form + ClientSecret ──▶ OAuthHttp::post ──▶ HttpAnswer ──▶ TokenAnswer | OAuthFailure
//!                         OAuthHttp::get  ──▶ HttpAnswer ──▶ JsonObject (discovery document)
//! ```

mod address;
mod answer;
mod client_secret;
mod error;
mod form;
mod object;
mod provider_http;

pub use address::{check_address, host_of};
pub use answer::{OAuthFailure, TokenAnswer};
pub use client_secret::{ClientSecret, SecretPlacement};
pub use error::{OAuthError, SendError};
pub use form::Form;
pub use object::{JsonObject, clean};
pub use provider_http::{HttpAnswer, OAuthConnection, OAuthHttp, ObserveRequests, RequestSummary};

/// The address of an issuer's discovery document.
pub fn discovery_url(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
}
