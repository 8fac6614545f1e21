//! Logins that an operator put into the machine's metadata, as docker's legacy map of hosts (I190, I191).

use navicert_image::cache_key::CacheKeyType;
use navicert_image::{Credential, Location, Pattern, Profile, docker_config};

use super::AuthFlow;
use super::metadata;
use crate::context::Context;
use crate::error::{ProviderError, refused};
use crate::http::{Reply, Request, Url};
use crate::provider::Login;

const POINTED_TO: &str = "the server that google-dockercfg-url names";

/// The logins; unless the answer is for every image, those for the image's registry alone.
pub(super) fn logins(
    context: &Context,
    flow: AuthFlow,
    registry: &str,
    key_type: CacheKeyType,
) -> Result<Vec<Login>, ProviderError> {
    let (service, reply) = match flow {
        AuthFlow::DockercfgUrl => (POINTED_TO, pointed_to(context)?),
        _ => (metadata::SERVICE, metadata::ask(context, "instance/attributes/google-dockercfg")?.1),
    };
    let all = read(service, &reply)?;
    context.journal.note("token", format!("{} logins from {service}", all.len()));
    if key_type == CacheKeyType::Global {
        return Ok(all);
    }
    let Ok(location) = Location::parse(registry.as_bytes()) else { return Ok(Vec::new()) };
    let plain = |key: &str| key.trim_start_matches("https://").trim_start_matches("http://").to_owned();
    let fits = |login: &Login| {
        Pattern::parse(&plain(&login.key), Profile::Hardened)
            .is_ok_and(|pattern| pattern.matches_registry(&location))
    };
    Ok(all.into_iter().filter(fits).collect())
}

/// The address is the metadata's; what is asked there goes without the metadata's headers.
fn pointed_to(context: &Context) -> Result<Reply, ProviderError> {
    let (_, reply) = metadata::ask(context, "instance/attributes/google-dockercfg-url")?;
    let wrong = ProviderError::Answer {
        service: metadata::SERVICE,
        what: "what is no URL of a docker configuration",
    };
    let url = Url::parse(reply.text().trim()).map_err(|_| wrong)?;
    let request = Request::new("GET", url);
    let request = Request { largest: metadata::LARGEST, ..request };
    let reply = context.send(POINTED_TO, &request)?;
    if reply.status == 200 { Ok(reply) } else { Err(refused(POINTED_TO, &request, &reply, "", "")) }
}

fn read(service: &'static str, reply: &Reply) -> Result<Vec<Login>, ProviderError> {
    let wrong = ProviderError::Answer { service, what: "what is no docker configuration" };
    let entries = docker_config::read_legacy(reply.body.expose()).map_err(|_| wrong)?;
    let login = |(key, credential): (String, Credential)| Login {
        key,
        username: credential.username,
        password: credential.password,
    };
    Ok(entries.into_iter().map(login).collect())
}
