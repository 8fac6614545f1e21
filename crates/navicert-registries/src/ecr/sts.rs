//! AWS's roles: `AssumeRoleWithWebIdentity` for whoever has a token of somebody else's, `AssumeRole` for whoever has
//! credentials already.
// I181

use navicert_types::{Secret, Timestamp};

use super::credentials::AwsCredentials;
use super::endpoint::{AwsService, Endpoints};
use super::sign::sign;
use super::xml::text_at;
use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::form::Form;
use crate::http::{HttpRequest, HttpResponse};

const VERSION: &str = "2011-06-15";

/// Exchanges a token for a role's credentials. The call is not signed: the token is the proof.
pub(super) fn assume_role_with_web_identity(
    context: &ProviderContext,
    endpoints: &Endpoints,
    role: &str,
    session: &str,
    token: &Secret<String>,
) -> Result<AwsCredentials, RegistryError> {
    let form = Form::new()
        .field("Action", "AssumeRoleWithWebIdentity")
        .field("Version", VERSION)
        .field("RoleArn", role)
        .field("RoleSessionName", session)
        .field("WebIdentityToken", token.expose());
    let request = form.request(endpoints.url(AwsService::Sts).clone()).header("accept", "application/xml");
    let request = HttpRequest { retry: is_retryable, ..request };
    let reply = context.send(AwsService::Sts.name(), &request)?;
    decode(context, &request, &reply, "AssumeRoleWithWebIdentity")
}

/// What a profile may say about its role.
#[derive(Clone, Copy, Debug)]
pub(super) struct AssumedRole<'a> {
    pub(super) arn: &'a str,
    pub(super) session: &'a str,
    pub(super) external_id: Option<&'a str>,
}

/// Takes a role with the credentials of somebody who may.
pub(super) fn assume_role(
    context: &ProviderContext,
    endpoints: &Endpoints,
    source: &AwsCredentials,
    role: AssumedRole<'_>,
) -> Result<AwsCredentials, RegistryError> {
    let mut form = Form::new()
        .field("Action", "AssumeRole")
        .field("Version", VERSION)
        .field("RoleArn", role.arn)
        .field("RoleSessionName", role.session);
    if let Some(external_id) = role.external_id {
        form = form.field("ExternalId", external_id);
    }
    let request = form.request(endpoints.url(AwsService::Sts).clone()).header("accept", "application/xml");
    let request = HttpRequest { retry: is_retryable, ..request };
    let now = context.clock.now();
    let request = sign(request, source, &endpoints.sts_region, AwsService::Sts.signing_name(), now)?;
    let reply = context.send(AwsService::Sts.name(), &request)?;
    decode(context, &request, &reply, "AssumeRole")
}

fn decode(
    context: &ProviderContext,
    request: &HttpRequest,
    reply: &HttpResponse,
    action: &'static str,
) -> Result<AwsCredentials, RegistryError> {
    if reply.status != 200 {
        let message = text_at(reply.text(), &["ErrorResponse", "Error", "Message"]).unwrap_or_default();
        let code = error_code(reply).unwrap_or_default();
        return Err(rejection(AwsService::Sts.name(), request, reply, &code, &message));
    }
    let (response, result) = (format!("{action}Response"), format!("{action}Result"));
    let field = |name: &str| text_at(reply.text(), &[&response, &result, "Credentials", name]);
    let whole = (
        field("AccessKeyId"),
        field("SecretAccessKey").map(Secret::new),
        field("SessionToken").map(Secret::new),
    );
    let (Some(access_key_id), Some(secret_access_key), Some(session_token)) = whole else {
        return Err(RegistryError::Answer {
            service: AwsService::Sts.name(),
            what: "what has no credentials in it",
        });
    };
    let expires: Option<Timestamp> = field("Expiration").and_then(|text| text.parse().ok());
    context.journal.note("identity", format!("STS gave access key `{access_key_id}`"));
    Ok(AwsCredentials { access_key_id, secret_access_key, session_token: Some(session_token), expires })
}

fn error_code(reply: &HttpResponse) -> Option<String> {
    text_at(reply.text(), &["ErrorResponse", "Error", "Code"])
}

/// STS throttles with a 400, and its own view of a fresh issuer may lag.
fn is_retryable(reply: &HttpResponse) -> bool {
    let passing = |code: String| code.contains("Throttl") || code == "IDPCommunicationError";
    reply.status == 400 && error_code(reply).is_some_and(passing)
}
