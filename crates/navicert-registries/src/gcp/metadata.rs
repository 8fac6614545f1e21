//! Google's metadata server: asked only on Google's machines, directly, and believed only if it says who it is.
// I186, I187, I213

use std::time::Duration;

use navicert_types::Secret;
use serde::Deserialize;

use super::AccessToken;
use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::http::{HttpRequest, HttpResponse, HttpUrl};
use crate::machine::Cloud;

pub(super) const SERVICE: &str = "Google's metadata server";
/// With the dot at the end: no search domain of the machine's resolver may stand in for it.
const DEFAULT_URL: &str = "http://metadata.google.internal.";
const USER_AGENT: &str = "GKE auth-provider-gcp image pull";
/// Bodies over this are refused.
// I186
pub(super) const MAX_BODY_BYTES: usize = 10 << 20;

#[derive(Deserialize)]
struct TokenResponse {
    access_token: Secret<String>,
    expires_in: Option<u64>,
}

/// The token of the machine's service account.
pub(super) fn token(context: &ProviderContext) -> Result<AccessToken, RegistryError> {
    let (_, reply) = get(context, "instance/service-accounts/default/token")?;
    let wrong = RegistryError::Answer { service: SERVICE, what: "what is no access token" };
    let token: TokenResponse = serde_json::from_slice(reply.body.expose()).map_err(|_| wrong)?;
    if token.access_token.is_empty() {
        return Err(RegistryError::Answer { service: SERVICE, what: "an empty access token" });
    }
    context
        .journal
        .note("token", format!("from {SERVICE}, good for {} s", token.expires_in.unwrap_or_default()));
    Ok(AccessToken { remaining: token.expires_in.map(Duration::from_secs), token: token.access_token })
}

/// What the metadata server knows under a path.
pub(super) fn get(
    context: &ProviderContext,
    path: &str,
) -> Result<(HttpRequest, HttpResponse), RegistryError> {
    let base = match context.variable("GCE_METADATA_HOST") {
        Some(host) => HttpUrl::parse(&format!("http://{host}"))
            .map_err(|error| RegistryError::Environment(format!("GCE_METADATA_HOST: {error}")))?,
        None => {
            if !Cloud::detect(&context.sysfs).may_be(Cloud::Google) {
                let tried = "this machine is not on Google Compute Engine".to_owned();
                return Err(RegistryError::NoCredentials { service: "Google", tried });
            }
            HttpUrl::parse(DEFAULT_URL)
                .map_err(|_| RegistryError::Answer { service: SERVICE, what: "no address" })?
        }
    };
    let request = HttpRequest::to_metadata_server("GET", base.join(&format!("/computeMetadata/v1/{path}")))
        .header("metadata-flavor", "Google")
        .header("user-agent", USER_AGENT);
    let request = HttpRequest { max_body_bytes: MAX_BODY_BYTES, ..request };
    let reply = context.send(SERVICE, &request)?;
    if reply.header("metadata-flavor").next() != Some("Google") {
        return Err(RegistryError::Answer {
            service: SERVICE,
            what: "what Google's does not: no `Metadata-Flavor: Google`",
        });
    }
    if reply.status != 200 {
        return Err(rejection(SERVICE, &request, &reply, "", reply.text()));
    }
    Ok((request, reply))
}
