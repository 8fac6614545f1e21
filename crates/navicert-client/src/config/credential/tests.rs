//! The precedence of credentials, row by row.

use std::sync::Arc;

use navicert_plugin::{Environment, ScriptedRunner};
use navicert_types::clock::ManualClock;
use navicert_types::error_chain;

use super::*;
use crate::credential::{Rejection, RequestOrigin, SharedFiles, block_on};
use crate::exec::AuthenticatorRegistry;
use crate::exec::interactive::FixedTerminal;
use crate::kubeconfig::{KubeconfigSources, MemoryFileSystem, MergedKubeconfig, Overrides, load};
use crate::metrics::Metrics;

struct Fixture {
    files: SharedFiles,
    runner: Arc<ScriptedRunner>,
    metrics: Arc<Metrics>,
    client_context: ClientContext,
}

fn read_source(server: &str, user: &str) -> (Fixture, Result<Arc<dyn CredentialSource>, Vec<String>>) {
    let made = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
    let config = format!(
        "clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\nusers: [{{name: u, user: {user}}}]\n\
         contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\ncurrent-context: x\n"
    );
    let dir = MemoryFileSystem::new(
        "/no-such-root",
        [
            (PathBuf::from("config"), config.into_bytes()),
            (PathBuf::from("tls.crt"), made.cert.pem().into_bytes()),
            (PathBuf::from("tls.key"), made.signing_key.serialize_pem().into_bytes()),
            (PathBuf::from("token"), b" from-file\n".to_vec()),
            (PathBuf::from("empty"), b" \n".to_vec()),
        ],
    );
    let loaded =
        load(&KubeconfigSources::list([PathBuf::from("config")]), Path::new("/no-such-root"), &dir).unwrap();
    let effective = MergedKubeconfig::new(loaded).selection(&Overrides::default()).unwrap();
    let (runner, metrics) = (Arc::new(ScriptedRunner::new([])), Arc::new(Metrics::new()));
    let files: SharedFiles = Arc::new(dir);
    let client_context = ClientContext {
        clock: Arc::new(ManualClock::at(1_900_000_000)),
        files: Arc::clone(&files),
        runner: Arc::clone(&runner) as Arc<dyn navicert_plugin::Runner>,
        terminal: Arc::new(FixedTerminal::default()),
        recorder: Arc::clone(&metrics) as Arc<dyn crate::metrics::Recorder>,
        registry: AuthenticatorRegistry::new(),
        ..ClientContext::new(Environment::empty())
    };
    let reader = CredentialReader {
        effective: &effective,
        files: &*files,
        now: client_context.clock.monotonic(),
        #[cfg(feature = "signer")]
        allow_pin: false,
    };
    let mut problems = Vec::new();
    let plan = reader.read(&mut problems);
    let problems: Vec<String> = problems.iter().map(|problem| error_chain(problem)).collect();
    let read = match problems.is_empty() {
        true => Ok(plan.source(&ExecSettings::default(), &client_context)),
        false => Err(problems),
    };
    (Fixture { files, runner, metrics, client_context }, read)
}

const EXEC: &str =
    "exec: {command: /bin/sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}";
const PAIR: &str = "client-certificate: tls.crt, client-key: tls.key";

// C160, C162, C163, C164, C167, C470, T24, T30
#[test]
fn precedence_holds_and_static_credentials_never_run_the_plugin() {
    let rows = [
        ("token: t".to_owned(), Some("Bearer t"), false),
        (format!("token: t, {EXEC}"), Some("Bearer t"), false),
        (format!("tokenFile: token, {EXEC}"), Some("Bearer from-file"), false),
        (format!("token: t, tokenFile: token, {EXEC}"), Some("Bearer from-file"), false),
        (format!("token: t, tokenFile: missing, {EXEC}"), Some("Bearer t"), false),
        (format!("username: u, password: p, {EXEC}"), Some("Basic dTpw"), false),
        (format!("{PAIR}, {EXEC}"), None, true),
        (format!("{PAIR}, token: t"), Some("Bearer t"), true),
        ("client-key: tls.key".to_owned(), None, false),
        ("password: p".to_owned(), None, false),
        ("{}".to_owned(), None, false),
        (
            "token: t, auth-provider: {name: oidc, config: {idp-issuer-url: i, client-id: c}}".to_owned(),
            Some("Bearer t"),
            false,
        ),
    ];
    for (user, authorization, has_identity) in rows {
        let user = if user == "{}" { user } else { format!("{{{user}}}") };
        let (fixture, chosen) = read_source("https://h", &user);
        let source = chosen.unwrap();
        let credential = source.cached().unwrap();
        assert_eq!(
            credential.authorization.as_ref().map(|value| value.to_str().unwrap()),
            authorization,
            "{user}"
        );
        assert_eq!(credential.identity.is_some(), has_identity, "{user}");
        assert!(credential.authorization.as_ref().is_none_or(HeaderValue::is_sensitive));
        assert!(
            block_on(source.refresh_rejected(credential.generation, Rejection::Unauthorized(None)))
                .unwrap()
                .is_none()
        );
        // C168
        assert_eq!(source.hint().is_some(), user.contains("exec:"), "{user}");
        assert!(source.hint().is_none_or(|hint| hint.contains("`/bin/sh`")));
        assert!(fixture.runner.commands().is_empty() && fixture.client_context.registry.is_empty(), "{user}");
        assert!(
            !fixture.metrics.render(navicert_types::Timestamp::UNIX_EPOCH).contains("plugin_call_total{")
        );
        drop(fixture.files);
    }
}

// C167
#[test]
fn rejects_combinations_that_are_not_allowed() {
    let rows = [
        ("{token: t, username: u}", "username/password or bearer token may be set, but not both"),
        ("{tokenFile: token, username: u}", "username/password or bearer token may be set, but not both"),
        ("{tokenFile: empty}", "read empty token from file \"/no-such-root/empty\""),
        (
            "{token: \"a\\nb\"}",
            "invalid token: it contains control characters or is surrounded by white space",
        ),
        (
            "{client-certificate: tls.crt, client-key: token}",
            "invalid client certificate: failed to find any PEM data in key input",
        ),
        (
            "{client-certificate: tls.key, client-key: tls.key}",
            "invalid client certificate: failed to find certificate PEM data in certificate input, but did find a private key",
        ),
        ("{auth-provider: {name: none}}", "no Auth Provider found for name \"none\""),
        ("{token: t, auth-provider: {name: none}}", "no Auth Provider found for name \"none\""),
        ("{exec: {command: p, apiVersion: v9}}", "exec plugin: invalid apiVersion \"v9\""),
        ("{token: t, exec: {command: p, apiVersion: v9}}", "exec plugin: invalid apiVersion \"v9\""),
    ];
    for (user, expected) in rows {
        assert_eq!(read_source("https://h", user).1.unwrap_err(), [expected], "{user}");
    }
    let every =
        "{token: \"a\\nb\", auth-provider: {name: azure}, client-certificate: token, client-key: token}";
    assert_eq!(read_source("https://h", every).1.unwrap_err().len(), 3);
}

// C160
#[test]
fn sends_no_credential_over_plain_http() {
    for user in [format!("{{token: t, {PAIR}}}"), format!("{{{EXEC}}}")] {
        let (fixture, chosen) = read_source("http://h", &user);
        let source = chosen.unwrap();
        let credential = block_on(source.get(RequestOrigin::Background)).unwrap();
        assert!(credential.authorization.is_none() && credential.identity.is_none());
        assert!(fixture.runner.commands().is_empty());
    }
}

// C309
#[test]
fn plugin_is_used_and_not_run_before_it_is_needed() {
    let (fixture, chosen) = read_source("https://h", &format!("{{{EXEC}}}"));
    let source = chosen.unwrap();
    assert!(source.cached().is_none() && source.hint().is_none());
    assert!(fixture.runner.commands().is_empty());
    assert!(block_on(source.get(RequestOrigin::Background)).is_err());
    assert_eq!(fixture.runner.commands().len(), 1);
}
