//! The helper's rules (I220–I240), with scripted plugins.

use std::path::Path;
use std::sync::Arc;

use navicert_plugin::{Environment, Script, ScriptedRunner};
use navicert_types::clock::ManualClock;

use super::*;
use crate::config::{ConfigFile, ImageConfig};
use crate::provider::ProviderSettings;

/// Providers with these patterns that respond with these `auth` objects in order.
fn providers(patterns: &[&str], answers: &[&str]) -> (Arc<ScriptedRunner>, Providers) {
    let names = ["sh", "cat", "ls"];
    let entries: String = patterns.iter().zip(names).map(|(patterns, name)| format!(
        "- {{name: {name}, matchImages: [{patterns}], defaultCacheDuration: 1h, apiVersion: credentialprovider.kubelet.k8s.io/v1}}\n"
    )).collect();
    let text = format!(
        "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n{entries}"
    );
    let config =
        ImageConfig::decode(&[ConfigFile { path: "c".into(), text: text.into() }], Profile::Hardened)
            .unwrap();
    let script = |auth: &&str| {
        Script::prints(format!(
            r#"{{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Registry","auth":{auth}}}"#
        ))
    };
    let runner = Arc::new(ScriptedRunner::new(answers.iter().map(script)));
    let clock = Arc::new(ManualClock::at(0));
    let settings =
        ProviderSettings::new(Path::new("/bin"), Environment::empty(), Arc::clone(&runner) as _, clock);
    (runner, Providers::new(&config, settings))
}

fn user(providers: &Providers, server: &str) -> Result<String, HelperError> {
    get(providers, &Scopes::new(), server).map(|answer| answer.username)
}

const ANN: &str = r#"{"username":"ann","password":"p"}"#;
const BOB: &str = r#"{"username":"bob","password":"q"}"#;

#[test]
fn normalizes_server_names() {
    // I225, I230
    for (server, expected) in [
        ("registry.io", "registry.io"),
        (" https://registry.io:5000/v2/ \n", "registry.io:5000"),
        ("http://registry.io/", "registry.io"),
        ("https://index.docker.io/v1/", "docker.io"),
        ("registry-1.docker.io", "docker.io"),
        ("registry.io/team/app", "registry.io/team/app"),
        ("[::1]:5000", "[::1]:5000"),
    ] {
        assert_eq!(normalise_server(server).unwrap(), expected);
    }
}

#[test]
fn rejects_server_names_with_injected_content() {
    for server in [
        "a.io\nb.io",
        "a.io\r\nhost=evil.com",
        "a.io\0.evil.com",
        "user:pw@a.io",
        "a.io@evil.com",
        "https://a.io@evil.com/",
        "a.io evil.com",
        "a.io%0aevil.com",
        "a.io?x",
        "a.io#x",
        "ftp://a.io",
        "https://https://a.io",
        "*.io",
        ".a.io",
        "a.io.",
        "a:b:c",
        "/x",
        "a.io/../b",
    ] {
        assert!(matches!(normalise_server(server), Err(HelperError::BadServer(_))), "{server:?}");
    }
    assert_eq!(normalise_server(" \n"), Err(HelperError::NoServer));
}

#[test]
fn returns_first_non_anonymous_credential() {
    // I221, I231, I233
    let auth = format!(r#"{{"a.io":{{"username":"","password":""}},"*.io":{ANN}}}"#);
    let (_, providers) = providers(&["a.io"], &[&auth]);
    let answer = get(&providers, &Scopes::new(), "https://a.io/v2/").unwrap();
    let expected = b"{\"ServerURL\":\"https://a.io/v2/\",\"Username\":\"ann\",\"Secret\":\"p\"}\n";
    assert_eq!(answer.encode().expose(), expected);
}

#[test]
fn passes_through_secret_without_user_name() {
    // I239
    let (_, providers) = providers(&["a.io"], &[r#"{"a.io":{"username":"","password":"p"}}"#]);
    let answer = get(&providers, &Scopes::new(), "a.io").unwrap();
    assert_eq!(answer.encode().expose(), b"{\"ServerURL\":\"a.io\",\"Username\":\"\",\"Secret\":\"p\"}\n");
}

#[test]
fn returns_credentials_only_for_the_requested_host() {
    // CVE-2021-41092: credentials for another host are never returned.
    let (_, one) = providers(&["a.io"], &[&format!(r#"{{"index.docker.io":{ANN},"b.io":{BOB}}}"#)]);
    assert_eq!(user(&one, "a.io"), Err(HelperError::NotFound));
    assert_eq!(user(&one, "x.a.io"), Err(HelperError::NotFound));
    let (runner, azure) = providers(&["'*.azurecr.io'"], &[]);
    for server in ["x.azurecr.io.evil.com", "evil.com/x.azurecr.io", "x.azurecr.io:444", "X.azurecr.IO"] {
        assert_eq!(user(&azure, server), Err(HelperError::NotFound), "{server}");
    }
    assert!(runner.commands().is_empty());
}

#[test]
fn finds_docker_hub_under_all_its_names() {
    // I139, I225
    let (_, providers) = providers(&["docker.io"], &[&format!(r#"{{"https://index.docker.io/v1/":{ANN}}}"#)]);
    for server in ["https://index.docker.io/v1/", "docker.io", "registry-1.docker.io"] {
        assert_eq!(user(&providers, server).unwrap(), "ann");
    }
}

#[test]
fn answers_for_registry_configured_by_path_with_a_single_provider() {
    // I232, I233, I236
    let (runner, one) = providers(&["a.io/team/long, a.io/team/"], &[&format!(r#"{{"a.io/team":{ANN}}}"#)]);
    assert_eq!(user(&one, "a.io").unwrap(), "ann");
    let request = String::from_utf8(runner.commands()[0].stdin_bytes().unwrap().expose().clone()).unwrap();
    assert!(
        request.contains(r#""image":"a.io/team""#),
        "the shortest path, without a slash at the end: {request}"
    );
}

#[test]
fn does_not_guess_between_providers() {
    // I232, I234
    let answers = [format!(r#"{{"a.io/one":{ANN}}}"#), format!(r#"{{"a.io/two":{BOB}}}"#)];
    let (runner, two) = providers(&["a.io/one", "a.io/two"], &[&answers[1], &answers[0]]);
    let error = user(&two, "a.io").unwrap_err();
    assert_eq!(error.to_string(), NOT_FOUND);
    assert!(error.hint().unwrap().contains("a.io/one (sh), a.io/two (cat)"));
    assert!(runner.commands().is_empty());
    let scopes = parse_scopes("b.io=b.io/x, a.io=a.io/two").unwrap();
    assert_eq!(get(&two, &scopes, "a.io").unwrap().username, "bob");
    assert!(parse_scopes("a.io").is_err() && parse_scopes("a.io=b.io/x").is_err());
}

#[test]
fn mirror_gets_credentials_of_its_registry_and_other_hosts_do_not() {
    // I253
    let (runner, providers) = providers(&["a.io"], &[&format!(r#"{{"a.io":{ANN}}}"#)]);
    let scopes = parse_mirrors("mirror.example:5000=a.io").unwrap();
    let answer = get(&providers, &scopes, "https://mirror.example:5000").unwrap();
    assert_eq!((&*answer.server, &*answer.username), ("https://mirror.example:5000", "ann"));
    assert_eq!(get(&providers, &scopes, "a.io").unwrap().username, "ann");
    for other in ["mirror.example", "mirror.example:5001", "mirror.example.evil.com:5000"] {
        assert_eq!(get(&providers, &scopes, other), Err(HelperError::NotFound), "{other}");
    }
    assert_eq!(runner.commands().len(), 1, "one response serves both");
    assert_eq!(erase(&providers, &scopes, "mirror.example:5000"), Ok(1));
    let mut both = parse_scopes("a.io=a.io/team").unwrap();
    both.extend(scopes);
    assert_eq!(
        both.image(&both.registry("mirror.example:5000")),
        "a.io/team",
        "the scope of the mirrored registry"
    );
    assert_eq!(both.registry("mirror.example:5000/x/y"), "a.io/x/y");
    for none in [
        "a.io",
        "a.io=",
        "=a.io",
        "a.io/x=b.io",
        "a.io=b.io/x",
        "https://a.io=b.io",
        "a.io=a.io",
        "u@a.io=b.io",
    ] {
        assert!(parse_mirrors(none).is_err(), "{none}");
    }
}

#[test]
fn answers_with_path_scoped_keys_only_if_they_agree() {
    // I233
    let same = format!(r#"{{"a.io/one":{ANN},"a.io/two":{ANN}}}"#);
    let (_, providers_same) = providers(&["a.io"], &[&same]);
    assert_eq!(user(&providers_same, "a.io").unwrap(), "ann");
    let (_, differ) = providers(&["a.io"], &[&format!(r#"{{"a.io/one":{ANN},"a.io/two":{BOB}}}"#)]);
    assert!(matches!(user(&differ, "a.io"), Err(HelperError::Ambiguous { .. })));
}

#[test]
fn reports_failure_instead_of_not_found() {
    // I248
    let (runner, providers) = providers(&["a.io"], &[]);
    runner.push(Script::exits(3).stderr("no network"));
    let error = user(&providers, "a.io").unwrap_err();
    assert!(matches!(&error, HelperError::Failed(text) if text.contains("exit code 3")), "{error}");
}

#[test]
fn list_runs_no_plugin_and_erase_clears_the_cache() {
    // I223, I238
    let auth = format!(r#"{{"a.io":{ANN},"*.a.io":{BOB}}}"#);
    let (runner, providers) = providers(&["a.io"], &[&auth, &auth]);
    assert_eq!(encode_list(&list(&providers)), b"{}\n");
    user(&providers, "a.io").unwrap();
    assert_eq!(encode_list(&list(&providers)), b"{\"a.io\":\"ann\"}\n");
    assert_eq!(erase(&providers, &Scopes::new(), "b.io"), Ok(0));
    assert_eq!(erase(&providers, &Scopes::new(), "https://a.io"), Ok(1));
    assert!(list(&providers).is_empty());
    user(&providers, "a.io").unwrap();
    assert_eq!(runner.commands().len(), 2);
}
