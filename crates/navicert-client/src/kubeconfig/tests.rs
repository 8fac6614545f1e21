//! Tables of kubeconfig fragments and the expected problems.

use std::path::{Path, PathBuf};

use super::*;
use crate::config::{ConfigErrorStage, ConfigOptions, ConfigReport};

const ROOT: &str = "/no-such-directory";

fn file_system(files: &[(&str, &str)]) -> MemoryFileSystem {
    MemoryFileSystem::new(
        ROOT,
        files.iter().map(|(name, text)| (PathBuf::from(name), text.as_bytes().to_vec())),
    )
}

fn sources(names: &[&str]) -> KubeconfigSources {
    KubeconfigSources::List(names.iter().map(PathBuf::from).collect())
}

/// One file with one cluster, user and context; the fragments are YAML in flow style.
fn one_file(cluster: &str, user: &str) -> MemoryFileSystem {
    let text = format!(
        "clusters: [{{name: alpha, cluster: {cluster}}}]\nusers: [{{name: ann, user: {user}}}]\n\
         contexts: [{{name: dev, context: {{cluster: alpha, user: ann}}}}]\ncurrent-context: dev\n"
    );
    file_system(&[("config", &text), ("readable", "content"), ("empty", " \n")])
}

fn selected(files: &MemoryFileSystem, overrides: &Overrides) -> Result<Effective, Vec<String>> {
    selected_from(&["config"], files, overrides)
}

fn selected_from(
    names: &[&str],
    files: &MemoryFileSystem,
    overrides: &Overrides,
) -> Result<Effective, Vec<String>> {
    let merged = match load(&sources(names), Path::new(ROOT), files) {
        Ok(loaded) => MergedKubeconfig::new(loaded),
        Err(failed) => return Err(failed.errors.iter().map(ToString::to_string).collect()),
    };
    let effective = merged.selection(overrides).map_err(|error| vec![error.to_string()])?;
    let problems = validate(&effective, files);
    if problems.is_empty() { Ok(effective) } else { Err(problems.iter().map(ToString::to_string).collect()) }
}

fn report(files: MemoryFileSystem, overrides: Overrides) -> ConfigReport {
    let options =
        ConfigOptions::new(navicert_plugin::Environment::empty(), ROOT).sources(sources(&["config"]));
    let options = options.files(std::sync::Arc::new(files)).overrides(overrides);
    options.report(&options.load().unwrap())
}

fn warnings(files: MemoryFileSystem) -> Vec<String> {
    report(files, Overrides::default()).warnings().iter().map(ToString::to_string).collect()
}

fn build_errors(files: MemoryFileSystem) -> Vec<String> {
    let report = report(files, Overrides::default());
    assert!(report.errors().iter().all(|error| error.stage() == ConfigErrorStage::Build));
    report.errors().iter().map(ToString::to_string).collect()
}

const VALID_CLUSTER: &str = "{server: 'https://127.0.0.1:1'}";

fn problems(cluster: &str, user: &str) -> Vec<String> {
    selected(&one_file(cluster, user), &Overrides::default()).map_or_else(|problems| problems, |_| Vec::new())
}

#[test]
fn cluster_problems_have_kubectl_messages() {
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
            "unable to read certificate-authority /no-such-directory/none for alpha due to entity not found",
        ),
    ] {
        assert_eq!(problems(cluster, "{token: t}"), [expected], "{cluster}");
    }
}

#[test]
fn user_problems_have_kubectl_messages() {
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
            "unable to read client-cert /no-such-directory/none for ann due to entity not found".to_owned(),
        ),
        (
            "{client-certificate: readable, client-key: none}".to_owned(),
            "unable to read client-key /no-such-directory/none for ann due to entity not found".to_owned(),
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
        assert_eq!(problems(VALID_CLUSTER, &user), [expected], "{user}");
    }
}

#[test]
fn reports_every_problem() {
    // C150: the user's first, then the cluster's
    let found = problems("{proxy-url: 'ftp://p'}", "{token: t, password: p, as-uid: u}");
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found[0].starts_with("more than one") && found[2].starts_with("no server"), "{found:?}");
}

#[test]
fn proxy_credentials_are_not_printed_in_errors() {
    // C195
    let found = problems("{server: 'https://h', proxy-url: 'ftp://u:canary@p'}", "{}").join("");
    assert!(found.contains("unsupported scheme") && !found.contains("canary"), "{found}");
}

#[test]
fn missing_user_and_missing_cluster_are_errors() {
    // C152, T30
    let text = "clusters: [{name: alpha, cluster: {server: 'https://h'}}]\n\
                contexts: [{name: dev, context: {cluster: alpha, user: ghost}}, {name: bad, context: {cluster: ghost}}]\n\
                current-context: dev\n";
    let files = file_system(&[("config", text)]);
    let effective = selected(&files, &Overrides::default()).unwrap();
    assert_eq!(effective.credential_kinds(), [""; 0]);
    let missing = |overrides| {
        let report = report(files.clone(), overrides);
        let errors: Vec<String> = report.errors().iter().map(ToString::to_string).collect();
        let warnings: Vec<String> = report.warnings().iter().map(ToString::to_string).collect();
        (errors, warnings)
    };
    let error = "context \"dev\" names user \"ghost\", which does not exist".to_owned();
    let warning = "context names user \"ghost\", which does not exist".to_owned();
    assert_eq!(missing(Overrides::default()), (vec![error.clone()], vec![]));
    let impersonated = Overrides { impersonate: "bob".to_owned(), ..Overrides::default() };
    assert_eq!(missing(impersonated), (vec![error], vec![]));
    let with_token = Overrides { token: "t".to_owned().into(), ..Overrides::default() };
    assert_eq!(missing(with_token), (vec![], vec![warning.clone()]));
    let plain = Overrides { server: "http://h".to_owned(), ..Overrides::default() };
    assert_eq!(missing(plain).1.first(), Some(&warning));
    let bad = Overrides { context: "bad".to_owned(), ..Overrides::default() };
    let problems = selected(&files, &bad).unwrap_err();
    assert_eq!(problems, ["context \"bad\" names cluster \"ghost\", which does not exist"]);
}

#[test]
fn requested_entries_must_exist() {
    // C141
    let files = one_file(VALID_CLUSTER, "{token: t}");
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
fn missing_current_context_is_named() {
    // C151
    let files = file_system(&[("config", "current-context: ghost\n")]);
    let problems = selected(&files, &Overrides::default()).unwrap_err();
    assert!(
        problems.contains(&"context was not found for specified context: ghost".to_owned()),
        "{problems:?}"
    );
}

#[test]
fn override_applies_only_if_not_empty() {
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
fn overriding_the_server_drops_the_old_server_name() {
    // C143
    let files = one_file("{server: 'https://h', tls-server-name: name}", "{}");
    let overrides = Overrides { server: "https://other".to_owned(), ..Overrides::default() };
    assert_eq!(selected(&files, &overrides).unwrap().cluster.tls_server_name, "");
}

#[test]
fn certificate_override_replaces_file_and_data() {
    // C144
    let files = one_file(VALID_CLUSTER, "{client-certificate-data: YQ==, client-key-data: YQ==}");
    let readable = format!("{ROOT}/readable");
    let overrides =
        Overrides { client_certificate: readable.clone(), client_key: readable, ..Overrides::default() };
    let user = selected(&files, &overrides).unwrap().user;
    assert!(user.client_certificate_data.is_empty() && user.client_key_data.is_empty());
}

#[test]
fn token_override_takes_precedence_over_token_file() {
    // C145
    let files = one_file(VALID_CLUSTER, "{tokenFile: readable}");
    let overrides = Overrides { token: "t".to_owned().into(), ..Overrides::default() };
    assert_eq!(selected(&files, &overrides).unwrap().credential_kinds(), ["token"]);
}

#[test]
fn only_impersonation_is_sent_over_plain_http() {
    // C160, C161, T30
    for server in ["http://h", "h:443"] {
        let files = one_file(&format!("{{server: '{server}'}}"), "{token: t, as: boss}");
        let effective = selected(&files, &Overrides::default()).unwrap();
        assert_eq!(effective.credential_kinds(), ["impersonate"], "{server}");
        assert_eq!(warnings(files).len(), 1, "{server}");
    }
}

#[test]
fn token_file_must_be_readable_and_not_empty() {
    // C162
    assert_eq!(
        problems(VALID_CLUSTER, "{tokenFile: none}"),
        ["unable to read tokenFile /no-such-directory/none: entity not found"]
    );
    assert_eq!(problems(VALID_CLUSTER, "{tokenFile: none, token: t}"), [""; 0]);
    let files = one_file(VALID_CLUSTER, "{tokenFile: empty}");
    assert!(selected(&files, &Overrides::default()).is_ok());
    assert_eq!(build_errors(files), [format!("read empty token from file \"{ROOT}/empty\"")]);
}

#[test]
fn explicit_file_must_exist_and_listed_file_may_be_missing() {
    // C120, C121, T30
    let files = file_system(&[("config", "")]);
    let errors =
        load(&KubeconfigSources::Explicit("none".into()), Path::new(ROOT), &files).unwrap_err().errors;
    assert_eq!(
        navicert_types::error_chain(&errors[0]),
        "error loading config file \"none\": entity not found"
    );
    let loaded = load(&sources(&["none", "config"]), Path::new(ROOT), &files).unwrap();
    assert_eq!((loaded.files.len(), loaded.missing), (1, vec![PathBuf::from("none")]));
}

#[test]
fn reports_every_invalid_file() {
    // C122, T30
    let files = file_system(&[("a", "{"), ("b", ""), ("c", "clusters: x"), ("d/e", "")]);
    let errors = load(&sources(&["a", "b", "c", "d"]), Path::new(ROOT), &files).unwrap_err().errors;
    let named: Vec<String> = errors.iter().map(|error| error.path.display().to_string()).collect();
    assert_eq!(named, ["a", "c", "d"]);
}

#[test]
fn first_file_provides_the_whole_entry_and_its_base_directory() {
    // C123, C124, C130, C131, T30
    let one = "clusters: [{name: alpha, cluster: {server: 'https://one', certificate-authority: ca}}]\n\
               users: [{name: ann, user: {exec: {command: ./p, apiVersion: client.authentication.k8s.io/v1, \
               interactiveMode: Never}}}]\n";
    let two = "clusters: [{name: alpha, cluster: {server: 'https://two', tls-server-name: two}}]\n\
               users: [{name: ann, user: {token: t}}, {name: bob, user: {tokenFile: token}}]\n\
               contexts: [{name: dev, context: {cluster: alpha, user: ann}}, \
               {name: ops, context: {cluster: alpha, user: bob}}]\ncurrent-context: dev\n";
    let files = file_system(&[("a/one", one), ("b/two", two), ("empty", ""), ("a/ca", ""), ("b/token", "t")]);
    let chosen = |context: &str| {
        let overrides = Overrides { context: context.to_owned(), ..Overrides::default() };
        selected_from(&["missing", "a/one", "empty", "b/two"], &files, &overrides).unwrap()
    };
    let dev = chosen("");
    assert_eq!(dev.context.as_deref(), Some("dev"), "from the first file that sets it");
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
    let exec = selected(&one_file(VALID_CLUSTER, &format!("{{{exec}}}")), &Overrides::default())
        .unwrap()
        .user
        .exec
        .unwrap();
    assert_eq!((&*exec.command, &*exec.args[0]), ("/no-such-directory/p", "./a"));
    assert_eq!(exec.env[0].value.expose(), "./v");
    let overrides = Overrides { client_key: "./k".to_owned(), ..Overrides::default() };
    assert_eq!(selected(&one_file(VALID_CLUSTER, "{}"), &overrides).unwrap().user.client_key, "./k");
}

#[test]
fn only_the_signer_program_of_provider_settings_is_relative_to_the_file() {
    // C132, C813
    for (provider, program, expected) in [
        ("externalSigner", "./signer", "/no-such-directory/signer"),
        ("externalSigner", "signer", "signer"),
        ("oidc", "./signer", "./signer"),
    ] {
        let user = format!(
            "{{auth-provider: {{name: {provider}, config: {{pathExec: {program}, pathLib: ./lib}}}}}}"
        );
        let effective = selected(&one_file(VALID_CLUSTER, &user), &Overrides::default()).unwrap();
        let config = effective.user.auth_provider.unwrap().config;
        assert_eq!(config["pathExec"].expose(), expected, "{provider} {program}");
        assert_eq!(config["pathLib"].expose(), "./lib", "{provider} {program}");
    }
}

#[cfg(feature = "exec")]
#[test]
fn valid_configuration_that_builds_no_client_has_a_build_error() {
    // C155
    let exec = "exec: {command: p, apiVersion: client.authentication.k8s.io/v9, interactiveMode: Never}";
    let version = "exec plugin: invalid apiVersion \"client.authentication.k8s.io/v9\"";
    let both = "username/password or bearer token may be set, but not both";
    for (user, expected) in [
        (format!("{{{exec}}}"), vec![version]),
        ("{tokenFile: readable, username: u, password: p}".to_owned(), vec![both]),
        (format!("{{token: t, {}}}", exec.replace("v9", "v1")), vec![]),
    ] {
        let files = one_file(VALID_CLUSTER, &user);
        assert!(selected(&files, &Overrides::default()).is_ok(), "{user}");
        assert_eq!(build_errors(files), expected, "{user}");
    }
}

#[test]
fn problem_location_is_its_field() {
    let text = "clusters:\n- name: alpha\n  cluster:\n    server: https://h\nusers:\n- name: ann\n  user:\n    exec:\n      \
                command: p\n      apiVersion: client.authentication.k8s.io/v1\n      interactiveMode: Sometimes\n\
                contexts:\n- name: dev\n  context: {cluster: alpha, user: ann}\ncurrent-context: dev\n";
    let files = file_system(&[("config", text)]);
    let report = report(files, Overrides::default());
    let location = report.errors()[0].location().unwrap();
    assert_eq!((location.path(), location.line(), location.column()), (Path::new("config"), 11, 7));
}
