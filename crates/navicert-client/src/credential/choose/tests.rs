//! The table of precedence, row by row.

use std::sync::Arc;

use navicert_plugin::{Environment, ScriptedRunner};
use navicert_types::clock::ManualClock;

use super::*;
use crate::credential::{Asking, Refused, block_on};
use crate::exec::Registry;
use crate::exec::interactive::FixedTerminal;
use crate::kubeconfig::{MemoryFolder, Merged, Overrides, Sources, load};
use crate::metrics::Metrics;

struct Stage {
    files: SharedFiles,
    runner: Arc<ScriptedRunner>,
    metrics: Arc<Metrics>,
    around: Surroundings,
}

fn stage(server: &str, user: &str) -> (Stage, Result<Arc<dyn CredentialSource>, ChooseError>) {
    let made = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
    let config = format!(
        "clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\nusers: [{{name: u, user: {user}}}]\n\
         contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\ncurrent-context: x\n"
    );
    let folder = MemoryFolder::new(
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
        load(&Sources::list([PathBuf::from("config")]), Path::new("/no-such-root"), &folder).unwrap();
    let effective = Merged::new(loaded).selection(&Overrides::default()).unwrap();
    let (runner, metrics) = (Arc::new(ScriptedRunner::new([])), Arc::new(Metrics::new()));
    let around = Surroundings {
        clock: Arc::new(ManualClock::at(1_900_000_000)),
        runner: Arc::clone(&runner) as Arc<dyn navicert_plugin::Runner>,
        terminal: Arc::new(FixedTerminal::default()),
        recorder: Arc::clone(&metrics) as Arc<dyn crate::metrics::Recorder>,
        registry: Registry::new(),
        ..Surroundings::new(Environment::empty())
    };
    let files: SharedFiles = Arc::new(folder);
    let chosen = choose(&effective, &files, &Settings::default(), &around);
    (Stage { files, runner, metrics, around }, chosen)
}

const EXEC: &str =
    "exec: {command: /bin/sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}";
const PAIR: &str = "client-certificate: tls.crt, client-key: tls.key";

// C160, C162, C163, C164, C167, C470, T24, T30
#[test]
fn the_table_of_precedence_holds_and_static_credentials_never_run_the_plugin() {
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
        ("token: t, auth-provider: {name: gcp}".to_owned(), Some("Bearer t"), false),
    ];
    for (user, authorization, has_identity) in rows {
        let user = if user == "{}" { user } else { format!("{{{user}}}") };
        let (stage, chosen) = stage("https://h", &user);
        let source = chosen.unwrap();
        let credential = source.ready().unwrap();
        assert_eq!(
            credential.authorization.as_ref().map(|value| value.to_str().unwrap()),
            authorization,
            "{user}"
        );
        assert_eq!(credential.identity.is_some(), has_identity, "{user}");
        assert!(credential.authorization.as_ref().is_none_or(HeaderValue::is_sensitive));
        assert!(
            block_on(source.refused(credential.generation, Refused::Unauthorized(None))).unwrap().is_none()
        );
        // C168
        assert_eq!(source.hint().is_some(), user.contains("exec:"), "{user}");
        assert!(source.hint().is_none_or(|hint| hint.contains("`/bin/sh`")));
        assert!(stage.runner.commands().is_empty() && stage.around.registry.is_empty(), "{user}");
        assert!(!stage.metrics.render(navicert_types::Timestamp::UNIX_EPOCH).contains("plugin_call_total{"));
        drop(stage.files);
    }
}

// C167
#[test]
fn combinations_that_are_not_allowed_are_refused() {
    let rows = [
        ("{token: t, username: u}", "username/password or bearer token may be set, but not both"),
        ("{tokenFile: token, username: u}", "username/password or bearer token may be set, but not both"),
        ("{tokenFile: empty}", "read empty token from file \"/no-such-root/empty\""),
        (
            "{token: \"a\\nb\"}",
            "the token cannot be sent: it holds control characters or is surrounded by white space",
        ),
        (
            "{client-certificate: tls.crt, client-key: missing}",
            "unable to read client-key /no-such-root/missing",
        ),
        (
            "{client-certificate: tls.key, client-key: tls.key}",
            "client certificate: failed to find certificate PEM data in certificate input, but did find a private key",
        ),
        ("{auth-provider: {name: nobody}}", "no Auth Provider found for name \"nobody\""),
        (
            "{auth-provider: {name: x}, exec: {command: p, apiVersion: client.authentication.k8s.io/v1}}",
            "execProvider and authProvider cannot be used in combination",
        ),
    ];
    for (user, expected) in rows {
        assert_eq!(stage("https://h", user).1.unwrap_err().to_string(), expected, "{user}");
    }
    assert!(
        stage("https://h", "{exec: {command: p, apiVersion: v9}}")
            .1
            .unwrap_err()
            .to_string()
            .starts_with("exec plugin: invalid apiVersion")
    );
}

// C160
#[test]
fn nothing_is_sent_over_plain_http() {
    for user in [format!("{{token: t, {PAIR}}}"), format!("{{{EXEC}}}")] {
        let (stage, chosen) = stage("http://h", &user);
        let source = chosen.unwrap();
        let credential = block_on(source.current(Asking::Background)).unwrap();
        assert!(credential.authorization.is_none() && credential.identity.is_none());
        assert!(stage.runner.commands().is_empty());
    }
}

// C309
#[test]
fn a_plugin_alone_is_used_and_not_run_before_it_is_needed() {
    let (stage, chosen) = stage("https://h", &format!("{{{EXEC}}}"));
    let source = chosen.unwrap();
    assert!(source.ready().is_none() && source.hint().is_none());
    assert!(stage.runner.commands().is_empty());
    assert!(block_on(source.current(Asking::Background)).is_err());
    assert_eq!(stage.runner.commands().len(), 1);
}
