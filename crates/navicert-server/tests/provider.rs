//! A certified OpenID provider (npm `oidc-provider`): discovery, a browser login, its ID tokens, and key rotation.
//! `scripts/install-tools` installs it; if it is missing, the test is reported as skipped.

use std::sync::Arc;

use navicert_authn::AuthnOutcome;
use navicert_authn::config::{AuthnReloader, BaseProfile, ConfigSources};
use navicert_authn::jwks::JwksContext;
use navicert_client::transport::{ProxyEnvironment, TokioTimer};
use navicert_server::background_tasks::BackgroundTasks;
use navicert_server::fetch::HttpFetch;
use navicert_testkit::Ca;
use navicert_testkit::services::openid_provider::{AUDIENCE, NpmProvider};
use navicert_types::SystemClock;
use serde_json::json;

#[tokio::test]
async fn accepts_a_certified_providers_tokens_across_key_rotation() {
    let (ca, dir) = (Ca::new("provider"), tempfile::tempdir().unwrap());
    let Some(provider) = NpmProvider::start(&ca, dir.path(), None).await else { return };
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {"url": provider.issuer(), "audiences": [AUDIENCE], "certificateAuthority": ca.pem()},
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
    let sources = ConfigSources {
        config: path.into(),
        navicert_config: None,
        profile: Some(BaseProfile::Hardened),
        kube_version: None,
    };
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
        provider.rotate().await;
    }
}
