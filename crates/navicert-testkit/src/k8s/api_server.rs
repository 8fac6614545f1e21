//! A fake Kubernetes API server: authenticates clients, answers `SelfSubjectReview`, and otherwise responds as the test
//! configures.

mod pod;

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::net::answer::Answer;
use crate::net::http_server::{ClientAuth, HttpServer, HttpServerBuilder, Request};
use crate::pki::ca::Ca;

pub use pod::Pod;

/// An API server over TLS, HTTP/1.1 and HTTP/2. It is an [`HttpServer`], so every request, connection and client
/// certificate is recorded, and any response can be configured.
///
/// By default, clients are authenticated by client certificate (common name, organizations; requested, not required, and
/// not verified, as kube-apiserver does before its HTTP layer) or by a token registered with
/// [`accept_token`](Self::accept_token). Unauthenticated requests get 401 with a `Status`. Other requests get 200: a
/// `SelfSubjectReview` with the user, `/version` with a version, everything else with a `Status` of success.
///
/// ```
/// use navicert_testkit::{ApiServer, Ca, HttpClient};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let ca = Ca::new("API server example");
/// let api = ApiServer::start(&ca);
/// let ann = ca.client("ann").organization("developers").organization("operators").issue();
///
/// let review = HttpClient::with_identity(&ca, &ann).get(&api.url_of(ApiServer::WHO_AM_I)).await.unwrap().json();
/// assert_eq!(review["status"]["userInfo"]["username"], "ann");
/// assert_eq!(review["status"]["userInfo"]["groups"][1], "operators");
///
/// let stranger = HttpClient::trusting(&ca).get(&api.url_of("/api")).await.unwrap();
/// assert_eq!(stranger.status, 401);
/// # }
/// ```
#[derive(Debug)]
pub struct ApiServer {
    server: HttpServer,
    admitted: Arc<Mutex<Admitted>>,
}

#[derive(Default)]
struct Admitted {
    tokens: HashMap<String, User>,
    everyone: bool,
}

/// A user as a `SelfSubjectReview` shows one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
}

impl ApiServer {
    /// Where a `SelfSubjectReview` is posted.
    pub const WHO_AM_I: &'static str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

    /// An API server that asks for client certificates and knows no tokens.
    pub fn start(ca: &Ca) -> Self {
        ApiServer::start_with(ca, |server| server)
    }

    /// The same with other settings of the server below.
    pub fn start_with(ca: &Ca, change: impl FnOnce(HttpServerBuilder) -> HttpServerBuilder) -> Self {
        let admitted = Arc::new(Mutex::new(Admitted::default()));
        let doorman = Arc::clone(&admitted);
        let builder = change(HttpServer::builder().client_auth(ClientAuth::Requested));
        let server = builder
            .otherwise(move |request| {
                let user = doorman.lock().unwrap_or_else(PoisonError::into_inner).user(request);
                answer(request, user.as_ref())
            })
            .start(ca);
        ApiServer { server, admitted }
    }

    /// Accepts a bearer token as this user.
    pub fn accept_token(&self, token: &str, user: &str, groups: &[&str]) {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let user = User { name: user.to_owned(), groups };
        self.admitted().tokens.insert(token.to_owned(), user);
    }

    /// Revokes a token: its requests get a 401.
    ///
    /// # Panics
    /// If it was not accepted before.
    pub fn revoke_token(&self, token: &str) {
        assert!(self.admitted().tokens.remove(token).is_some(), "that token was never accepted");
    }

    /// Accepts every request; without credentials as `system:anonymous`.
    pub fn accept_everyone(&self) {
        self.admitted().everyone = true;
    }

    fn admitted(&self) -> std::sync::MutexGuard<'_, Admitted> {
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for ApiServer {
    type Target = HttpServer;

    fn deref(&self) -> &HttpServer {
        &self.server
    }
}

impl Answer {
    /// A Kubernetes `Status` of failure with this code and reason, as an API server words a refusal.
    ///
    /// ```
    /// let refused = navicert_testkit::Answer::failure(403, "Forbidden", "pods is forbidden");
    /// # let _ = refused;
    /// ```
    pub fn failure(code: u16, reason: &str, message: &str) -> Self {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        });
        Answer::json(&status).with_status(code)
    }

    /// The 401 of an API server.
    pub fn unauthorized() -> Self {
        Answer::failure(401, "Unauthorized", "Unauthorized")
    }
}

impl fmt::Debug for Admitted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.tokens.values()).finish()
    }
}

impl Admitted {
    /// A token is looked at first: a wrong one is refused even beside a good certificate.
    fn user(&self, request: &Request) -> Option<User> {
        if let [authorization, ..] = request.header_values("authorization").as_slice() {
            let token = authorization.strip_prefix("Bearer ")?;
            return self.tokens.get(token).cloned();
        }
        if let Some(client) = &request.client {
            return Some(User { name: client.common_name.clone(), groups: client.organizations.clone() });
        }
        let anonymous =
            || User { name: "system:anonymous".into(), groups: vec!["system:unauthenticated".into()] };
        self.everyone.then(anonymous)
    }
}

fn answer(request: &Request, user: Option<&User>) -> Answer {
    let Some(user) = user else { return Answer::unauthorized() };
    match request.path() {
        ApiServer::WHO_AM_I => Answer::json(&review(user)),
        "/version" => Answer::json(&json!({"major": "1", "minor": "34", "gitVersion": "v1.34.0"})),
        _ => {
            Answer::json(&json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}))
        }
    }
}

fn review(user: &User) -> Value {
    json!({
        "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
        "status": {"userInfo": {"username": user.name, "groups": user.groups}},
    })
}

#[cfg(test)]
mod tests;
