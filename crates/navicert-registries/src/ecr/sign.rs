//! AWS Signature Version 4, computed by AWS's own crate.
// I182

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings};
use aws_sigv4::sign::v4;
use navicert_types::{Secret, Timestamp};

use super::credentials::AwsCredentials;
use crate::error::RegistryError;
use crate::http::HttpRequest;

/// A signed request.
pub(crate) type SignedRequest = HttpRequest;

/// Signs a request with all its headers, host, body and the time.
///
/// # Errors
/// If a header cannot be signed.
pub(crate) fn sign(
    request: HttpRequest,
    credentials: &AwsCredentials,
    region: &str,
    service: &'static str,
    now: Timestamp,
) -> Result<SignedRequest, RegistryError> {
    let failed =
        RegistryError::InvalidResponse { service: "the SigV4 signer", what: "request cannot be signed" };
    let identity = Credentials::new(
        credentials.access_key_id.clone(),
        credentials.secret_access_key.expose().clone(),
        credentials.session_token.as_ref().map(|token| token.expose().clone()),
        None,
        "navicert",
    );
    let identity = identity.into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(service)
        .time(SystemTime::from(now))
        .settings(SigningSettings::default())
        .build();
    let Ok(parameters) = parameters else { return Err(failed) };
    let scheme = if request.url.scheme == crate::http::UrlScheme::Https { "https" } else { "http" };
    let url = format!("{scheme}://{}{}", request.url.authority(), request.url.target);
    let body = request.body.as_ref().map(|body| body.expose().as_slice()).unwrap_or_default();
    let headers = request.headers.iter().map(|(name, value)| (*name, value.expose().as_str()));
    let signable = SignableRequest::new(request.method, url, headers, SignableBody::Bytes(body));
    let Ok(signable) = signable else { return Err(failed) };
    let Ok(output) = aws_sigv4::http_request::sign(signable, &parameters.into()) else { return Err(failed) };
    let (instructions, _) = output.into_parts();
    let (added, _) = instructions.into_parts();
    let added: Vec<(&'static str, Secret<String>)> =
        added.iter().map(|header| (header.name(), Secret::new(header.value().to_owned()))).collect();
    let headers = request.headers.iter().cloned().chain(added).collect();
    Ok(HttpRequest { headers, ..request })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::HttpUrl;

    fn signature(
        host: &str,
        region: &str,
        service: &'static str,
        target: &str,
        token: Option<&str>,
    ) -> String {
        let request = HttpRequest::new("POST", HttpUrl::https(host, "/"))
            .body("application/x-amz-json-1.1", *b"{}")
            .header("x-amz-target", target);
        let credentials = AwsCredentials {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into()),
            session_token: token.map(|token| Secret::new(token.into())),
            expires: None,
        };
        let now = "2024-01-02T03:04:05Z".parse().unwrap();
        let signed = sign(request, &credentials, region, service, now).unwrap();
        let header =
            |name| signed.headers.iter().find(|(known, _)| *known == name).unwrap().1.expose().clone();
        assert_eq!(header("x-amz-date"), "20240102T030405Z");
        header("authorization")
    }

    #[test]
    fn signatures_match_published_vectors() {
        // I182, I274
        let private = ("api.ecr.us-west-2.amazonaws.com", "us-west-2", "ecr");
        let target = "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken";
        let scope =
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20240102/us-west-2/ecr/aws4_request, SignedHeaders=";
        assert_eq!(
            signature(private.0, private.1, private.2, target, None),
            format!(
                "{scope}content-type;host;x-amz-date;x-amz-target, \
                 Signature=b25bfdfb6d2ebf03e86d3c3e85c5304fb49107603ee87ddd08e21230f538a79b"
            )
        );
        assert_eq!(
            signature(private.0, private.1, private.2, target, Some("TESTTOKEN")),
            format!(
                "{scope}content-type;host;x-amz-date;x-amz-security-token;x-amz-target, \
                 Signature=286797dd091723d6aabb79bc86f4efa49e6ab45e3136fca0598812b5c4a36085"
            )
        );
        let public = "api.ecr-public.us-east-1.amazonaws.com";
        let target = "SpencerFrontendService.GetAuthorizationToken";
        let signed = signature(public, "us-east-1", "ecr-public", target, None);
        assert!(
            signed.ends_with("Signature=ba8a0327d60f8b79587a551cd95e5eb53013bda3e0fa2c7c5571237053c25ed4"),
            "{signed}"
        );
    }
}
