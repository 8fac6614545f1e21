//! What an error answer of the provider means, and what the person can do about it.

use navicert_client::oauth::OAuthFailure;

use super::client_auth::ClientAuth;
use super::metadata::Metadata;
use crate::error::LoginError;
use crate::request::LoginRequest;

/// Why there is no token answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenFailure {
    /// The provider answered with an error.
    OAuth(OAuthFailure),
    /// Anything else.
    Login(LoginError),
}

impl From<LoginError> for TokenFailure {
    fn from(error: LoginError) -> Self {
        TokenFailure::Login(error)
    }
}

/// The sentence for an error answer. `redirect_uri` and `grant` are those of the request.
pub(crate) fn classify(
    failure: &OAuthFailure,
    request: &LoginRequest,
    metadata: Option<&Metadata>,
    redirect_uri: &str,
    grant: &str,
) -> LoginError {
    let (host, client) = (request.host().to_owned(), request.client_id.clone());
    let (code, description) = (failure.code.as_str(), failure.description.clone());
    let lower = description.to_ascii_lowercase();
    let mentions = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    let joined = |texts: Option<&Vec<String>>| texts.map(|texts| texts.join(" ")).unwrap_or_default();
    if mentions(&["aadsts9002327", "cross-origin"]) {
        return LoginError::Cors { client };
    }
    if code == "consent_required" || mentions(&["aadsts65001"]) {
        return LoginError::Consent { client };
    }
    if mentions(&["aadsts50199", "aadsts53003"]) {
        return LoginError::DeviceBlocked { host };
    }
    let is_request_fault = matches!(code, "invalid_request" | "invalid_grant" | "redirect_mismatch");
    if mentions(&["aadsts50011"])
        || code == "redirect_mismatch"
        || is_request_fault && mentions(&["redirect_uri", "redirect uri"])
    {
        return LoginError::RedirectUri { host, uri: redirect_uri.to_owned(), client };
    }
    if is_request_fault && mentions(&["code_challenge", "pkce"]) {
        return LoginError::Pkce { host, description };
    }
    match code {
        "access_denied" => LoginError::Denied { host, description },
        "invalid_client" | "unauthorized_client" => {
            let is_public = ClientAuth::load(request).is_ok_and(|auth| auth.is_public());
            match metadata.is_some_and(|metadata| !metadata.accepts_public_clients()) && is_public {
                true => LoginError::SecretMissing { host, client },
                false => LoginError::Client { host, client, description },
            }
        }
        "invalid_scope" => LoginError::Scope {
            host,
            scopes: request.extra_scopes.join(" "),
            description,
            supported: joined(metadata.map(|metadata| &metadata.scopes_supported)),
        },
        "unsupported_grant_type" => LoginError::Grant {
            host,
            grant: grant.to_owned(),
            offered: joined(metadata.map(|metadata| &metadata.grant_types_supported)),
        },
        "invalid_dpop_proof" | "use_dpop_nonce" => LoginError::TokenType { host, found: "DPoP".to_owned() },
        "temporarily_unavailable" | "server_error" => {
            LoginError::ProviderFault { host, why: code.to_owned() }
        }
        _ => LoginError::ProviderError { host, code: code.to_owned(), description },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::request::{Form, SecretSource};

    fn code_of(
        code: &str,
        description: &str,
        request: &LoginRequest,
        methods: &serde_json::Value,
    ) -> &'static str {
        let document = json!({
            "issuer": "https://i", "token_endpoint": "https://i/t", "jwks_uri": "https://i/k",
            "token_endpoint_auth_methods_supported": methods,
        });
        let metadata = Metadata::read(document.to_string().as_bytes(), "", request).unwrap();
        let failure = OAuthFailure::new(code, description);
        classify(&failure, request, Some(&metadata), "http://127.0.0.1:1/callback", "device-code")
            .code()
            .as_str()
    }

    // L1203, L1207, L1208, L1209, L1210, L1213, L1214, L1224, L1225, L1226, L1227, L1330
    #[test]
    fn error_answers_have_their_own_codes() {
        let request = LoginRequest::new(Form::Own, "https://i", "c");
        for (code, description, expected) in [
            ("access_denied", "no", "denied"),
            ("invalid_grant", "Incorrect redirect_uri", "redirect-uri"),
            ("invalid_request", "AADSTS50011: mismatch", "redirect-uri"),
            ("redirect_mismatch", "", "redirect-uri"),
            ("invalid_client", "", "client"),
            ("unauthorized_client", "", "client"),
            ("invalid_scope", "", "scope"),
            ("unsupported_grant_type", "", "grant"),
            ("invalid_request", "Missing parameter: code_challenge_method", "pkce"),
            ("server_error", "", "provider-fault"),
            ("invalid_request", "AADSTS9002327: Tokens", "cors"),
            ("consent_required", "", "consent"),
            ("invalid_grant", "AADSTS65001", "consent"),
            ("access_denied", "AADSTS53003", "device-blocked"),
            ("use_dpop_nonce", "", "token-type"),
            ("not_allowed", "Offline tokens not allowed", "provider-error"),
        ] {
            assert_eq!(
                code_of(code, description, &request, &json!(["none"])),
                expected,
                "{code} {description}"
            );
        }
        assert_eq!(
            code_of("invalid_client", "", &request, &json!(["client_secret_basic"])),
            "secret-missing"
        );
        let mut with_secret = request;
        with_secret.client.secret = Some(SecretSource::Argument("s".to_owned().into()));
        assert_eq!(code_of("invalid_client", "", &with_secret, &json!(["client_secret_basic"])), "client");
    }
}
