//! Container credential agents: ECS, and EKS pod identity.

use std::path::Path;

use super::{CredentialsDocument, SourceResult};
use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::http::{HttpRequest, HttpUrl, UrlScheme};

const SERVICE: &str = "the container credential agent";
/// Endpoint of the ECS agent.
const ECS_AGENT_URL: &str = "http://169.254.170.2";
/// Link-local agents of ECS and EKS, which may be called over plain HTTP.
const LINK_LOCAL_HOSTS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];

pub(super) fn find(context: &ProviderContext) -> SourceResult {
    let relative = context.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let full = context.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    let (name, text) = match (relative, full) {
        (Some(path), _) => (
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            format!("{ECS_AGENT_URL}/{}", path.trim_start_matches('/')),
        ),
        (None, Some(url)) => ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.to_owned()),
        (None, None) => return Ok(Err("AWS_CONTAINER_CREDENTIALS_FULL_URI is not set".to_owned())),
    };
    let url = HttpUrl::parse(&text)
        .map_err(|error| RegistryError::Environment(format!("invalid {name}: {error}")))?;
    if url.scheme == UrlScheme::Http && !url.is_loopback() && !LINK_LOCAL_HOSTS.contains(&url.host.as_str()) {
        let what = format!(
            "{name} names `{}`: plain HTTP is not allowed to a host that is not loopback or link-local",
            url.authority()
        );
        return Err(RegistryError::Policy(what));
    }
    let mut request = HttpRequest::to_metadata_server("GET", url).header("accept", "application/json");
    // The file is refreshed before its token expires, so it takes precedence over a token in the environment.
    if let Some(file) = context.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        let token = context.read_file(Path::new(file))?;
        request = request.header("authorization", token.expose().as_str());
    } else if let Some(token) = context.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN") {
        request = request.header("authorization", token);
    }
    let response = context.send(SERVICE, &request)?;
    if response.status != 200 {
        return Err(rejection(SERVICE, &request, &response, "", response.text()));
    }
    CredentialsDocument::from_response(SERVICE, &response).map(Ok)
}
