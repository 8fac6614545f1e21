//! Scopes and parameters that several grants send.

use navicert_types::Secret;

use crate::error::LoginError;
use crate::provider::Metadata;
use crate::random;
use crate::request::{Form, LoginRequest, PkceMethod};

/// Issuers with defaults of their own.
const GOOGLE: &str = "https://accounts.google.com";
const ENTRA: [&str; 2] = ["https://login.microsoftonline.com/", "https://sts.windows.net/"];

/// The scopes of a login, separated by spaces.
pub(crate) fn requested_scopes(request: &LoginRequest, metadata: &Metadata) -> String {
    let mut scopes: Vec<&str> = Vec::new();
    let extra = request.extra_scopes.iter().map(String::as_str);
    match request.form {
        Form::Compatible => {
            scopes.extend(extra);
            scopes.push("openid");
        }
        Form::Own => {
            scopes.push("openid");
            let offers = metadata.scopes_supported.iter().any(|scope| scope == "offline_access");
            if offers && !request.no_refresh_token {
                scopes.push("offline_access");
            }
            scopes.extend(extra);
        }
    }
    let mut unique: Vec<&str> = Vec::with_capacity(scopes.len());
    for scope in scopes {
        let is_unwanted = request.no_refresh_token && scope == "offline_access";
        if !is_unwanted && !unique.contains(&scope) {
            unique.push(scope);
        }
    }
    unique.join(" ")
}

/// Parameters of the flags, for the authorization and the device request.
pub(super) fn flag_parameters(request: &LoginRequest) -> Vec<(String, String)> {
    let parameters = &request.parameters;
    let mut found: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        found.extend(value.map(|value| (name.to_owned(), value)));
    };
    add("login_hint", parameters.login_hint.clone());
    add("prompt", parameters.prompt.clone());
    add("max_age", parameters.max_age.map(|age| age.to_string()));
    add("acr_values", parameters.acr_values.clone());
    add("ui_locales", parameters.ui_locales.clone());
    for audience in &parameters.audiences {
        add("audience", Some(audience.clone()));
    }
    for resource in &parameters.resources {
        add("resource", Some(resource.clone()));
    }
    found.extend(parameters.extra.iter().cloned());
    found
}

/// Whether the provider needs `access_type=offline` for a refresh token.
pub(super) fn wants_offline_access_type(request: &LoginRequest) -> bool {
    !request.no_refresh_token && (request.form == Form::Compatible || request.issuer == GOOGLE)
}

/// Google sends a refresh token again only if the person consents again.
pub(super) fn wants_consent_prompt(request: &LoginRequest) -> bool {
    request.issuer == GOOGLE && !request.no_refresh_token && request.parameters.prompt.is_none()
}

/// Whether the redirect URI's host is `localhost`, without a path.
pub(super) fn redirects_to_localhost(request: &LoginRequest) -> bool {
    request.form == Form::Compatible || ENTRA.iter().any(|start| request.issuer.starts_with(start))
}

/// The PKCE verifier, unless PKCE is disabled.
pub(super) fn pkce_verifier(
    request: &LoginRequest,
    metadata: &Metadata,
) -> Result<Option<Secret<String>>, LoginError> {
    let listed = metadata.code_challenge_methods_supported.as_deref();
    let lacks_s256 =
        listed.is_some_and(|methods| !methods.is_empty() && !methods.iter().any(|method| method == "S256"));
    match request.browser.pkce {
        PkceMethod::No if request.client.is_present() || request.issuer.starts_with("http://") => Ok(None),
        PkceMethod::No => Err(LoginError::Usage(
            "--oidc-pkce-method=no needs a client secret or key: without both, a stolen code is a session"
                .to_owned(),
        )),
        PkceMethod::Auto if lacks_s256 => Err(LoginError::Pkce {
            host: request.host().to_owned(),
            description: "it lists other methods than S256 only; use --oidc-pkce-method=no".to_owned(),
        }),
        PkceMethod::Auto | PkceMethod::S256 => random::secret().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(request: &LoginRequest, extra: &serde_json::Value) -> Metadata {
        let mut document = json!({
            "issuer": request.issuer, "token_endpoint": "https://i/t", "jwks_uri": "https://i/k",
        });
        document.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        Metadata::read(document.to_string().as_bytes(), "", request).unwrap()
    }

    // L120
    #[test]
    fn scopes_depend_on_the_form() {
        let mut request = LoginRequest::new(Form::Own, "https://i", "c");
        request.extra_scopes = vec!["email".to_owned(), "openid".to_owned(), "email".to_owned()];
        let offers = json!({"scopes_supported": ["openid", "offline_access"]});
        assert_eq!(requested_scopes(&request, &metadata(&request, &offers)), "openid offline_access email");
        assert_eq!(requested_scopes(&request, &metadata(&request, &json!({}))), "openid email");
        request.form = Form::Compatible;
        assert_eq!(requested_scopes(&request, &metadata(&request, &offers)), "email openid");
        request.form = Form::Own;
        request.no_refresh_token = true;
        request.extra_scopes.push("offline_access".to_owned());
        assert_eq!(requested_scopes(&request, &metadata(&request, &offers)), "openid email");
    }

    // L120, L1501
    #[test]
    fn only_two_issuers_have_defaults_of_their_own() {
        let google = LoginRequest::new(Form::Own, "https://accounts.google.com", "c");
        let other = LoginRequest::new(Form::Own, "https://i", "c");
        let entra = LoginRequest::new(Form::Own, "https://login.microsoftonline.com/t/v2.0", "c");
        assert!(wants_offline_access_type(&google) && wants_consent_prompt(&google));
        assert!(!wants_offline_access_type(&other) && !wants_consent_prompt(&other));
        assert!(wants_offline_access_type(&LoginRequest { form: Form::Compatible, ..other.clone() }));
        assert!(redirects_to_localhost(&entra) && !redirects_to_localhost(&other));
    }

    // L703
    #[test]
    fn pkce_is_used_unless_disabled_for_a_confidential_client() {
        let mut request = LoginRequest::new(Form::Own, "https://i", "c");
        let silent = metadata(&request, &json!({}));
        let plain = metadata(&request, &json!({"code_challenge_methods_supported": ["plain"]}));
        assert!(pkce_verifier(&request, &silent).unwrap().is_some());
        assert_eq!(pkce_verifier(&request, &plain).unwrap_err().code().as_str(), "pkce");
        request.browser.pkce = PkceMethod::S256;
        assert!(pkce_verifier(&request, &plain).unwrap().is_some());
        request.browser.pkce = PkceMethod::No;
        assert!(pkce_verifier(&request, &plain).is_err());
        request.client.assertion_file = Some("/x".into());
        assert_eq!(pkce_verifier(&request, &plain).unwrap(), None);
    }
}
