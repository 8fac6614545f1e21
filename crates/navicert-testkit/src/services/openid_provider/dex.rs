//! dex with its own keys in memory and its mock connector. `make peers-tools` builds it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use super::{AUDIENCE, LOGIN_CLIENT, free_address};
use crate::cli::program::{Program, Running};
use crate::cli::tools;
use crate::net::http_client::HttpClient;
use crate::pki::ca::Ca;
use crate::wait;

/// dex, running until dropped. It serves HTTP without TLS, for a proxy in front of it.
#[derive(Debug)]
pub struct Dex {
    program: Program,
    running: Mutex<Option<Running>>,
    address: String,
    client: HttpClient,
}

impl Dex {
    /// Starts it with its configuration in `dir`. It rotates its keys by itself after `key_lifetime`, such as `1m`; it looks
    /// twice a minute whether that has passed. `None`, reported as skipped, if it is not installed.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(dir: &Path, issuer: &str, key_lifetime: &str) -> Option<Self> {
        let program = tools::peer_tool("dex", "dex")?;
        let listen = free_address();
        let settings = json!({
            "issuer": issuer,
            "storage": {"type": "memory"},
            "web": {"http": listen.to_string()},
            "connectors": connectors(),
            "oauth2": {"passwordConnector": "mock", "skipApprovalScreen": true},
            "staticClients": [{"id": AUDIENCE, "name": AUDIENCE, "secret": "loopback", "redirectURIs": ["https://client.example/"]}],
            "expiry": {"signingKeys": key_lifetime, "idTokens": "1h"},
        });
        // No TLS to this address: any authority will do.
        Some(Self::run(&program, dir, &settings, format!("http://{listen}"), &Ca::new("unused")).await)
    }

    /// Starts it for logins in a browser, with a certificate of `ca`, and returns it with the file of that CA: its address is its issuer, its client
    /// is [`LOGIN_CLIENT`], its user `ann` with the password `any`. Refresh tokens are used once. `None`, reported as skipped, if it is
    /// not installed.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_for_login(ca: &Ca, dir: &Path) -> Option<(Self, PathBuf)> {
        let program = tools::peer_tool("dex", "dex")?;
        let (listen, files) = (free_address(), super::write_identity(ca, dir));
        let settings = json!({
            "issuer": format!("https://{listen}"),
            "storage": {"type": "memory"},
            "web": {"https": listen.to_string(), "tlsCert": files.certificate, "tlsKey": files.key},
            "connectors": connectors(),
            "oauth2": {"skipApprovalScreen": true},
            // Without redirect URIs a public client may use any loopback address.
            "staticClients": [{"id": LOGIN_CLIENT, "name": LOGIN_CLIENT, "public": true}],
            "expiry": {"idTokens": "1h", "refreshTokens": {"reuseInterval": "0s"}},
        });
        let dex = Self::run(&program, dir, &settings, format!("https://{listen}"), ca).await;
        Some((dex, files.ca))
    }

    async fn run(program: &Path, dir: &Path, settings: &Value, address: String, ca: &Ca) -> Self {
        let config = dir.join("dex.json");
        std::fs::write(&config, settings.to_string()).expect("dex's configuration");
        let dex = Dex {
            program: Program::new(program).arguments(["serve".as_ref(), config.as_os_str()]).directory(dir),
            running: Mutex::default(),
            address,
            client: HttpClient::trusting(ca),
        };
        dex.restart().await;
        dex
    }

    /// The URL where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Starts it again. Its keys are in memory: it then has new ones, and the earlier ones are gone.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn restart(&self) {
        self.replace(None); // the port has to be free first
        self.replace(Some(self.program.start_running().expect("dex starts")));
        let url = format!("{}/keys", self.address);
        let answers = async {
            // Until it listens, connections are refused; until it has keys, the status is 500.
            while !self.client.get(&url).await.is_ok_and(|reply| reply.status == 200) {
                tokio::task::yield_now().await;
            }
        };
        if tokio::time::timeout(wait::LIMIT, answers).await.is_err() {
            panic!("dex does not serve keys: {}", self.output());
        }
    }

    /// A new ID token of the mock connector's user, signed with the newest key.
    ///
    /// # Panics
    /// If dex does not issue one.
    pub async fn token(&self) -> String {
        let form = "grant_type=password&scope=openid&username=ann&password=any";
        let request = Request::post(format!("{}/token", self.address))
            .header("content-type", "application/x-www-form-urlencoded")
            .header("authorization", format!("Basic {}", basic(AUDIENCE, "loopback")))
            .body(Bytes::from_static(form.as_bytes()))
            .expect("a request");
        let reply = self.client.send(request).await.expect("dex answers");
        let token = reply.json().get("id_token").and_then(Value::as_str).map(str::to_owned);
        token.unwrap_or_else(|| panic!("dex issued no token ({}): {}", reply.status, self.output()))
    }

    fn replace(&self, running: Option<Running>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = running;
    }

    fn output(&self) -> String {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.as_ref().map(Running::output).unwrap_or_default()
    }
}

/// One user, with a login form.
fn connectors() -> Value {
    json!([{"type": "mockPassword", "id": "mock", "name": "mock", "config": {"username": "ann", "password": "any"}}])
}

fn basic(user: &str, password: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"))
}
