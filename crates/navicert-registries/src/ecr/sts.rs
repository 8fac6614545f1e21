//! AWS STS: `AssumeRoleWithWebIdentity` with a token of another issuer, `AssumeRole` with AWS credentials.
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

/// Exchanges a token for a role's credentials. The request is not signed; the token authenticates it.
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
    let response = context.send(AwsService::Sts.name(), &request)?;
    decode(context, &request, &response, "AssumeRoleWithWebIdentity")
}

/// Role settings of a profile.
#[derive(Clone, Copy, Debug)]
pub(super) struct AssumedRole<'a> {
    pub(super) arn: &'a str,
    pub(super) session: &'a str,
    pub(super) external_id: Option<&'a str>,
}

/// Assumes a role with AWS credentials.
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
    let response = context.send(AwsService::Sts.name(), &request)?;
    decode(context, &request, &response, "AssumeRole")
}

fn decode(
    context: &ProviderContext,
    request: &HttpRequest,
    response: &HttpResponse,
    action: &'static str,
) -> Result<AwsCredentials, RegistryError> {
    if response.status != 200 {
        let message = text_at(response.text(), &["ErrorResponse", "Error", "Message"]).unwrap_or_default();
        let code = error_code(response).unwrap_or_default();
        return Err(rejection(AwsService::Sts.name(), request, response, &code, &message));
    }
    let (response_tag, result_tag) = (format!("{action}Response"), format!("{action}Result"));
    let field = |name: &str| text_at(response.text(), &[&response_tag, &result_tag, "Credentials", name]);
    let fields = (
        field("AccessKeyId"),
        field("SecretAccessKey").map(Secret::new),
        field("SessionToken").map(Secret::new),
    );
    let (Some(access_key_id), Some(secret_access_key), Some(session_token)) = fields else {
        return Err(RegistryError::InvalidResponse {
            service: AwsService::Sts.name(),
            what: "missing credentials",
        });
    };
    let expires: Option<Timestamp> = field("Expiration").and_then(|text| text.parse().ok());
    context.journal.note("identity", format!("STS returned access key `{access_key_id}`"));
    Ok(AwsCredentials { access_key_id, secret_access_key, session_token: Some(session_token), expires })
}

fn error_code(response: &HttpResponse) -> Option<String> {
    text_at(response.text(), &["ErrorResponse", "Error", "Code"])
}

/// STS throttles with status 400, and may temporarily fail to reach the issuer.
fn is_retryable(response: &HttpResponse) -> bool {
    let transient = |code: String| code.contains("Throttl") || code == "IDPCommunicationError";
    response.status == 400 && error_code(response).is_some_and(transient)
}
