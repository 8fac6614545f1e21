//! A certified OpenID provider (npm `oidc-provider`): discovery, a browser login, its ID tokens, and key rotation.
//! `scripts/install-tools` installs it; if it is missing, the test is reported as skipped.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "the provider is a program that runs beside the test, and a test's helpers fail by panicking"
)]

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use navicert_authn::AuthnOutcome;
use navicert_authn::config::{AuthnReloader, BaseProfile, ConfigSources};
use navicert_authn::jwks::JwksContext;
use navicert_client::transport::{ProxyEnvironment, TokioTimer};
use navicert_server::background_tasks::BackgroundTasks;
use navicert_server::fetch::HttpFetch;
use navicert_testkit::{Ca, tools, wait};
use navicert_types::SystemClock;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// The provider, running until dropped.
struct Provider {
    _child: Child,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    issuer: String,
}

impl Provider {
    async fn start(ca: &Ca, dir: &std::path::Path) -> Option<Self> {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        tools::unpacked("oidc-provider", "oidc-provider/node_modules/oidc-provider")?;
        tools::installed("nodejs", "node")?;
        let modules = here.join("../../target/tools/oidc-provider");
        let identity = ca.server().issue();
        for (name, text) in
            [("ca.pem", ca.pem()), ("certificate.pem", identity.chain_pem()), ("key.pem", identity.key_pem())]
        {
            std::fs::write(dir.join(name), text).unwrap();
        }
        let mut child = Command::new("node")
            .arg(here.join("tests/data/openid-provider.mjs"))
            .args([modules, dir.join("certificate.pem"), dir.join("key.pem")])
            .env("NODE_EXTRA_CA_CERTS", dir.join("ca.pem"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let commands = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut provider = Provider { _child: child, commands, answers, issuer: String::new() };
        provider.issuer = provider.answer().await["issuer"].as_str().unwrap().to_owned();
        Some(provider)
    }

    /// The next response line; the provider also logs to the same stream.
    async fn answer(&mut self) -> Value {
        let reading = async {
            loop {
                let line = self.answers.next_line().await.unwrap().expect("the provider has ended");
                if line.starts_with('{') {
                    return serde_json::from_str(&line).unwrap();
                }
            }
        };
        wait::within("an answer of the provider", reading).await
    }

    async fn ask(&mut self, command: &str) -> Value {
        self.commands.write_all(format!("{command}\n").as_bytes()).await.unwrap();
        self.answer().await
    }

    async fn token(&mut self) -> String {
        self.ask("token").await["token"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn accepts_a_certified_providers_tokens_across_key_rotation() {
    let (ca, dir) = (Ca::new("provider"), tempfile::tempdir().unwrap());
    let Some(mut provider) = Provider::start(&ca, dir.path()).await else { return };
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {"url": provider.issuer, "audiences": ["kubernetes"], "certificateAuthority": ca.pem()},
            "claimValidationRules": [{"expression": "claims.email_verified == true", "message": "not verified"}],
            "claimMappings": {"username": {"expression": "claims.email"}},
        }],
    });
    let path = dir.path().join("config.yaml");
    std::fs::write(&path, config.to_string()).unwrap();
    let around = JwksContext {
        fetch: Arc::new(HttpFetch::new(ProxyEnvironment::default())),
        clock: Arc::new(SystemClock),
        random: Arc::new(|| 0.5),
        recorder: Arc::new(()),
    };
    let sources =
        ConfigSources { config: path.into(), navicert_config: None, profile: Some(BaseProfile::Hardened) };
    let reloader = Arc::new(AuthnReloader::open(sources, around).unwrap());
    let live = Arc::clone(reloader.authenticator());
    for refresher in live.refreshers() {
        refresher.run_due().await;
    }
    assert!(live.health()[0].1.is_ready, "{:?}", live.health());
    let _tasks = BackgroundTasks::start(Arc::clone(&reloader), Arc::new(TokioTimer));
    let mut tokens = Vec::new();
    for _ in 0..3 {
        for _ in 0..5 {
            tokens.push(provider.token().await);
        }
        // Accepts every token of every key so far, those of the newest key on first use.
        for token in &tokens {
            let outcome = live.authenticate(token).await;
            let AuthnOutcome::Authenticated(user) = &outcome else { panic!("{outcome:?}") };
            assert_eq!(user.username(), "ann@example.com");
        }
        provider.ask("rotate").await;
    }
}
