//! Demonstrates credential rotation: a plugin's token expires, is revoked and rotates with its certificate, and the client
//! continues without errors.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_testkit::{Answer, ApiServer, Ca, FakeExecPlugin, Kubeconfig};
use navicert_types::{Clock, SystemClock};
use serde_json::json;

use super::{Demo, DemoError, write};

/// The lifetime of a token, and the number of the request whose token the server revokes.
const TOKEN_LIFETIME: Duration = Duration::from_secs(2);
const REVOKED_AT_REQUEST: usize = 4;

/// What the server received.
#[derive(Default)]
struct Received {
    requests: usize,
    revoked: Option<String>,
    rejections: usize,
    tokens: BTreeSet<String>,
    certificates: BTreeSet<String>,
}

/// Runs the demonstration.
pub(super) fn run(demo: &Demo) -> Result<(), DemoError> {
    let ca = Ca::new("demo");
    let (api, received) = (ApiServer::start(&ca), Arc::new(Mutex::new(Received::default())));
    let server = Arc::clone(&received);
    api.answer_with(ApiServer::WHO_AM_I, move |request| {
        let mut received = server.lock().unwrap_or_else(PoisonError::into_inner);
        let token = request.bearer_token().unwrap_or_default().to_owned();
        received.requests += 1;
        if received.requests == REVOKED_AT_REQUEST {
            received.revoked = Some(token.clone());
        }
        if received.revoked.as_ref() == Some(&token) {
            received.rejections += 1;
            return Answer::unauthorized();
        }
        received.tokens.insert(token);
        received.certificates.extend(request.client.as_ref().map(|client| client.common_name.clone()));
        Answer::json(&json!({
            "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
            "status": {"userInfo": {"username": "ann"}},
        }))
    });
    let issuer = ca.clone();
    let plugin_server = FakeExecPlugin::start(move |run| {
        let identity = issuer.client(&format!("ann, certificate {}", run.div_ceil(2))).issue();
        json!({
            "token": format!("this-is-a-secret-{run}"),
            "expirationTimestamp": (SystemClock.now() + TOKEN_LIFETIME).to_string(),
            "clientCertificateData": identity.chain_pem(), "clientKeyData": identity.key_pem(),
        })
    });
    let plugins = demo.dir.path().join("plugins");
    std::fs::create_dir(&plugins)
        .map_err(|error| format!("failed to create {}: {error}", plugins.display()))?;
    let config = Kubeconfig::new(api.url())
        .names("rotating", "demo", "ann")
        .ca_file("demo.crt")
        .exec(plugin_server.write_plugin(&plugins));
    write(&demo.dir.path().join("rotating.yaml"), &config.to_string())?;
    write(&demo.dir.path().join("demo.crt"), &ca.pem())?;

    demo.scene("A plugin's token expires after two seconds, is revoked on the way, and rotates with its certificate.")?;
    demo.run(&["whoami", "--kubeconfig", "rotating.yaml", "--times", "6"], 0)?;
    let received = received.lock().unwrap_or_else(PoisonError::into_inner);
    show!(
        "The server saw {} tokens and {} certificates, and said 401 once; every request was answered.\n",
        received.tokens.len() + 1,
        received.certificates.len()
    )?;
    match (received.rejections, received.tokens.len() >= 2) {
        (1, true) => Ok(()),
        (rejections, _) => {
            Err(format!("expected one rejection, got {rejections}, with {} tokens", received.tokens.len())
                .into())
        }
    }
}
