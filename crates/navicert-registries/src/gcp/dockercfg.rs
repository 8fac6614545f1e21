//! Logins that an operator put into the machine's metadata, as docker's legacy map of hosts.
// I190, I191

use navicert_image::cache_key::CacheKeyType;
use navicert_image::{Credential, ImagePattern, Location, Profile, docker_config};

use super::AuthFlow;
use super::metadata;
use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::http::{HttpRequest, HttpResponse, HttpUrl};
use crate::provider::Login;

const URL_SERVICE: &str = "the server that google-dockercfg-url names";

/// The logins; unless the answer is for every image, those for the image's registry alone.
pub(super) fn logins(
    context: &ProviderContext,
    flow: AuthFlow,
    registry: &str,
    key_type: CacheKeyType,
) -> Result<Vec<Login>, RegistryError> {
    let (service, reply) = match flow {
        AuthFlow::DockercfgUrl => (URL_SERVICE, fetch_dockercfg_url(context)?),
        _ => (metadata::SERVICE, metadata::get(context, "instance/attributes/google-dockercfg")?.1),
    };
    let all = decode(service, &reply)?;
    context.journal.note("token", format!("{} logins from {service}", all.len()));
    if key_type == CacheKeyType::Global {
        return Ok(all);
    }
    let Ok(location) = Location::parse(registry.as_bytes()) else { return Ok(Vec::new()) };
    let plain = |key: &str| key.trim_start_matches("https://").trim_start_matches("http://").to_owned();
    let fits = |login: &Login| {
        ImagePattern::parse(&plain(&login.key), Profile::Hardened)
            .is_ok_and(|pattern| pattern.matches_registry(&location))
    };
    Ok(all.into_iter().filter(fits).collect())
}

/// The address is the metadata's; what is asked there goes without the metadata's headers.
fn fetch_dockercfg_url(context: &ProviderContext) -> Result<HttpResponse, RegistryError> {
    let (_, reply) = metadata::get(context, "instance/attributes/google-dockercfg-url")?;
    let wrong = RegistryError::Answer {
        service: metadata::SERVICE,
        what: "what is no URL of a docker configuration",
    };
    let url = HttpUrl::parse(reply.text().trim()).map_err(|_| wrong)?;
    let request = HttpRequest::new("GET", url);
    let request = HttpRequest { max_body_bytes: metadata::MAX_BODY_BYTES, ..request };
    let reply = context.send(URL_SERVICE, &request)?;
    if reply.status == 200 { Ok(reply) } else { Err(rejection(URL_SERVICE, &request, &reply, "", "")) }
}

fn decode(service: &'static str, reply: &HttpResponse) -> Result<Vec<Login>, RegistryError> {
    let wrong = RegistryError::Answer { service, what: "what is no docker configuration" };
    let entries = docker_config::read_legacy(reply.body.expose()).map_err(|_| wrong)?;
    let login = |(key, credential): (String, Credential)| Login {
        key,
        username: credential.username,
        password: credential.password,
    };
    Ok(entries.into_iter().map(login).collect())
}
