//! Exchanges a service account's token for a Google access token at Google's security token service.
// I192

use std::time::Duration;

use navicert_types::Secret;
use serde::{Deserialize, Serialize};

use super::{AccessToken, Federation};
use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::http::{HttpRequest, HttpUrl};

const SERVICE: &str = "Google STS";
const DEFAULT_URL: &str = "https://sts.googleapis.com";

#[derive(Serialize)]
struct TokenExchange<'a> {
    audience: String,
    grant_type: &'a str,
    requested_token_type: &'a str,
    scope: &'a str,
    subject_token: &'a str,
    subject_token_type: &'a str,
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: Secret<String>,
    expires_in: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OAuthError {
    error: String,
    error_description: String,
}

pub(super) fn exchange(
    context: &ProviderContext,
    federation: &Federation,
    token: &Secret<String>,
) -> Result<AccessToken, RegistryError> {
    if token.is_empty() {
        let what = format!(
            "service account has annotation {}, but the kubelet sent no token; check \
             `tokenAttributes.serviceAccountTokenAudience` of this provider",
            super::ENABLE_ANNOTATION
        );
        return Err(RegistryError::ServiceAccount(what));
    }
    let base = context.variable("NAVICERT_GCP_STS_ENDPOINT").unwrap_or(DEFAULT_URL);
    let url = HttpUrl::parse(base)
        .map_err(|error| RegistryError::Environment(format!("invalid NAVICERT_GCP_STS_ENDPOINT: {error}")))?;
    let body = TokenExchange {
        audience: format!(
            "identitynamespace:{}.svc.id.goog:{}",
            federation.project, federation.identity_provider
        ),
        grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
        requested_token_type: "urn:ietf:params:oauth:token-type:access_token",
        scope: "https://www.googleapis.com/auth/cloud-platform",
        subject_token: token.expose(),
        subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
    };
    let invalid = |what| RegistryError::InvalidResponse { service: SERVICE, what };
    let body = serde_json::to_vec(&body).map_err(|_| invalid("failed to serialize the request"))?;
    let request = HttpRequest::new("POST", url.join("/v1/token")).body("application/json", body);
    let response = context.send(SERVICE, &request)?;
    if response.status != 200 {
        let fault: OAuthError = serde_json::from_slice(response.body.expose()).unwrap_or_default();
        return Err(rejection(SERVICE, &request, &response, &fault.error, &fault.error_description));
    }
    let token: TokenResponse =
        serde_json::from_slice(response.body.expose()).map_err(|_| invalid("malformed access token"))?;
    if token.access_token.is_empty() {
        return Err(invalid("empty access token"));
    }
    context
        .journal
        .note("token", format!("from {SERVICE}, valid for {} s", token.expires_in.unwrap_or_default()));
    Ok(AccessToken { remaining: token.expires_in.map(Duration::from_secs), token: token.access_token })
}
