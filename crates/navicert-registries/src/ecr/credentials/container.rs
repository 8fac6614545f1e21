//! The agent beside a container: ECS, and EKS pod identity.

use std::path::Path;

use super::{CredentialsDocument, SourceResult};
use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::http::{HttpRequest, HttpUrl, UrlScheme};

const SERVICE: &str = "the container's credential agent";
/// Where ECS's agent is.
const ECS_AGENT_URL: &str = "http://169.254.170.2";
/// Who may be asked in the clear: ECS's agent and EKS's, both one hop away.
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
    let url =
        HttpUrl::parse(&text).map_err(|error| RegistryError::Environment(format!("{name}: {error}")))?;
    if url.scheme == UrlScheme::Http && !url.is_loopback() && !LINK_LOCAL_HOSTS.contains(&url.host.as_str()) {
        let what = format!(
            "{name} names `{}`, which is not on this machine and would be asked in the clear",
            url.authority()
        );
        return Err(RegistryError::Policy(what));
    }
    let mut request = HttpRequest::to_metadata_server("GET", url).header("accept", "application/json");
    // The file is written anew before its token expires; it goes before a token that was fixed at start.
    if let Some(file) = context.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        let token = context.read_file(Path::new(file))?;
        request = request.header("authorization", token.expose().as_str());
    } else if let Some(token) = context.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN") {
        request = request.header("authorization", token);
    }
    let reply = context.send(SERVICE, &request)?;
    if reply.status != 200 {
        return Err(rejection(SERVICE, &request, &reply, "", reply.text()));
    }
    CredentialsDocument::from_response(SERVICE, &reply).map(Ok)
}
