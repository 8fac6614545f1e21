//! Configurations, and a server for the router of the axum example.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use axum::Router;
use bytes::Bytes;
use http::Request;
use navicert_testkit::net::http_client::Reply;
use navicert_testkit::{Ca, HttpClient, Issuer, wait};
use navicert_tower::AuthnLayer;
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

/// An `AuthenticationConfiguration` with this issuer: audiences `aud1` and `aud2`, name and groups.
pub(crate) fn config(issuer: &Issuer, ca: &Ca, prefix: &str) -> String {
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {
                "url": issuer.issuer_url(), "certificateAuthority": ca.pem(),
                "audiences": ["aud1", "aud2"], "audienceMatchPolicy": "MatchAny",
            },
            "claimMappings": {
                "username": {"claim": "sub", "prefix": prefix}, "groups": {"claim": "groups", "prefix": ""},
            },
        }],
    });
    config.to_string()
}

pub(crate) fn write(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join("auth.yaml");
    std::fs::write(&path, text).unwrap();
    path
}

/// Ann's token for this audience, with more claims.
pub(crate) fn token(issuer: &Issuer, audience: &str, more: Value) -> String {
    let mut claims = issuer.claims("ann", audience, SystemClock.now());
    let Value::Object(more) = more else { panic!("claims are an object") };
    claims.as_object_mut().unwrap().extend(more);
    issuer.token(&claims)
}

/// Waits until the issuers' keys are there.
pub(crate) async fn ready(authn: &AuthnLayer) {
    wait::within("the issuers' keys", async {
        while !authn.is_ready() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A running server, stopped when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    client: HttpClient,
    task: AbortHandle,
}

impl Server {
    pub(crate) async fn start(app: Router) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() }).abort_handle();
        Server { address, client: HttpClient::trusting(&Ca::new("unused: plain http")), task }
    }

    /// `GET /user` with these headers.
    pub(crate) async fn get(&self, headers: &[(&str, &[u8])]) -> Reply {
        let mut request = Request::get(format!("http://{}/user", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.client.send(request.body(Bytes::new()).unwrap()).await.unwrap()
    }

    pub(crate) async fn get_with_token(&self, token: &str) -> Reply {
        self.get(&[("authorization", format!("Bearer {token}").as_bytes())]).await
    }

    pub(crate) async fn get_path_with_token(&self, path: &str, token: &str) -> Reply {
        let request = Request::get(format!("http://{}{path}", self.address));
        let request = request.header("authorization", format!("Bearer {token}"));
        self.client.send(request.body(Bytes::new()).unwrap()).await.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Fails unless a response is the 401 that every rejected request gets.
pub(crate) fn assert_unauthorized(reply: &Reply, what: &str) {
    let found = (reply.status.as_u16(), reply.header("www-authenticate"), reply.text());
    assert_eq!(found, (401, Some("Bearer"), ""), "{what}");
}
