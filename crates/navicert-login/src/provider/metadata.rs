//! The discovery document, as far as logins use it.

use navicert_client::oauth::{JsonObject, SecretPlacement, check_address};

use crate::error::LoginError;
use crate::request::LoginRequest;

/// What a provider offers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are the members of the document")]
pub struct Metadata {
    pub issuer: String,
    pub token_endpoint: String,
    pub jwks_uri: String,
    pub authorization_endpoint: Option<String>,
    pub device_authorization_endpoint: Option<String>,
    pub revocation_endpoint: Option<String>,
    pub end_session_endpoint: Option<String>,
    pub pushed_authorization_request_endpoint: Option<String>,
    pub require_pushed_authorization_requests: bool,
    pub scopes_supported: Vec<String>,
    pub grant_types_supported: Vec<String>,
    pub code_challenge_methods_supported: Option<Vec<String>>,
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub token_endpoint_auth_signing_alg_values_supported: Vec<String>,
    pub id_token_signing_alg_values_supported: Vec<String>,
    pub authorization_response_iss_parameter_supported: bool,
}

impl Metadata {
    /// Reads a document and checks it against the request.
    ///
    /// # Errors
    /// It is not a discovery document, belongs to another issuer, or names an address that is not https.
    pub(crate) fn read(body: &[u8], url: &str, request: &LoginRequest) -> Result<Self, LoginError> {
        let discovery = |why: &str| LoginError::Discovery { url: url.to_owned(), why: why.to_owned() };
        let object =
            JsonObject::read(body).ok_or_else(|| discovery("not a JSON object with unique members"))?;
        let issuer = object.text("issuer").ok_or_else(|| discovery("`issuer` is missing"))?;
        if issuer != request.issuer {
            return Err(wrong_issuer(&issuer, &request.issuer));
        }
        let address = |name: &str| match object.text(name) {
            None => Ok(None),
            Some(address) => {
                check_address(&address, &request.issuer).map(|()| Some(address)).map_err(LoginError::from)
            }
        };
        let mtls = |name: &str| {
            let aliases = object.member("mtls_endpoint_aliases")?.as_mapping()?;
            aliases.last(name)?.value.as_str().map(ToOwned::to_owned)
        };
        let endpoint =
            |name: &str| match mtls(name).filter(|_| request.connection.client_certificate.is_some()) {
                Some(alias) => {
                    check_address(&alias, &request.issuer).map(|()| Some(alias)).map_err(LoginError::from)
                }
                None => address(name),
            };
        let required = |name: &str, found: Option<String>| {
            found.ok_or_else(|| discovery(&format!("`{name}` is missing")))
        };
        Ok(Metadata {
            issuer,
            token_endpoint: required("token_endpoint", endpoint("token_endpoint")?)?,
            jwks_uri: required("jwks_uri", address("jwks_uri")?)?,
            authorization_endpoint: address("authorization_endpoint")?,
            device_authorization_endpoint: endpoint("device_authorization_endpoint")?,
            revocation_endpoint: endpoint("revocation_endpoint")?,
            end_session_endpoint: address("end_session_endpoint")?,
            pushed_authorization_request_endpoint: endpoint("pushed_authorization_request_endpoint")?,
            require_pushed_authorization_requests: object.is_true("require_pushed_authorization_requests"),
            scopes_supported: object.texts("scopes_supported").unwrap_or_default(),
            grant_types_supported: object.texts("grant_types_supported").unwrap_or_default(),
            code_challenge_methods_supported: object.texts("code_challenge_methods_supported"),
            token_endpoint_auth_methods_supported: object.texts("token_endpoint_auth_methods_supported"),
            token_endpoint_auth_signing_alg_values_supported: object
                .texts("token_endpoint_auth_signing_alg_values_supported")
                .unwrap_or_default(),
            id_token_signing_alg_values_supported: object
                .texts("id_token_signing_alg_values_supported")
                .unwrap_or_default(),
            authorization_response_iss_parameter_supported: object
                .is_true("authorization_response_iss_parameter_supported"),
        })
    }

    /// Where a client secret goes: into the header, unless the provider lists its methods without it.
    pub(super) fn secret_placement(&self) -> SecretPlacement {
        let methods = self.token_endpoint_auth_methods_supported.as_deref();
        let has_basic =
            methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"));
        if has_basic { SecretPlacement::Header } else { SecretPlacement::Form }
    }

    /// Whether the provider accepts clients without a secret, as far as it says.
    pub(crate) fn accepts_public_clients(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_deref();
        methods.is_none_or(|methods| methods.iter().any(|method| method == "none"))
    }
}

fn wrong_issuer(found: &str, wanted: &str) -> LoginError {
    let found = super::clean(found, 300);
    let hint = if found.contains("{tenantid}") {
        "; use the issuer URL of your tenant, with its id".to_owned()
    } else if found.trim_end_matches('/').eq_ignore_ascii_case(wanted.trim_end_matches('/')) {
        format!("; write exactly --oidc-issuer-url={found}")
    } else {
        String::new()
    };
    LoginError::Issuer { found, wanted: wanted.to_owned(), hint }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::error::ErrorCode;
    use crate::request::Form;

    fn document() -> Value {
        json!({
            "issuer": "https://id.example", "token_endpoint": "https://id.example/t",
            "jwks_uri": "https://keys.example/k", "authorization_endpoint": "https://id.example/a",
        })
    }

    fn read(text: &str) -> Result<Metadata, LoginError> {
        let request = LoginRequest::new(Form::Own, "https://id.example", "c");
        Metadata::read(text.as_bytes(), "https://id.example/.well-known/openid-configuration", &request)
    }

    fn with(name: &str, value: Value) -> String {
        let mut document = document();
        document[name] = value;
        document.to_string()
    }

    // L604
    #[test]
    fn document_must_be_the_issuers_own() {
        assert!(read(&document().to_string()).is_ok());
        for (issuer, hint) in [
            ("https://id.example/", "write exactly --oidc-issuer-url=https://id.example/"),
            ("https://ID.example", "write exactly --oidc-issuer-url=https://ID.example"),
            ("https://login/{tenantid}/v2.0", "your tenant"),
            ("https://evil", ""),
        ] {
            let error = read(&with("issuer", json!(issuer))).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Issuer);
            assert!(error.to_string().contains(hint), "{error}");
        }
    }

    // L604, L603
    #[test]
    fn members_are_required_unique_and_https() {
        for name in ["token_endpoint", "jwks_uri", "issuer"] {
            let error = read(&with(name, Value::Null)).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Discovery, "{name}");
            assert!(error.to_string().contains(name), "{error}");
        }
        for name in ["token_endpoint", "jwks_uri", "authorization_endpoint", "device_authorization_endpoint"]
        {
            for address in ["http://id.example/t", "http://127.0.0.1/t", "javascript:x"] {
                let error = read(&with(name, json!(address))).unwrap_err();
                assert_eq!(error.code(), ErrorCode::Http, "{name} {address}");
            }
        }
        let twice = document().to_string().replacen('{', r#"{"issuer":"https://id.example","#, 1);
        for text in [twice.as_str(), "[]", "", "<html>", &format!("{}1{}", "[".repeat(80), "]".repeat(80))] {
            assert_eq!(read(text).unwrap_err().code(), ErrorCode::Discovery, "{text:.40}");
        }
    }

    // L615
    #[test]
    fn secret_goes_into_the_header_unless_the_provider_says_otherwise() {
        let placement = |methods: Value| {
            read(&with("token_endpoint_auth_methods_supported", methods)).unwrap().secret_placement()
        };
        assert_eq!(placement(Value::Null), SecretPlacement::Header);
        assert_eq!(placement(json!(["client_secret_post", "client_secret_basic"])), SecretPlacement::Header);
        assert_eq!(placement(json!(["client_secret_post"])), SecretPlacement::Form);
    }
}
