//! Logins from the instance metadata, in docker's legacy `.dockercfg` format.
// I190, I191

use navicert_image::cache_key::CacheKeyType;
use navicert_image::{ImagePattern, Location, Profile, RegistryCredential, docker_config};

use super::AuthFlow;
use super::metadata;
use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::http::{HttpRequest, HttpResponse, HttpUrl};
use crate::provider::Login;

const URL_SERVICE: &str = "the google-dockercfg-url server";

/// The logins: all of them if the response covers every image, otherwise those of the image's registry.
pub(super) fn logins(
    context: &ProviderContext,
    flow: AuthFlow,
    registry: &str,
    key_type: CacheKeyType,
) -> Result<Vec<Login>, RegistryError> {
    let (service, response) = match flow {
        AuthFlow::DockercfgUrl => (URL_SERVICE, fetch_dockercfg_url(context)?),
        _ => (metadata::SERVICE, metadata::get(context, "instance/attributes/google-dockercfg")?.1),
    };
    let all = decode(service, &response)?;
    context.journal.note("token", format!("{} logins from {service}", all.len()));
    if key_type == CacheKeyType::Global {
        return Ok(all);
    }
    let Ok(location) = Location::parse(registry.as_bytes()) else { return Ok(Vec::new()) };
    let plain = |key: &str| key.trim_start_matches("https://").trim_start_matches("http://").to_owned();
    let matches = |login: &Login| {
        ImagePattern::parse(&plain(&login.key), Profile::Hardened)
            .is_ok_and(|pattern| pattern.matches_registry(&location))
    };
    Ok(all.into_iter().filter(matches).collect())
}

/// Fetches the document at the URL from the metadata, without the metadata server's headers.
fn fetch_dockercfg_url(context: &ProviderContext) -> Result<HttpResponse, RegistryError> {
    let (_, response) = metadata::get(context, "instance/attributes/google-dockercfg-url")?;
    let invalid = RegistryError::InvalidResponse {
        service: metadata::SERVICE,
        what: "malformed docker configuration URL",
    };
    let url = HttpUrl::parse(response.text().trim()).map_err(|_| invalid)?;
    let request = HttpRequest::new("GET", url);
    let request = HttpRequest { max_body_bytes: metadata::MAX_BODY_BYTES, ..request };
    let response = context.send(URL_SERVICE, &request)?;
    if response.status == 200 {
        Ok(response)
    } else {
        Err(rejection(URL_SERVICE, &request, &response, "", ""))
    }
}

fn decode(service: &'static str, response: &HttpResponse) -> Result<Vec<Login>, RegistryError> {
    let invalid = RegistryError::InvalidResponse { service, what: "malformed docker configuration" };
    let entries = docker_config::read_legacy(response.body.expose()).map_err(|_| invalid)?;
    let login = |(key, credential): (String, RegistryCredential)| Login {
        key,
        username: credential.username,
        password: credential.password,
    };
    Ok(entries.into_iter().map(login).collect())
}
