//! `GetAuthorizationToken`, private and public: one signed call, and what its answer says.
// I172–I174, I183

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use navicert_types::{Secret, Timestamp};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::credentials::AwsCredentials;
use super::endpoint::{AwsService, Endpoints};
use super::sign::sign;
use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::http::{HttpRequest, HttpResponse};

/// A login for a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationToken {
    /// `AWS`.
    pub username: String,
    /// The password.
    pub password: Secret<String>,
    /// Until when it is good.
    pub expires: Option<Timestamp>,
}

/// Asks for a login.
///
/// # Errors
/// [`ProviderError`].
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
    let reply = context.send(service.name(), &request)?;
    if reply.status != 200 {
        let fault = AwsErrorBody::from_response(&reply);
        return Err(rejection(service.name(), &request, &reply, fault.code(), &fault.message));
    }
    let token = decode(service, &reply)?;
    let until = token.expires.map_or_else(|| "an unknown time".to_owned(), |expires| expires.to_string());
    context.journal.note("token", format!("from {}, good until {until}", service.name()));
    Ok(token)
}

/// The one object of ECR Public, or the list of ECR.
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

fn decode(service: AwsService, reply: &HttpResponse) -> Result<AuthorizationToken, RegistryError> {
    let wrong = |what| RegistryError::Answer { service: service.name(), what };
    let answer: TokenResponse =
        serde_json::from_slice(reply.body.expose()).map_err(|_| wrong("what is no authorization data"))?;
    let first = match answer.authorization_data {
        Some(Data::One(one)) => Some(one),
        Some(Data::Several(several)) => several.into_iter().next(),
        None => None,
    };
    let data = first.ok_or_else(|| wrong("empty authorization data"))?;
    let encoded = data.authorization_token.ok_or_else(|| wrong("authorization data without a token"))?;
    let decoded = Zeroizing::new(
        STANDARD.decode(encoded.expose().trim()).map_err(|_| wrong("a token that is not base64"))?,
    );
    let text = std::str::from_utf8(&decoded).map_err(|_| wrong("a token that is no text"))?;
    let (username, password) =
        text.split_once(':').ok_or_else(|| wrong("a token without user name and password"))?;
    Ok(AuthorizationToken {
        username: username.to_owned(),
        password: Secret::new(password.to_owned()),
        expires: data.expires_at.and_then(timestamp),
    })
}

/// Seconds since the epoch, as a number that may have a fraction.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the range is checked before, and a fraction is cut off on purpose"
)]
fn timestamp(seconds: f64) -> Option<Timestamp> {
    let whole = seconds.floor();
    (whole.abs() < 1e12).then(|| Timestamp::from_second(whole as i64).ok()).flatten()
}

/// An error of AWS's JSON protocol.
#[derive(Default, Deserialize)]
pub(super) struct AwsErrorBody {
    #[serde(rename = "__type", default)]
    kind: String,
    #[serde(alias = "Message", default)]
    message: String,
}

impl AwsErrorBody {
    fn from_response(reply: &HttpResponse) -> Self {
        serde_json::from_slice(reply.body.expose()).unwrap_or_default()
    }

    /// The name, without the namespace some services put in front.
    fn code(&self) -> &str {
        self.kind.rsplit('#').next().unwrap_or_default()
    }
}

/// Throttling comes as a 400.
fn is_throttled(reply: &HttpResponse) -> bool {
    reply.status == 400 && AwsErrorBody::from_response(reply).code().contains("Throttl")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<AuthorizationToken, String> {
        let reply =
            HttpResponse { status: 200, headers: Vec::new(), body: Secret::new(body.as_bytes().to_vec()) };
        decode(AwsService::Ecr, &reply).map_err(|error| error.to_string())
    }

    #[test]
    fn both_forms_of_the_answer_are_read() {
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
    fn every_broken_answer_has_its_sentence_and_no_secret() {
        // I173
        for (body, said) in [
            ("<html>", "what is no authorization data"),
            (r#"{"authorizationData":"canary"}"#, "what is no authorization data"),
            (r#"{"authorizationData":[]}"#, "empty authorization data"),
            ("{}", "empty authorization data"),
            (r#"{"authorizationData":[{}]}"#, "authorization data without a token"),
            (r#"{"authorizationData":[{"authorizationToken":null}]}"#, "authorization data without a token"),
            (r#"{"authorizationData":[{"authorizationToken":"can ary"}]}"#, "a token that is not base64"),
            (
                r#"{"authorizationData":[{"authorizationToken":"Y2FuYXJ5"}]}"#,
                "a token without user name and password",
            ),
        ] {
            let error = read(body).unwrap_err();
            assert!(error.ends_with(said), "{body}: {error}");
            assert!(!error.contains("canary"), "{error}");
        }
    }
}
