//! Demonstrates credential rotation: a plugin's token expires, is revoked and rotates with its certificate, and the client
//! continues without errors.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_testkit::{Answer, ApiServer, Ca, FakeExecPlugin};
use navicert_types::{Clock, SystemClock};
use serde_json::json;

use super::{Demo, write};

/// How long a token lives, and the request at which the server revokes the one it sees.
const LIFE: Duration = Duration::from_secs(2);
const REVOKED_AT: usize = 4;

/// What the server remembers.
#[derive(Default)]
struct Seen {
    requests: usize,
    revoked: Option<String>,
    refusals: usize,
    tokens: BTreeSet<String>,
    certificates: BTreeSet<String>,
}

/// Runs the demonstration.
pub(super) fn tell(demo: &Demo) -> Result<(), String> {
    let ca = Ca::new("demo");
    let (api, seen) = (ApiServer::start(&ca), Arc::new(Mutex::new(Seen::default())));
    let server = Arc::clone(&seen);
    api.answer_with(ApiServer::WHO_AM_I, move |request| {
        let mut seen = server.lock().unwrap_or_else(PoisonError::into_inner);
        let token = request.bearer_token().unwrap_or_default().to_owned();
        seen.requests += 1;
        if seen.requests == REVOKED_AT {
            seen.revoked = Some(token.clone());
        }
        if seen.revoked.as_ref() == Some(&token) {
            seen.refusals += 1;
            return Answer::unauthorized();
        }
        seen.tokens.insert(token);
        seen.certificates.extend(request.client.as_ref().map(|client| client.common_name.clone()));
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
            "expirationTimestamp": (SystemClock.now() + LIFE).to_string(),
            "clientCertificateData": identity.chain_pem(), "clientKeyData": identity.key_pem(),
        })
    });
    let plugins = demo.folder.path().join("plugins");
    std::fs::create_dir(&plugins).map_err(|error| format!("cannot make {}: {error}", plugins.display()))?;
    let config = json!({
        "current-context": "rotating",
        "contexts": [{"name": "rotating", "context": {"cluster": "demo", "user": "ann"}}],
        "clusters": [{"name": "demo", "cluster": {"server": api.url(), "certificate-authority": "demo.crt"}}],
        "users": [{"name": "ann", "user": {"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": plugin_server.write_plugin(&plugins),
        }}}],
    });
    write(&demo.folder.path().join("rotating.yaml"), &config.to_string())?;
    write(&demo.folder.path().join("demo.crt"), &ca.pem())?;

    demo.scene("A plugin's token expires after two seconds, is revoked on the way, and rotates with its certificate.");
    demo.run(&["whoami", "--kubeconfig", "rotating.yaml", "--times", "6"], 0)?;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    println!(
        "The server saw {} tokens and {} certificates, and said 401 once; every request was answered.\n",
        seen.tokens.len() + 1,
        seen.certificates.len()
    );
    match (seen.refusals, seen.tokens.len() >= 2) {
        (1, true) => Ok(()),
        (refusals, _) => {
            Err(format!("{refusals} refusals where the story has one, {} tokens", seen.tokens.len()))
        }
    }
}
