//! The machine's own role, from the EC2 metadata server, version 2: a token first, then everything with it.
// I179

use super::{CredentialsDocument, SourceResult};
use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::http::{HttpRequest, HttpResponse, HttpUrl};
use crate::machine::Cloud;

const SERVICE: &str = "the EC2 metadata server";
const DEFAULT_URL: &str = "http://169.254.169.254";
const DEFAULT_IPV6_URL: &str = "http://[fd00:ec2::254]";
const ROLES_PATH: &str = "/latest/meta-data/iam/security-credentials/";

pub(super) fn find(context: &ProviderContext) -> SourceResult {
    if context.flag("AWS_EC2_METADATA_DISABLED") == Some(true) {
        return Ok(Err("AWS_EC2_METADATA_DISABLED disables instance metadata".to_owned()));
    }
    let base = match context.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT") {
        Some(text) => HttpUrl::parse(text).map_err(|error| {
            RegistryError::Environment(format!("invalid AWS_EC2_METADATA_SERVICE_ENDPOINT: {error}"))
        })?,
        None => {
            if !Cloud::detect(&context.sysfs).may_be(Cloud::Amazon) {
                return Ok(Err("this machine is not on EC2".to_owned()));
            }
            let mode = context.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
            let ipv6 = mode.is_some_and(|mode| mode.eq_ignore_ascii_case("ipv6"));
            let default = if ipv6 { DEFAULT_IPV6_URL } else { DEFAULT_URL };
            HttpUrl::parse(default).map_err(|_| RegistryError::InvalidResponse {
                service: SERVICE,
                what: "invalid default address",
            })?
        }
    };
    let request = HttpRequest::to_metadata_server("PUT", base.join("/latest/api/token"))
        .header("x-aws-ec2-metadata-token-ttl-seconds", "21600");
    let token = send(context, &request)?;
    let with_token = |path: &str| {
        HttpRequest::to_metadata_server("GET", base.join(path))
            .header("x-aws-ec2-metadata-token", token.text().trim())
    };
    let roles = context.send(SERVICE, &with_token(ROLES_PATH))?;
    if roles.status == 404 {
        return Ok(Err("this EC2 instance has no role".to_owned()));
    }
    let role = roles.text().lines().next().unwrap_or_default().trim();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@_-".contains(&byte);
    if roles.status != 200 || role.is_empty() || !role.bytes().all(is_name) {
        return Err(rejection(SERVICE, &with_token(ROLES_PATH), &roles, "", "invalid role name"));
    }
    context.journal.note("identity", format!("instance metadata: role `{role}`"));
    let response = send(context, &with_token(&format!("{ROLES_PATH}{role}")))?;
    CredentialsDocument::from_response(SERVICE, &response).map(Ok)
}

fn send(context: &ProviderContext, request: &HttpRequest) -> Result<HttpResponse, RegistryError> {
    let response = context.send(SERVICE, request)?;
    if response.status == 200 { Ok(response) } else { Err(rejection(SERVICE, request, &response, "", "")) }
}
