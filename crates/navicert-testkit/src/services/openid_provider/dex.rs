//! dex with its own keys in memory and its mock connector. `make peers-tools` builds it.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use super::AUDIENCE;
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
        let config = dir.join("dex.json");
        // dex takes no port 0; the port was free a moment ago, and nothing else is given it so soon.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free loopback port");
        let listen = listener.local_addr().expect("a bound socket has an address");
        drop(listener);
        let settings = json!({
            "issuer": issuer,
            "storage": {"type": "memory"},
            "web": {"http": listen.to_string()},
            "connectors": [{
                "type": "mockPassword", "id": "mock", "name": "mock",
                "config": {"username": "ann", "password": "any"},
            }],
            "oauth2": {"passwordConnector": "mock", "skipApprovalScreen": true},
            "staticClients": [{"id": AUDIENCE, "name": AUDIENCE, "secret": "loopback", "redirectURIs": ["https://client.example/"]}],
            "expiry": {"signingKeys": key_lifetime, "idTokens": "1h"},
        });
        std::fs::write(&config, settings.to_string()).expect("dex's configuration");
        let dex = Dex {
            program: Program::new(program).arguments(["serve".as_ref(), config.as_os_str()]).directory(dir),
            running: Mutex::default(),
            address: format!("http://{listen}"),
            // No TLS to this address: any authority will do.
            client: HttpClient::trusting(&Ca::new("unused")),
        };
        dex.restart().await;
        Some(dex)
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

fn basic(user: &str, password: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"))
}
