//! `GetAuthorizationToken` of ECR and ECR Public: one signed call.
// I172–I174, I183

use base64::Engine as _;
use navicert_go::base64::STANDARD;
use navicert_types::{Secret, Timestamp};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::credentials::AwsCredentials;
use super::endpoint::{AwsService, Endpoints};
use super::sign::sign;
use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::http::{HttpRequest, HttpResponse};

/// A registry login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthorizationToken {
    /// The user name, `AWS`.
    pub username: String,
    /// The password.
    pub password: Secret<String>,
    /// Expiry.
    pub expires: Option<Timestamp>,
}

/// Requests a login.
///
/// # Errors
/// [`RegistryError`].
pub(super) fn authorization_token(
    context: &ProviderContext,
    endpoints: &Endpoints,
    credentials: &AwsCredentials,
) -> Result<AuthorizationToken, RegistryError> {
    let service = endpoints.registry;
    let target = match service {
        AwsService::EcrPublic => "SpencerFrontendService.GetAuthorizationToken",
        _ => "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken",
    };
    let request = HttpRequest::new("POST", endpoints.url(service).clone())
        .body("application/x-amz-json-1.1", *b"{}")
        .header("x-amz-target", target);
    let request = HttpRequest { retry: is_throttled, ..request };
    let now = context.clock.now();
    let request = sign(request, credentials, endpoints.region_for(service), service.signing_name(), now)?;
    let response = context.send(service.name(), &request)?;
    if response.status != 200 {
        let fault = AwsErrorBody::from_response(&response);
        return Err(rejection(service.name(), &request, &response, fault.code(), &fault.message));
    }
    let token = decode(service, &response)?;
    let until = token.expires.map_or_else(|| "unknown".to_owned(), |expires| expires.to_string());
    context.journal.note("token", format!("from {}, valid until {until}", service.name()));
    Ok(token)
}

/// ECR Public returns one object, ECR a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Data {
    One(Authorization),
    Several(Vec<Authorization>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenResponse {
    authorization_data: Option<Data>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Authorization {
    authorization_token: Option<Secret<String>>,
    expires_at: Option<f64>,
}

fn decode(service: AwsService, response: &HttpResponse) -> Result<AuthorizationToken, RegistryError> {
    let invalid = |what| RegistryError::InvalidResponse { service: service.name(), what };
    let answer: TokenResponse = serde_json::from_slice(response.body.expose())
        .map_err(|_| invalid("malformed authorization data"))?;
    let first = match answer.authorization_data {
        Some(Data::One(one)) => Some(one),
        Some(Data::Several(several)) => several.into_iter().next(),
        None => None,
    };
    let data = first.ok_or_else(|| invalid("empty authorization data"))?;
    let encoded = data.authorization_token.ok_or_else(|| invalid("missing authorization token"))?;
    let decoded = Zeroizing::new(
        STANDARD.decode(encoded.expose().trim()).map_err(|_| invalid("authorization token is not base64"))?,
    );
    let text = std::str::from_utf8(&decoded).map_err(|_| invalid("authorization token is not UTF-8 text"))?;
    let (username, password) =
        text.split_once(':').ok_or_else(|| invalid("authorization token is not `user:password`"))?;
    Ok(AuthorizationToken {
        username: username.to_owned(),
        password: Secret::new(password.to_owned()),
        expires: data.expires_at.and_then(timestamp),
    })
}

/// Converts seconds since the epoch, possibly fractional.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the range is checked first, and the fraction is dropped on purpose"
)]
fn timestamp(seconds: f64) -> Option<Timestamp> {
    let whole = seconds.floor();
    (whole.abs() < 1e12).then(|| Timestamp::from_second(whole as i64).ok()).flatten()
}

/// Error body of AWS's JSON protocol.
#[derive(Default, Deserialize)]
pub(super) struct AwsErrorBody {
    #[serde(rename = "__type", default)]
    kind: String,
    #[serde(alias = "Message", default)]
    message: String,
}

impl AwsErrorBody {
    fn from_response(response: &HttpResponse) -> Self {
        serde_json::from_slice(response.body.expose()).unwrap_or_default()
    }

    /// The error code, without the namespace prefix of some services.
    fn code(&self) -> &str {
        self.kind.rsplit('#').next().unwrap_or_default()
    }
}

/// AWS reports throttling with status 400.
fn is_throttled(response: &HttpResponse) -> bool {
    response.status == 400 && AwsErrorBody::from_response(response).code().contains("Throttl")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<AuthorizationToken, String> {
        let response =
            HttpResponse { status: 200, headers: Vec::new(), body: Secret::new(body.as_bytes().to_vec()) };
        decode(AwsService::Ecr, &response).map_err(|error| error.to_string())
    }

    #[test]
    fn parses_private_and_public_responses() {
        // I173, I174: QVdTOnNlY3JldDp4 is AWS:secret:x
        for (body, expires) in [
            (
                r#"{"authorizationData":[{"authorizationToken":"QVdTOnNlY3JldDp4","expiresAt":1700000000.5,"proxyEndpoint":"x"}]}"#,
                Some(1_700_000_000),
            ),
            (r#"{"authorizationData":{"authorizationToken":"QVdTOnNlY3JldDp4","expiresAt":-1}}"#, Some(-1)),
            (r#"{"authorizationData":{"authorizationToken":"QVdTOnNlY3JldDp4"}}"#, None),
            (r#"{"authorizationData":{"authorizationToken":"QVdTOnNlY3JldDp4","expiresAt":1e300}}"#, None),
        ] {
            let token = read(body).unwrap();
            assert_eq!((token.username.as_str(), token.password.expose().as_str()), ("AWS", "secret:x"));
            assert_eq!(token.expires.map(Timestamp::as_second), expires, "{body}");
        }
    }

    #[test]
    fn names_what_is_malformed_without_secrets() {
        // I173
        for (body, said) in [
            ("<html>", "malformed authorization data"),
            (r#"{"authorizationData":"canary"}"#, "malformed authorization data"),
            (r#"{"authorizationData":[]}"#, "empty authorization data"),
            ("{}", "empty authorization data"),
            (r#"{"authorizationData":[{}]}"#, "missing authorization token"),
            (r#"{"authorizationData":[{"authorizationToken":null}]}"#, "missing authorization token"),
            (
                r#"{"authorizationData":[{"authorizationToken":"can ary"}]}"#,
                "authorization token is not base64",
            ),
            (
                r#"{"authorizationData":[{"authorizationToken":"Y2FuYXJ5"}]}"#,
                "authorization token is not `user:password`",
            ),
        ] {
            let error = read(body).unwrap_err();
            assert!(error.ends_with(said), "{body}: {error}");
            assert!(!error.contains("canary"), "{error}");
        }
    }
}
