//! The Google metadata server: called only on Google Compute Engine, without a proxy, and trusted only if the response has
//! `Metadata-Flavor: Google`.
// I186, I187, I213

use std::time::Duration;

use navicert_types::Secret;
use serde::Deserialize;

use super::AccessToken;
use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::http::{HttpRequest, HttpResponse, HttpUrl};
use crate::machine::Cloud;

pub(super) const SERVICE: &str = "the Google metadata server";
/// With a trailing dot, so that the resolver applies no search domain.
const DEFAULT_URL: &str = "http://metadata.google.internal.";
const USER_AGENT: &str = "GKE auth-provider-gcp image pull";
/// Limit of a response body.
// I186
pub(super) const MAX_BODY_BYTES: usize = 10 << 20;

#[derive(Deserialize)]
struct TokenResponse {
    access_token: Secret<String>,
    expires_in: Option<u64>,
}

/// The token of the machine's service account.
pub(super) fn token(context: &ProviderContext) -> Result<AccessToken, RegistryError> {
    let (_, response) = get(context, "instance/service-accounts/default/token")?;
    let invalid = RegistryError::InvalidResponse { service: SERVICE, what: "malformed access token" };
    let token: TokenResponse = serde_json::from_slice(response.body.expose()).map_err(|_| invalid)?;
    if token.access_token.is_empty() {
        return Err(RegistryError::InvalidResponse { service: SERVICE, what: "empty access token" });
    }
    context
        .journal
        .note("token", format!("from {SERVICE}, valid for {} s", token.expires_in.unwrap_or_default()));
    Ok(AccessToken { remaining: token.expires_in.map(Duration::from_secs), token: token.access_token })
}

/// Reads a metadata path.
pub(super) fn get(
    context: &ProviderContext,
    path: &str,
) -> Result<(HttpRequest, HttpResponse), RegistryError> {
    let base = match context.variable("GCE_METADATA_HOST") {
        Some(host) => HttpUrl::parse(&format!("http://{host}"))
            .map_err(|error| RegistryError::Environment(format!("invalid GCE_METADATA_HOST: {error}")))?,
        None => {
            if !Cloud::detect(&context.sysfs).may_be(Cloud::Google) {
                let tried = "this machine is not on Google Compute Engine".to_owned();
                return Err(RegistryError::NoCredentials { service: "Google", tried });
            }
            HttpUrl::parse(DEFAULT_URL).map_err(|_| RegistryError::InvalidResponse {
                service: SERVICE,
                what: "invalid default address",
            })?
        }
    };
    let request = HttpRequest::to_metadata_server("GET", base.join(&format!("/computeMetadata/v1/{path}")))
        .header("metadata-flavor", "Google")
        .header("user-agent", USER_AGENT);
    let request = HttpRequest { max_body_bytes: MAX_BODY_BYTES, ..request };
    let response = context.send(SERVICE, &request)?;
    if response.header("metadata-flavor").next() != Some("Google") {
        return Err(RegistryError::InvalidResponse {
            service: SERVICE,
            what: "missing header `Metadata-Flavor: Google`",
        });
    }
    if response.status != 200 {
        return Err(rejection(SERVICE, &request, &response, "", response.text()));
    }
    Ok((request, response))
}
