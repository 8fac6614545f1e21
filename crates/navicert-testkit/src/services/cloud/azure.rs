//! Azure's metadata server, directory and registry, and a custom cloud that describes itself.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::request_violations::RequestViolations;
use crate::net::answer::Answer;
use crate::net::http_server::{HttpServer, Request};

/// Azure on one loopback port.
#[derive(Debug)]
pub struct Azure {
    server: HttpServer,
    violations: RequestViolations,
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Debug, Default)]
struct State {
    access_token: String,
    refresh_token: String,
    realm: String,
    service: String,
    tenant: String,
    /// Name and value of the parameter that says which of the machine's identities is meant.
    which: Option<(String, String)>,
    /// An application and the token that proves to be it.
    application: Option<(String, String)>,
    /// What the custom cloud says of itself.
    suffix: String,
}

impl Azure {
    /// Starts it, for a registry with this login server in this tenant.
    pub fn start(login_server: &str, tenant: &str) -> Self {
        let state = State {
            access_token: "access-token-of-the-directory".to_owned(),
            refresh_token: "refresh-token-of-the-registry".to_owned(),
            realm: format!("https://{login_server}/oauth2/token"),
            service: login_server.to_owned(),
            tenant: tenant.to_owned(),
            ..State::default()
        };
        let violations = RequestViolations::default();
        let state = Arc::new(Mutex::new(state));
        let (known, recorded) = (Arc::clone(&state), violations.clone());
        let answer = move |request: &Request| {
            let state = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
            reply(&state, &recorded, request)
        };
        let server = HttpServer::builder().otherwise(answer).start_plain();
        Azure { server, violations, state }
    }

    /// The HTTP server: URL, recorded requests and fault injection.
    pub fn server(&self) -> &HttpServer {
        &self.server
    }

    /// Violations found in the requests.
    pub fn violations(&self) -> &RequestViolations {
        &self.violations
    }

    /// The tokens from now on. The registry's becomes a JSON web token that ends at this second, and is returned.
    pub fn hand_out(&self, access_token: &str, refresh_token: &str, expires_at: i64) -> String {
        let payload = URL_SAFE_NO_PAD.encode(json!({"exp": expires_at}).to_string());
        let token = format!("e30.{payload}.{refresh_token}");
        self.change(|state| {
            access_token.clone_into(&mut state.access_token);
            state.refresh_token.clone_from(&token);
        });
        token
    }

    /// Which of the machine's identities has to be asked for.
    pub fn expect_identity(&self, parameter: &str, value: &str) {
        self.change(|state| state.which = Some((parameter.to_owned(), value.to_owned())));
    }

    /// An application that proves itself with this token.
    pub fn trust(&self, client_id: &str, assertion: &str) {
        self.change(|state| state.application = Some((client_id.to_owned(), assertion.to_owned())));
    }

    /// Where the registry's challenge sends people.
    pub fn realm(&self, realm: &str) {
        self.change(|state| realm.clone_into(&mut state.realm));
    }

    /// The suffix of a custom cloud's registries.
    pub fn suffix(&self, suffix: &str) {
        self.change(|state| suffix.clone_into(&mut state.suffix));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

const RESOURCE: &str = "https://containerregistry.azure.net";
const AGENT: (&str, &str) = ("user-agent", "kubernetes-credentialprovider-acr");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

fn reply(state: &State, violations: &RequestViolations, request: &Request) -> Answer {
    let directory = format!("/{}/oauth2/v2.0/token", state.tenant);
    match request.path() {
        "/metadata/identity/oauth2/token" => {
            violations.expect(request, "GET", &[("metadata", "true")]);
            let mut fields = vec![("api-version", "2018-02-01"), ("resource", RESOURCE)];
            fields.extend(state.which.iter().map(|(name, value)| (name.as_str(), value.as_str())));
            violations.expect_form("the metadata server", request.query().unwrap_or_default(), &fields);
            Answer::json(
                &json!({"access_token": state.access_token, "expires_in": "86399", "expires_on": "1"}),
            )
        }
        path if path == directory => application(state, violations, request),
        "/metadata/endpoints" => {
            violations.expect(request, "GET", &[]);
            let cloud = json!({
                "name": "custom", "suffixes": {"acrLoginServer": state.suffix},
                "authentication": {"loginEndpoint": format!("http://{}", request.header("host").unwrap_or_default())},
            });
            Answer::json(&json!([cloud]))
        }
        "/v2/" => {
            violations.expect(request, "GET", &[AGENT]);
            let challenge = format!("Bearer realm=\"{}\",service=\"{}\"", state.realm, state.service);
            Answer::status(401).header("www-authenticate", &challenge)
        }
        "/oauth2/exchange" => {
            violations.expect(request, "POST", &[AGENT, FORM]);
            let fields = [
                ("access_token", state.access_token.as_str()),
                ("grant_type", "access_token_refresh_token"),
                ("refresh_token", &state.access_token),
                ("service", &state.service),
                ("tenant", &state.tenant),
            ];
            violations.expect_form("the exchange", request.text(), &fields);
            Answer::json(&json!({"refresh_token": state.refresh_token}))
        }
        path => {
            violations.add(format!("unexpected path {path}"));
            Answer::status(404)
        }
    }
}

fn application(state: &State, violations: &RequestViolations, request: &Request) -> Answer {
    violations.expect(request, "POST", &[FORM]);
    let (client_id, assertion) = state.application.clone().unwrap_or_default();
    let scope = format!("{RESOURCE}/.default");
    let fields = [
        ("grant_type", "client_credentials"),
        ("client_id", client_id.as_str()),
        ("client_assertion", &assertion),
        ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
        ("scope", &scope),
    ];
    violations.expect_form("the directory", request.text(), &fields);
    Answer::json(&json!({"access_token": state.access_token, "expires_in": 3599, "token_type": "Bearer"}))
}
