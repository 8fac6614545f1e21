//! Google's metadata server: asked only on Google's machines, directly, and believed only if it says who it is
//! (I186, I187, I213).

use std::time::Duration;

use navicert_types::Secret;
use serde::Deserialize;

use super::AccessToken;
use crate::context::Context;
use crate::error::{ProviderError, refused};
use crate::http::{Reply, Request, Url};
use crate::machine::Cloud;

pub(super) const SERVICE: &str = "Google's metadata server";
/// With the dot at the end: no search domain of the machine's resolver may stand in for it.
const USUAL: &str = "http://metadata.google.internal.";
const USER_AGENT: &str = "GKE auth-provider-gcp image pull";
/// Bodies over this are refused (I186).
pub(super) const LARGEST: usize = 10 << 20;

#[derive(Deserialize)]
struct Token {
    access_token: Secret<String>,
    expires_in: Option<u64>,
}

/// The token of the machine's service account.
pub(super) fn token(context: &Context) -> Result<AccessToken, ProviderError> {
    let (_, reply) = ask(context, "instance/service-accounts/default/token")?;
    let wrong = ProviderError::Answer { service: SERVICE, what: "what is no access token" };
    let token: Token = serde_json::from_slice(reply.body.expose()).map_err(|_| wrong)?;
    if token.access_token.is_empty() {
        return Err(ProviderError::Answer { service: SERVICE, what: "an empty access token" });
    }
    context
        .journal
        .note("token", format!("from {SERVICE}, good for {} s", token.expires_in.unwrap_or_default()));
    Ok(AccessToken { remaining: token.expires_in.map(Duration::from_secs), token: token.access_token })
}

/// What the metadata server knows under a path.
pub(super) fn ask(context: &Context, path: &str) -> Result<(Request, Reply), ProviderError> {
    let base = match context.variable("GCE_METADATA_HOST") {
        Some(host) => Url::parse(&format!("http://{host}"))
            .map_err(|error| ProviderError::Environment(format!("GCE_METADATA_HOST: {error}")))?,
        None => {
            if !Cloud::of_machine(&context.system).may_be(Cloud::Google) {
                let tried = "this machine is not on Google Compute Engine".to_owned();
                return Err(ProviderError::NoCredentials { service: "Google", tried });
            }
            Url::parse(USUAL).map_err(|_| ProviderError::Answer { service: SERVICE, what: "no address" })?
        }
    };
    let request = Request::near("GET", base.join(&format!("/computeMetadata/v1/{path}")))
        .header("metadata-flavor", "Google")
        .header("user-agent", USER_AGENT);
    let request = Request { largest: LARGEST, ..request };
    let reply = context.send(SERVICE, &request)?;
    if reply.header("metadata-flavor").next() != Some("Google") {
        return Err(ProviderError::Answer {
            service: SERVICE,
            what: "what Google's does not: no `Metadata-Flavor: Google`",
        });
    }
    if reply.status != 200 {
        return Err(refused(SERVICE, &request, &reply, "", reply.text()));
    }
    Ok((request, reply))
}
