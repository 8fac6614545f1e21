//! An OpenID Connect issuer: discovery document, key set, tokens; rotation, outage and hostility on cue.

pub mod hostile;

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use navicert_types::Timestamp;
use serde_json::{Map, Value, json};

use crate::net::answer::Answer;
use crate::net::http_server::{HttpServer, HttpServerBuilder, Request};
use crate::pki::ca::Ca;
use crate::pki::jws::{Algorithm, SigningKey};

const DISCOVERY: &str = "/.well-known/openid-configuration";
const JWKS: &str = "/keys";

/// An issuer over TLS. It is an [`HttpServer`] with something to say, so everything that one can do on cue, from
/// gates to refused connections, this one can too.
///
/// ```
/// use navicert_testkit::pki::jws::{Algorithm, SigningKey};
/// use navicert_testkit::{Answer, Ca, HttpClient, Issuer};
/// use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let ca = Ca::new("issuer example");
/// let issuer = Issuer::start(&ca);
/// let token = issuer.token(&json!({"sub": "ann", "aud": "kubernetes"}));
/// # let _ = token;
///
/// let client = HttpClient::trusting(&ca);
/// let discovery = client.get(&issuer.discovery_url()).await.unwrap().json();
/// assert_eq!(discovery["issuer"], issuer.issuer_url());
///
/// issuer.replace_keys([SigningKey::generate(Algorithm::Es384, "key-2")]); // rotation
/// let keys = client.get(discovery["jwks_uri"].as_str().unwrap()).await.unwrap().json();
/// assert_eq!(keys["keys"][0]["kid"], "key-2");
///
/// issuer.answer(issuer.jwks_path(), Answer::status(503)); // outage
/// assert_eq!(client.get(&issuer.jwks_url()).await.unwrap().status, 503);
/// assert_eq!(issuer.count(issuer.jwks_path()), 2);
/// # }
/// ```
#[derive(Debug)]
pub struct Issuer {
    server: HttpServer,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    /// Where the issuer's paths begin, without a slash at the end.
    path: String,
    discovery_path: String,
    jwks_path: String,
    /// Set when the port is known.
    url: OnceLock<String>,
    says: Mutex<IssuerDocuments>,
}

/// The documents that the issuer currently serves.
#[derive(Debug, Default)]
struct IssuerDocuments {
    keys: Vec<SigningKey>,
    odd_keys: Vec<Value>,
    discovery: Map<String, Value>,
    without: Vec<String>,
    discovery_headers: Vec<(String, String)>,
    jwks_headers: Vec<(String, String)>,
}

impl Issuer {
    /// An issuer at the root of its origin with one ES256 key named `key-1`.
    pub fn start(ca: &Ca) -> Self {
        Issuer::builder().start(ca)
    }

    /// Begins an issuer with other settings.
    pub fn builder() -> IssuerBuilder {
        IssuerBuilder { host: None, path: String::new(), keys: Vec::new(), server: HttpServer::builder() }
    }

    /// What its tokens carry as `iss`: `https://127.0.0.1:port` or another host, and the path.
    ///
    /// # Panics
    /// Never: the URL is set at the start.
    pub fn issuer_url(&self) -> String {
        self.state.url.get().expect("the server is started").clone() + &self.state.path
    }

    /// The URL of the discovery document.
    pub fn discovery_url(&self) -> String {
        self.server.url_of(self.discovery_path())
    }

    /// The path of the discovery document, to count requests or to change its answer.
    pub fn discovery_path(&self) -> &str {
        &self.state.discovery_path
    }

    /// The URL of the key set.
    pub fn jwks_url(&self) -> String {
        self.server.url_of(self.jwks_path())
    }

    /// The path of the key set.
    pub fn jwks_path(&self) -> &str {
        &self.state.jwks_path
    }

    /// The honest discovery document of this moment.
    pub fn discovery_document(&self) -> Value {
        self.state.discovery_document()
    }

    /// The key set of this moment.
    pub fn jwks(&self) -> Value {
        self.state.jwks()
    }

    /// The key that signs: the one added last.
    ///
    /// # Panics
    /// If there is none.
    pub fn key(&self) -> SigningKey {
        self.state.says().keys.last().expect("an issuer without keys cannot sign").clone()
    }

    /// Publishes one more key and signs with it from now on.
    pub fn add_key(&self, key: SigningKey) {
        self.state.says().keys.push(key);
    }

    /// Withdraws the keys with this id.
    ///
    /// # Panics
    /// If there is none.
    pub fn remove_key(&self, id: &str) {
        let mut says = self.state.says();
        let before = says.keys.len();
        says.keys.retain(|key| key.id() != id);
        assert!(says.keys.len() < before, "no key `{id}` to remove");
    }

    /// Publishes these keys and no others; the last one signs.
    pub fn replace_keys(&self, keys: impl IntoIterator<Item = SigningKey>) {
        self.state.says().keys = keys.into_iter().collect();
    }

    /// Publishes one more entry of the key set, whatever it is; see [`hostile::odd_keys`].
    pub fn add_odd_key(&self, jwk: Value) {
        self.state.says().odd_keys.push(jwk);
    }

    /// Withdraws what [`add_odd_key`](Self::add_odd_key) published.
    pub fn remove_odd_keys(&self) {
        self.state.says().odd_keys.clear();
    }

    /// Sends these headers with the key set from now on: `cache-control`, `expires`, `etag` and the like.
    pub fn set_jwks_headers(&self, headers: &[(&str, &str)]) {
        self.state.says().jwks_headers = owned(headers);
    }

    /// Sends these headers with the discovery document from now on.
    pub fn set_discovery_headers(&self, headers: &[(&str, &str)]) {
        self.state.says().discovery_headers = owned(headers);
    }

    /// Replaces one member of the discovery document.
    pub fn set_discovery(&self, member: &str, value: Value) {
        self.state.says().discovery.insert(member.to_owned(), value);
    }

    /// Leaves one member of the discovery document out.
    pub fn remove_discovery(&self, member: &str) {
        self.state.says().without.push(member.to_owned());
    }

    /// A token signed with the current key; `iss` is added if the claims have none.
    pub fn token(&self, claims: &Value) -> String {
        self.key().token(&self.with_issuer(claims))
    }

    /// Claims good for five minutes from `now`: `iss`, `sub`, `aud`, `iat`, `nbf`, `exp`.
    pub fn claims(&self, subject: &str, audience: &str, now: Timestamp) -> Value {
        let now = now.as_second();
        json!({
            "iss": self.issuer_url(), "sub": subject, "aud": audience, "iat": now, "nbf": now, "exp": now + 300,
        })
    }

    fn with_issuer(&self, claims: &Value) -> Value {
        let mut claims = claims.clone();
        if let Some(members) = claims.as_object_mut() {
            members.entry("iss").or_insert_with(|| json!(self.issuer_url()));
        }
        claims
    }
}

impl Deref for Issuer {
    type Target = HttpServer;

    fn deref(&self) -> &HttpServer {
        &self.server
    }
}

/// The settings of an issuer about to start.
#[derive(Debug)]
#[must_use = "nothing listens before `start`"]
pub struct IssuerBuilder {
    host: Option<String>,
    path: String,
    keys: Vec<SigningKey>,
    server: HttpServerBuilder,
}

impl IssuerBuilder {
    /// The issuer calls itself by this host name, with its port, and has a certificate for it. Clients need a proxy to reach it.
    pub fn host(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    /// The issuer lives under this path, e.g. `/realms/one`; a slash at its end becomes part of `iss`.
    pub fn path(mut self, path: &str) -> Self {
        assert!(path.starts_with('/'), "`{path}` does not begin with a slash");
        path.clone_into(&mut self.path);
        self
    }

    /// Publishes this key, and signs with it if it is the last. Without any, an ES256 key `key-1` is made.
    pub fn key(mut self, key: SigningKey) -> Self {
        self.keys.push(key);
        self
    }

    /// Changes the settings of the server below.
    pub fn server(mut self, change: impl FnOnce(HttpServerBuilder) -> HttpServerBuilder) -> Self {
        self.server = change(self.server);
        self
    }

    /// Starts it.
    pub fn start(mut self, ca: &Ca) -> Issuer {
        if self.keys.is_empty() {
            self.keys.push(SigningKey::generate(Algorithm::Es256, "key-1"));
        }
        let below = self.path.trim_end_matches('/');
        let state = Arc::new(State {
            discovery_path: format!("{below}{DISCOVERY}"),
            jwks_path: format!("{below}{JWKS}"),
            path: self.path,
            url: OnceLock::new(),
            says: Mutex::new(IssuerDocuments { keys: self.keys, ..IssuerDocuments::default() }),
        });
        let speaker = Arc::clone(&state);
        let server = self.server.otherwise(move |request| speaker.answer(request));
        let server = match &self.host {
            Some(host) => server.identity(&ca.server().name(host).issue()).start(ca),
            None => server.start(ca),
        };
        let url = match &self.host {
            Some(host) => format!("https://{host}:{}", server.address().port()),
            None => server.url(),
        };
        state.url.set(url).expect("the URL is set once");
        Issuer { server, state }
    }
}

impl State {
    fn answer(&self, request: &Request) -> Answer {
        let with_headers = |answer: Answer, headers: &[(String, String)]| {
            headers.iter().fold(answer, |answer, (name, value)| answer.header(name, value))
        };
        if request.path() == self.discovery_path {
            let document = Answer::json(&self.discovery_document());
            with_headers(document, &self.says().discovery_headers)
        } else if request.path() == self.jwks_path {
            let keys = Answer::json(&self.jwks());
            with_headers(keys, &self.says().jwks_headers)
        } else {
            Answer::status(404)
        }
    }

    fn discovery_document(&self) -> Value {
        let origin = self.url.get().expect("the server is started");
        let endpoint = |path: &str| json!(format!("{origin}{}{path}", self.path.trim_end_matches('/')));
        let says = self.says();
        let mut document = Map::from_iter([
            ("issuer".to_owned(), json!(format!("{origin}{}", self.path))),
            ("jwks_uri".to_owned(), endpoint(JWKS)),
            ("authorization_endpoint".to_owned(), endpoint("/authorize")),
            ("token_endpoint".to_owned(), endpoint("/token")),
            ("response_types_supported".to_owned(), json!(["code"])),
            ("subject_types_supported".to_owned(), json!(["public"])),
            ("id_token_signing_alg_values_supported".to_owned(), json!(Algorithm::ALL.map(Algorithm::name))),
        ]);
        document.extend(says.discovery.clone());
        document.retain(|member, _| !says.without.contains(member));
        Value::Object(document)
    }

    fn jwks(&self) -> Value {
        let says = self.says();
        let keys: Vec<Value> =
            says.keys.iter().map(SigningKey::jwk).chain(says.odd_keys.iter().cloned()).collect();
        json!({"keys": keys})
    }

    fn says(&self) -> MutexGuard<'_, IssuerDocuments> {
        self.says.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn owned(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests;
