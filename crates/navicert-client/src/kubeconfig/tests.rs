//! The rules of client-credentials.md §1 as tables: a fragment of a kubeconfig, and what has to be said about it.

use std::path::{Path, PathBuf};

use super::*;

const ROOT: &str = "/no-such-folder";

fn folder(files: &[(&str, &str)]) -> MemoryFolder {
    MemoryFolder::new(ROOT, files.iter().map(|(name, text)| (PathBuf::from(name), text.as_bytes().to_vec())))
}

fn sources(names: &[&str]) -> Sources {
    Sources::List(names.iter().map(PathBuf::from).collect())
}

/// One file with one cluster, user and context; the fragments are YAML in flow style.
fn one_file(cluster: &str, user: &str) -> MemoryFolder {
    let text = format!(
        "clusters: [{{name: alpha, cluster: {cluster}}}]\nusers: [{{name: ann, user: {user}}}]\n\
         contexts: [{{name: dev, context: {{cluster: alpha, user: ann}}}}]\ncurrent-context: dev\n"
    );
    folder(&[("config", &text), ("readable", "content"), ("empty", " \n")])
}

fn selected(files: &MemoryFolder, overrides: &Overrides) -> Result<Effective, Vec<String>> {
    match select(&sources(&["config"]), overrides, Path::new(ROOT), files) {
        Ok((_, effective)) => Ok(effective),
        Err(Refusal::Invalid(problems)) => Err(problems.iter().map(ToString::to_string).collect()),
        Err(Refusal::Load(errors)) => panic!("does not load: {errors:?}"),
    }
}

const GOOD: &str = "{server: 'https://127.0.0.1:1'}";

fn problems(cluster: &str, user: &str) -> Vec<String> {
    selected(&one_file(cluster, user), &Overrides::default()).map_or_else(|problems| problems, |_| Vec::new())
}

#[test]
fn every_cluster_error_has_its_words() {
    // C153, T30
    for (cluster, expected) in [
        ("{}", "no server found for cluster \"alpha\""),
        ("null", "no server found for cluster \"alpha\""),
        ("{tls-server-name: x}", "no server found for cluster \"alpha\""),
        (
            "{server: 'https://h', proxy-url: 'ftp://p'}",
            "invalid 'proxy-url' \"ftp://p\" for cluster \"alpha\": unsupported scheme \"ftp\", must be http, https, or socks5",
        ),
        (
            "{server: 'https://h', proxy-url: 'http://%1'}",
            "invalid 'proxy-url' \"http://%1\" for cluster \"alpha\": could not parse: http://%1",
        ),
        (
            "{server: 'https://h', certificate-authority: readable, certificate-authority-data: YQ==}",
            "certificate-authority-data and certificate-authority are both specified for alpha. certificate-authority-data will override.",
        ),
        (
            "{server: 'https://h', certificate-authority: none}",
            "unable to read certificate-authority /no-such-folder/none for alpha due to entity not found",
        ),
    ] {
        assert_eq!(problems(cluster, "{token: t}"), [expected], "{cluster}");
    }
}

#[test]
fn every_user_error_has_its_words() {
    // C154, T30
    const EXEC: &str = "to use exec authentication plugin";
    let v1 = "apiVersion: client.authentication.k8s.io/v1";
    for (user, expected) in [
        (
            "{client-certificate: readable, client-certificate-data: YQ==, client-key: readable}".to_owned(),
            "client-cert-data and client-cert are both specified for ann. client-cert-data will override.".to_owned(),
        ),
        (
            "{client-certificate: readable, client-key: readable, client-key-data: YQ==}".to_owned(),
            "client-key-data and client-key are both specified for ann; client-key-data will override".to_owned(),
        ),
        (
            "{client-certificate: readable}".to_owned(),
            "client-key-data or client-key must be specified for ann to use the clientCert authentication method."
                .to_owned(),
        ),
        (
            "{client-certificate: none, client-key: readable}".to_owned(),
            "unable to read client-cert /no-such-folder/none for ann due to entity not found".to_owned(),
        ),
        (
            "{client-certificate: readable, client-key: none}".to_owned(),
            "unable to read client-key /no-such-folder/none for ann due to entity not found".to_owned(),
        ),
        (
            format!("{{exec: {{command: p, {v1}, interactiveMode: Never}}, auth-provider: {{name: oidc}}}}"),
            "authProvider cannot be provided in combination with an exec plugin for ann".to_owned(),
        ),
        (
            format!("{{exec: {{{v1}, interactiveMode: Never}}}}"),
            format!("command must be specified for ann {EXEC}"),
        ),
        (
            "{exec: {command: p, interactiveMode: Never}}".to_owned(),
            format!("apiVersion must be specified for ann {EXEC}"),
        ),
        (
            format!("{{exec: {{command: p, {v1}, interactiveMode: Never, env: [{{value: v}}]}}}}"),
            format!("env variable name must be specified for ann {EXEC}"),
        ),
        (format!("{{exec: {{command: p, {v1}}}}}"), format!("interactiveMode must be specified for ann {EXEC}")),
        (
            format!("{{exec: {{command: p, {v1}, interactiveMode: Sometimes}}}}"),
            "invalid interactiveMode for ann: \"Sometimes\"".to_owned(),
        ),
        (
            "{token: t, username: u}".to_owned(),
            "more than one authentication method found for ann; found [token basicAuth], only one is allowed"
                .to_owned(),
        ),
        (
            "{token: t, as-groups: [g]}".to_owned(),
            "requesting uid, groups or user-extra for ann without impersonating a user".to_owned(),
        ),
    ] {
        assert_eq!(problems(GOOD, &user), [expected], "{user}");
    }
}

#[test]
fn problems_are_collected_not_cut_short() {
    // C150: the user's first, then the cluster's
    let found = problems("{proxy-url: 'ftp://p'}", "{token: t, password: p, as-uid: u}");
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found[0].starts_with("more than one") && found[2].starts_with("no server"), "{found:?}");
}

#[test]
fn the_credentials_of_a_proxy_are_not_repeated_in_its_error() {
    // C195
    let found = problems("{server: 'https://h', proxy-url: 'ftp://u:canary@p'}", "{}").join("");
    assert!(found.contains("unsupported scheme") && !found.contains("canary"), "{found}");
}

#[test]
fn a_missing_user_is_anonymous_and_worth_a_word_a_missing_cluster_is_an_error() {
    // C152, T30
    let text = "clusters: [{name: alpha, cluster: {server: 'https://h'}}]\n\
                contexts: [{name: dev, context: {cluster: alpha, user: ghost}}, {name: bad, context: {cluster: ghost}}]\n\
                current-context: dev\n";
    let files = folder(&[("config", text)]);
    let effective = selected(&files, &Overrides::default()).unwrap();
    assert_eq!(effective.credential_kinds(), [""; 0]);
    assert_eq!(effective.advice(), [Advice::UserMissing("ghost".to_owned())]);
    let bad = Overrides { context: "bad".to_owned(), ..Overrides::default() };
    let problems = selected(&files, &bad).unwrap_err();
    assert_eq!(problems, ["context \"bad\" names cluster \"ghost\", which does not exist"]);
}

#[test]
fn what_is_asked_for_by_name_has_to_exist() {
    // C141
    let files = one_file(GOOD, "{token: t}");
    let ghost = || "ghost".to_owned();
    for (overrides, expected) in [
        (Overrides { context: ghost(), ..Overrides::default() }, "context \"ghost\" does not exist"),
        (Overrides { user: ghost(), ..Overrides::default() }, "auth info \"ghost\" does not exist"),
        (Overrides { cluster: ghost(), ..Overrides::default() }, "cluster \"ghost\" does not exist"),
    ] {
        assert_eq!(selected(&files, &overrides).unwrap_err(), [expected]);
    }
}

#[test]
fn a_current_context_that_does_not_exist_is_named() {
    // C151
    let files = folder(&[("config", "current-context: ghost\n")]);
    let problems = selected(&files, &Overrides::default()).unwrap_err();
    assert!(
        problems.contains(&"context was not found for specified context: ghost".to_owned()),
        "{problems:?}"
    );
}

#[test]
fn an_override_applies_only_if_it_is_not_empty() {
    // C140
    let files = one_file(
        "{server: 'https://h', proxy-url: 'http://p', disable-compression: true}",
        "{username: ann, password: secret, as: boss, as-groups: [g]}",
    );
    let effective = selected(&files, &Overrides::default()).unwrap();
    let cluster =
        (&*effective.cluster.server, &*effective.cluster.proxy_url, effective.cluster.disable_compression);
    assert_eq!(cluster, ("https://h", "http://p", true));
    assert_eq!((&*effective.user.username, &*effective.user.impersonate), ("ann", "boss"));
    let overrides = Overrides {
        proxy_url: "http://q".to_owned(),
        impersonate: "chief".to_owned(),
        ..Overrides::default()
    };
    let effective = selected(&files, &overrides).unwrap();
    assert_eq!((&*effective.cluster.server, &*effective.cluster.proxy_url), ("https://h", "http://q"));
    assert_eq!((&*effective.user.username, &*effective.user.impersonate), ("ann", "chief"));
    assert_eq!(effective.user.impersonate_groups, ["g"]);
}

#[test]
fn overriding_one_trust_setting_replaces_all_three() {
    // C142
    let files =
        one_file("{server: 'https://h', certificate-authority-data: YQ==, tls-server-name: name}", "{}");
    let overrides = Overrides { insecure_skip_tls_verify: true, ..Overrides::default() };
    let cluster = selected(&files, &overrides).unwrap().cluster;
    assert!(cluster.insecure_skip_tls_verify && cluster.certificate_authority_data.is_empty());
    assert_eq!(cluster.tls_server_name, "name");
    let overrides = Overrides { certificate_authority: format!("{ROOT}/readable"), ..Overrides::default() };
    let cluster = selected(&files, &overrides).unwrap().cluster;
    assert!(cluster.certificate_authority_data.is_empty());
}

#[test]
fn another_server_does_not_keep_the_old_servers_name() {
    // C143
    let files = one_file("{server: 'https://h', tls-server-name: name}", "{}");
    let overrides = Overrides { server: "https://other".to_owned(), ..Overrides::default() };
    assert_eq!(selected(&files, &overrides).unwrap().cluster.tls_server_name, "");
}

#[test]
fn a_certificate_given_on_the_command_line_replaces_both_forms() {
    // C144
    let files = one_file(GOOD, "{client-certificate-data: YQ==, client-key-data: YQ==}");
    let readable = format!("{ROOT}/readable");
    let overrides =
        Overrides { client_certificate: readable.clone(), client_key: readable, ..Overrides::default() };
    let user = selected(&files, &overrides).unwrap().user;
    assert!(user.client_certificate_data.is_empty() && user.client_key_data.is_empty());
}

#[test]
fn a_token_given_on_the_command_line_is_not_defeated_by_a_token_file() {
    // C145
    let files = one_file(GOOD, "{tokenFile: readable}");
    let overrides = Overrides { token: "t".to_owned().into(), ..Overrides::default() };
    assert_eq!(selected(&files, &overrides).unwrap().credential_kinds(), ["token"]);
}

#[test]
fn over_plain_http_only_impersonation_is_left() {
    // C160, C161, T30
    for server in ["http://h", "h:443"] {
        let files = one_file(&format!("{{server: '{server}'}}"), "{token: t, as: boss}");
        let effective = selected(&files, &Overrides::default()).unwrap();
        assert_eq!(effective.credential_kinds(), ["impersonate"], "{server}");
        assert_eq!(effective.advice().len(), 1, "{server}");
    }
}

#[test]
fn a_token_file_alone_has_to_be_readable_and_not_empty() {
    // C162
    assert_eq!(
        problems(GOOD, "{tokenFile: none}"),
        ["unable to read tokenFile /no-such-folder/none: entity not found"]
    );
    assert_eq!(problems(GOOD, "{tokenFile: none, token: t}"), [""; 0]);
    let files = one_file(GOOD, "{tokenFile: empty}");
    let effective = selected(&files, &Overrides::default()).unwrap();
    assert_eq!(effective.obstacles(&files), [Obstacle::EmptyTokenFile(format!("{ROOT}/empty"))]);
}

#[test]
fn an_explicit_file_has_to_exist_and_a_listed_one_may_be_missing() {
    // C120, C121, T30
    let files = folder(&[("config", "")]);
    let errors = load(&Sources::Explicit("none".into()), Path::new(ROOT), &files).unwrap_err();
    assert_eq!(errors[0].to_string(), "error loading config file \"none\": entity not found");
    let loaded = load(&sources(&["none", "config"]), Path::new(ROOT), &files).unwrap();
    assert_eq!((loaded.files.len(), loaded.missing), (1, vec![PathBuf::from("none")]));
}

#[test]
fn every_bad_file_is_reported_not_only_the_first() {
    // C122, T30
    let files = folder(&[("a", "{"), ("b", ""), ("c", "clusters: x"), ("d/e", "")]);
    let errors = load(&sources(&["a", "b", "c", "d"]), Path::new(ROOT), &files).unwrap_err();
    let named: Vec<String> = errors.iter().map(|error| error.path.display().to_string()).collect();
    assert_eq!(named, ["a", "c", "d"]);
}

#[test]
fn of_two_files_the_first_gives_an_entry_whole_and_its_paths_are_its_own() {
    // C123, C124, C130, C131, T30
    let one = "clusters: [{name: alpha, cluster: {server: 'https://one', certificate-authority: ca}}]\n\
               users: [{name: ann, user: {exec: {command: ./p, apiVersion: client.authentication.k8s.io/v1, \
               interactiveMode: Never}}}]\n";
    let two = "clusters: [{name: alpha, cluster: {server: 'https://two', tls-server-name: two}}]\n\
               users: [{name: ann, user: {token: t}}, {name: bob, user: {tokenFile: token}}]\n\
               contexts: [{name: dev, context: {cluster: alpha, user: ann}}, \
               {name: ops, context: {cluster: alpha, user: bob}}]\ncurrent-context: dev\n";
    let files = folder(&[("a/one", one), ("b/two", two), ("empty", ""), ("a/ca", ""), ("b/token", "t")]);
    let chosen = |context: &str| {
        let sources = sources(&["missing", "a/one", "empty", "b/two"]);
        let overrides = Overrides { context: context.to_owned(), ..Overrides::default() };
        select(&sources, &overrides, Path::new(ROOT), &files).unwrap().1
    };
    let dev = chosen("");
    assert_eq!(dev.context.as_deref(), Some("dev"), "the first file that says so");
    assert_eq!((&*dev.cluster.server, &*dev.cluster.tls_server_name), ("https://one", ""), "not mixed");
    assert_eq!(dev.cluster.certificate_authority, format!("{ROOT}/a/ca"));
    assert_eq!(dev.user.exec.unwrap().command, format!("{ROOT}/a/p"));
    assert!(dev.user.token.is_empty());
    assert_eq!(chosen("ops").user.token_file, format!("{ROOT}/b/token"));
}

#[test]
fn arguments_variables_and_overrides_are_not_relative_to_the_file() {
    // C132
    let exec = "exec: {command: ./p, args: [./a], env: [{name: A, value: ./v}], \
                apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}";
    let exec =
        selected(&one_file(GOOD, &format!("{{{exec}}}")), &Overrides::default()).unwrap().user.exec.unwrap();
    assert_eq!((&*exec.command, &*exec.args[0]), ("/no-such-folder/p", "./a"));
    assert_eq!(exec.env[0].value.expose(), "./v");
    let overrides = Overrides { client_key: "./k".to_owned(), ..Overrides::default() };
    assert_eq!(selected(&one_file(GOOD, "{}"), &overrides).unwrap().user.client_key, "./k");
}

#[test]
fn of_a_providers_settings_only_a_signers_program_is_relative_to_the_file() {
    // C132, C813
    for (provider, program, expected) in [
        ("externalSigner", "./signer", "/no-such-folder/signer"),
        ("externalSigner", "signer", "signer"),
        ("oidc", "./signer", "./signer"),
    ] {
        let user = format!(
            "{{auth-provider: {{name: {provider}, config: {{pathExec: {program}, pathLib: ./lib}}}}}}"
        );
        let effective = selected(&one_file(GOOD, &user), &Overrides::default()).unwrap();
        let config = effective.user.auth_provider.unwrap().config;
        assert_eq!(config["pathExec"].expose(), expected, "{provider} {program}");
        assert_eq!(config["pathLib"].expose(), "./lib", "{provider} {program}");
    }
}

#[test]
fn what_is_legal_and_still_builds_no_client_is_an_obstacle() {
    // C155
    let exec = "exec: {command: p, apiVersion: client.authentication.k8s.io/v9, interactiveMode: Never}";
    let version = Obstacle::ExecVersion("client.authentication.k8s.io/v9".to_owned());
    for (user, expected) in [
        (format!("{{{exec}}}"), vec![version]),
        ("{tokenFile: readable, username: u, password: p}".to_owned(), vec![Obstacle::BasicAndBearer]),
        (format!("{{token: t, {}}}", exec.replace("v9", "v1")), vec![]),
    ] {
        let files = one_file(GOOD, &user);
        let effective = selected(&files, &Overrides::default()).unwrap();
        assert_eq!(effective.obstacles(&files), expected, "{user}");
    }
}

#[test]
fn a_problem_points_at_its_field() {
    let text = "clusters:\n- name: alpha\n  cluster:\n    server: https://h\nusers:\n- name: ann\n  user:\n    exec:\n      \
                command: p\n      apiVersion: client.authentication.k8s.io/v1\n      interactiveMode: Sometimes\n\
                contexts:\n- name: dev\n  context: {cluster: alpha, user: ann}\ncurrent-context: dev\n";
    let files = folder(&[("config", text)]);
    let merged = Merged::new(load(&sources(&["config"]), Path::new(ROOT), &files).unwrap());
    let problems = merged.select(&Overrides::default(), &files).unwrap_err();
    let place = merged.place_of_problem(&problems[0]).unwrap();
    assert_eq!((place.origin.path.as_path(), place.span.line), (Path::new("config"), 11));
}
