//! The machine's own role, from EC2's metadata server, version 2: a token first, then everything with it.
// I179

use super::{CredentialsDocument, SourceResult};
use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::http::{HttpRequest, HttpResponse, HttpUrl};
use crate::machine::Cloud;

const SERVICE: &str = "EC2's metadata server";
const DEFAULT_URL: &str = "http://169.254.169.254";
const DEFAULT_IPV6_URL: &str = "http://[fd00:ec2::254]";
const ROLES_PATH: &str = "/latest/meta-data/iam/security-credentials/";

pub(super) fn find(context: &ProviderContext) -> SourceResult {
    if context.flag("AWS_EC2_METADATA_DISABLED") == Some(true) {
        return Ok(Err("AWS_EC2_METADATA_DISABLED says not to ask EC2's metadata server".to_owned()));
    }
    let base = match context.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT") {
        Some(text) => HttpUrl::parse(text).map_err(|error| {
            RegistryError::Environment(format!("AWS_EC2_METADATA_SERVICE_ENDPOINT: {error}"))
        })?,
        None => {
            if !Cloud::detect(&context.sysfs).may_be(Cloud::Amazon) {
                return Ok(Err("this machine is not on EC2".to_owned()));
            }
            let mode = context.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
            let ipv6 = mode.is_some_and(|mode| mode.eq_ignore_ascii_case("ipv6"));
            let usual = if ipv6 { DEFAULT_IPV6_URL } else { DEFAULT_URL };
            HttpUrl::parse(usual)
                .map_err(|_| RegistryError::Answer { service: SERVICE, what: "no address" })?
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
        return Ok(Err("this EC2 machine has no role".to_owned()));
    }
    let role = roles.text().lines().next().unwrap_or_default().trim();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@_-".contains(&byte);
    if roles.status != 200 || role.is_empty() || !role.bytes().all(is_name) {
        return Err(rejection(SERVICE, &with_token(ROLES_PATH), &roles, "", "no role's name"));
    }
    context.journal.note("identity", format!("instance metadata: role `{role}`"));
    let reply = send(context, &with_token(&format!("{ROLES_PATH}{role}")))?;
    CredentialsDocument::from_response(SERVICE, &reply).map(Ok)
}

fn send(context: &ProviderContext, request: &HttpRequest) -> Result<HttpResponse, RegistryError> {
    let reply = context.send(SERVICE, request)?;
    if reply.status == 200 { Ok(reply) } else { Err(rejection(SERVICE, request, &reply, "", "")) }
}
