//! The machine's own role, from EC2's metadata server, version 2: a token first, then everything with it (I179).

use super::{Document, Found};
use crate::context::Context;
use crate::error::{ProviderError, refused};
use crate::http::{Reply, Request, Url};
use crate::machine::Cloud;

const SERVICE: &str = "EC2's metadata server";
const USUAL: &str = "http://169.254.169.254";
const USUAL_IPV6: &str = "http://[fd00:ec2::254]";
const ROLES: &str = "/latest/meta-data/iam/security-credentials/";

pub(super) fn find(context: &Context) -> Found {
    if context.is_set("AWS_EC2_METADATA_DISABLED") == Some(true) {
        return Ok(Err("AWS_EC2_METADATA_DISABLED says not to ask EC2's metadata server".to_owned()));
    }
    let base = match context.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT") {
        Some(text) => Url::parse(text).map_err(|error| {
            ProviderError::Environment(format!("AWS_EC2_METADATA_SERVICE_ENDPOINT: {error}"))
        })?,
        None => {
            if !Cloud::of_machine(&context.system).may_be(Cloud::Amazon) {
                return Ok(Err("this machine is not on EC2".to_owned()));
            }
            let mode = context.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
            let ipv6 = mode.is_some_and(|mode| mode.eq_ignore_ascii_case("ipv6"));
            let usual = if ipv6 { USUAL_IPV6 } else { USUAL };
            Url::parse(usual).map_err(|_| ProviderError::Answer { service: SERVICE, what: "no address" })?
        }
    };
    let request = Request::near("PUT", base.join("/latest/api/token"))
        .header("x-aws-ec2-metadata-token-ttl-seconds", "21600");
    let token = ask(context, &request)?;
    let with_token = |path: &str| {
        Request::near("GET", base.join(path)).header("x-aws-ec2-metadata-token", token.text().trim())
    };
    let roles = context.send(SERVICE, &with_token(ROLES))?;
    if roles.status == 404 {
        return Ok(Err("this EC2 machine has no role".to_owned()));
    }
    let role = roles.text().lines().next().unwrap_or_default().trim();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@_-".contains(&byte);
    if roles.status != 200 || role.is_empty() || !role.bytes().all(is_name) {
        return Err(refused(SERVICE, &with_token(ROLES), &roles, "", "no role's name"));
    }
    context.journal.note("identity", format!("instance metadata: role `{role}`"));
    let reply = ask(context, &with_token(&format!("{ROLES}{role}")))?;
    Document::of(SERVICE, &reply).map(Ok)
}

fn ask(context: &Context, request: &Request) -> Result<Reply, ProviderError> {
    let reply = context.send(SERVICE, request)?;
    if reply.status == 200 { Ok(reply) } else { Err(refused(SERVICE, request, &reply, "", "")) }
}
