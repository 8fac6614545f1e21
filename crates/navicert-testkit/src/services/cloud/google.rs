//! Google's metadata server and security token service.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::request_violations::RequestViolations;
use crate::net::answer::Answer;
use crate::net::http_server::{HttpServer, Request};

/// Google on one loopback port.
#[derive(Debug)]
pub struct Google {
    server: HttpServer,
    violations: RequestViolations,
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Debug, Default)]
struct State {
    token: String,
    expires_in: Option<u64>,
    attributes: Vec<(String, String)>,
    /// Audience and token that are exchanged, and for what.
    exchange: Option<(String, String, String)>,
}

impl Google {
    /// Starts it, with an access token for the machine's service account that is good for so many seconds.
    pub fn start(token: &str, expires_in: Option<u64>) -> Self {
        let violations = RequestViolations::default();
        let state = State { token: token.to_owned(), expires_in, ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let (known, recorded) = (Arc::clone(&state), violations.clone());
        let answer = move |request: &Request| {
            let state = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match request.path() {
                "/v1/token" => exchange(&state, &recorded, request),
                path => match path.strip_prefix("/computeMetadata/v1/instance/") {
                    Some(path) => metadata(&state, &recorded, request, path),
                    None => {
                        recorded.add(format!("unexpected path {path}"));
                        Answer::status(404)
                    }
                },
            }
        };
        let server = HttpServer::builder().otherwise(answer).start_plain();
        Google { server, violations, state }
    }

    /// The HTTP server: URL, recorded requests and fault injection.
    pub fn server(&self) -> &HttpServer {
        &self.server
    }

    /// Host and port, as `GCE_METADATA_HOST` has them.
    pub fn host(&self) -> String {
        self.server.address().to_string()
    }

    /// Violations found in the requests.
    pub fn violations(&self) -> &RequestViolations {
        &self.violations
    }

    /// Gives the machine an attribute.
    pub fn attribute(&self, name: &str, value: &str) {
        self.change(|state| state.attributes.push((name.to_owned(), value.to_owned())));
    }

    /// Exchanges this token, shown for this audience, for that one.
    pub fn exchange(&self, audience: &str, subject: &str, access: &str) {
        self.change(|state| {
            state.exchange = Some((audience.to_owned(), subject.to_owned(), access.to_owned()));
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn metadata(state: &State, violations: &RequestViolations, request: &Request, path: &str) -> Answer {
    let headers = [("metadata-flavor", "Google"), ("user-agent", "GKE auth-provider-gcp image pull")];
    violations.expect(request, "GET", &headers);
    let answer = match path {
        "service-accounts/default/token" => {
            let mut token = json!({"access_token": state.token, "token_type": "Bearer"});
            if let Some(expires_in) = state.expires_in {
                token["expires_in"] = json!(expires_in);
            }
            Answer::json(&token)
        }
        path => {
            let name = path.strip_prefix("attributes/").unwrap_or_default();
            match state.attributes.iter().find(|(known, _)| known == name) {
                Some((_, value)) => Answer::text(value),
                None => Answer::text("not found").with_status(404),
            }
        }
    };
    answer.header("metadata-flavor", "Google")
}

fn exchange(state: &State, violations: &RequestViolations, request: &Request) -> Answer {
    violations.expect(request, "POST", &[("content-type", "application/json")]);
    let (audience, subject, access) = state.exchange.clone().unwrap_or_default();
    let expected = json!({
        "audience": audience,
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "scope": "https://www.googleapis.com/auth/cloud-platform",
        "subject_token": subject,
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
    });
    let sent = request.json();
    if sent == expected {
        return Answer::json(&json!({"access_token": access, "expires_in": 3600, "token_type": "Bearer"}));
    }
    let shown = format!("Invalid value for \"audience\" or token {}", sent["subject_token"]);
    Answer::json(&json!({"error": "invalid_grant", "error_description": shown})).with_status(400)
}
