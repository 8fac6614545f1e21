//! Decoding and encoding of kubeconfig files.

use proptest::prelude::*;

use super::*;
use crate::diagnostic::DiagnosticKind;
use crate::tree::{Syntax, parse};

fn errors(text: &str) -> Vec<String> {
    decode(text.as_bytes())
        .map_or_else(|errors| errors.iter().map(ToString::to_string).collect(), |_| Vec::new())
}

const EVERYTHING: &str = r#"
apiVersion: v1
kind: Config
preferences:
  colors: true
  extensions: [{name: p, extension: 1}]
  palette: dark
clusters:
- name: alpha
  note: c-0
  cluster:
    server: https://u:canary@alpha:6443/prefix
    tls-server-name: alpha.example
    insecure-skip-tls-verify: true
    certificate-authority: ca.pem
    certificate-authority-data: Y2FuYXJ5
    proxy-url: http://u:canary@proxy:3128
    disable-compression: true
    extensions:
    - {name: client.authentication.k8s.io/exec, extension: {audience: canary}, vendor: x}
    zone: a
users:
- name: ann
  note: u-0
  user:
    client-certificate: c.pem
    client-certificate-data: Y2FuYXJ5
    client-key: k.pem
    client-key-data: Y2FuYXJ5
    token: canary
    tokenFile: t
    as: bob
    as-uid: '7'
    as-groups: [g1, g2]
    as-user-extra: {scope: [a, b]}
    username: ann
    password: canary
    auth-provider:
      name: oidc
      config: {client-id: c, id-token: canary}
      vendor: x
    exec:
      command: ./plugin
      args: [--token, canary, --region, eu]
      env: [{name: A, value: canary, vendor: x}]
      apiVersion: client.authentication.k8s.io/v1
      installHint: get it
      provideClusterInfo: true
      interactiveMode: Never
      timeout: 5
    extensions: [{name: e, extension: [canary]}]
    vendor: {deep: canary}
contexts:
- name: dev
  note: x-0
  context: {cluster: alpha, user: ann, namespace: ns, extensions: [{name: e, extension: s}], vendor: x}
current-context: dev
extensions: [{name: top, extension: {z: 1, a: 2}}]
vendor: {deep: [canary]}
"#;

#[test]
fn decodes_every_field() {
    // C101
    let config = decode(EVERYTHING.as_bytes()).unwrap();
    let (cluster, user) = (&config.clusters[0].cluster, &config.users[0].user);
    assert_eq!(cluster.certificate_authority_data, b"canary");
    assert!(cluster.insecure_skip_tls_verify && cluster.disable_compression && config.preferences.colors);
    assert_eq!(
        (cluster.tls_server_name.as_str(), cluster.certificate_authority.as_str()),
        ("alpha.example", "ca.pem")
    );
    assert_eq!(cluster.extensions[0].name, Cluster::EXEC_EXTENSION);
    assert_eq!((user.token.expose().as_str(), user.password.expose().as_str()), ("canary", "canary"));
    assert_eq!(user.client_key_data.expose(), b"canary");
    assert_eq!((user.impersonate.as_str(), user.impersonate_uid.as_str()), ("bob", "7"));
    assert_eq!((user.impersonate_groups.len(), user.impersonate_user_extra["scope"].len()), (2, 2));
    let exec = user.exec.as_ref().unwrap();
    assert_eq!((exec.args.len(), exec.env[0].value.expose().as_str()), (4, "canary"));
    assert!(
        exec.provide_cluster_info
            && exec.install_hint == "get it"
            && exec.interactive_mode == InteractiveMode::Never
    );
    assert_eq!(user.auth_provider.as_ref().unwrap().config["id-token"].expose(), "canary");
    assert_eq!(config.contexts[0].context.namespace, "ns");
    assert_eq!((config.current_context.as_str(), config.extensions[0].name.as_str()), ("dev", "top"));
}

#[test]
fn decoding_and_encoding_round_trips() {
    // C104, C107: unknown fields at every level stay.
    let config = decode(EVERYTHING.as_bytes()).unwrap();
    let written = config.expose_tree_with_unknown_fields();
    assert_eq!(written, parse(EVERYTHING.as_bytes(), Syntax::Yaml).unwrap());
    for text in [written.to_yaml(), written.to_json(), written.to_json_pretty()] {
        assert_eq!(decode(text.as_bytes()).unwrap(), config, "{text}");
    }
}

#[test]
fn debug_of_every_type_hides_the_planted_secret() {
    let config = decode(EVERYTHING.as_bytes()).unwrap();
    let user = &config.users[0].user;
    let shown = [
        format!("{config:?}"),
        format!("{config:#?}"),
        format!("{:?}", config.clusters[0]),
        format!("{:?}", config.users[0]),
        format!("{user:#?}"),
        format!("{:?}", user.exec),
        format!("{:?}", user.auth_provider),
        format!("{:?}", config.contexts),
        format!("{:?}", user.exec.as_ref().unwrap().env),
        format!("{:?}", config.extensions),
        format!("{:?}", user.other),
    ];
    let bytes = format!("{:?}", b"canary");
    for shown in shown {
        assert!(!shown.contains("canary") && !shown.contains(&bytes), "{shown}");
    }
}

#[test]
fn the_redacted_view_has_no_secret_and_keeps_the_rest() {
    let shown = decode(EVERYTHING.as_bytes()).unwrap().redacted_tree().to_yaml();
    // The exec cluster configuration and other extensions are shown, as in kubectl.
    let hidden = shown.replace("audience: canary", "").replace("- canary\n", "");
    assert!(!hidden.contains("canary"), "{shown}");
    for kept in [
        "https://REDACTED@alpha:6443/prefix",
        "certificate-authority-data: DATA+OMITTED",
        "client-key-data: DATA+OMITTED",
        "token: REDACTED",
        "client-id: c\n",
        "- \"--region\"\n",
        "server:",
        "username: ann",
        "namespace: ns",
    ] {
        assert!(shown.contains(kept), "{kept}: {shown}");
    }
    assert!(!shown.contains("vendor") && !shown.contains("palette"), "{shown}");
}

#[test]
fn output_has_the_shape_kubernetes_writes() {
    // C108: sorted by name; args, env and provideClusterInfo always present; other empty fields omitted.
    let text =
        "users:\n- {name: b, user: {exec: {command: p}}}\n- {name: a, user: {}}\nclusters: [{name: c}]\n";
    let json = decode(text.as_bytes()).unwrap().expose_tree().to_json();
    assert_eq!(
        json,
        r#"{"kind":"Config","apiVersion":"v1","clusters":[{"name":"c","cluster":{"server":""}}],"users":[{"name":"a","user":{}},{"name":"b","user":{"exec":{"command":"p","args":null,"env":null,"provideClusterInfo":false}}}],"contexts":null,"current-context":""}"#
    );
}

#[test]
fn rejects_documents_of_another_kind() {
    // C102
    for text in ["{}", "kind: Config\n", "apiVersion: v1\n", "kind: null\napiVersion: ''\n"] {
        assert_eq!(errors(text), [""; 0], "{text}");
    }
    for (text, sentence) in [
        ("kind: config\n", "kind: unknown kind `config`; expected `Config` (line 1, column 7)"),
        (
            "apiVersion: v2\n",
            "apiVersion: unsupported version `v2` of kind `Config`; expected `v1` (line 1, column 13)",
        ),
        ("kind: 5\n", "kind: expected a string, found a number (line 1, column 7)"),
        ("- a\n", "line 1, column 1: expected a mapping with `apiVersion` and `kind`, found a list"),
    ] {
        assert_eq!(errors(text), [sentence]);
    }
}

#[test]
fn an_empty_document_is_an_empty_configuration() {
    // C103
    for text in ["", "# nothing\n", " \n\n", "---\n", "null\n", "{}"] {
        assert_eq!(decode(text.as_bytes()).unwrap(), Kubeconfig::default(), "{text:?}");
    }
}

#[test]
fn rejects_duplicate_names_without_printing_the_list() {
    // C105
    let twice =
        "users:\n- name: ann\n  user: {token: canary}\n- name: bob\n- name: ann\n  user: {token: canary2}\n";
    assert_eq!(errors(twice), [r#"users[2].name: duplicate name "ann" in list (line 5, column 9)"#]);
    for text in [
        "clusters: [{name: a}, {name: a}]",
        "contexts: [{name: a}, {name: a}]",
        "extensions: [{name: a}, {name: a}]",
        "clusters: [{cluster: {extensions: [{name: a}, {name: a}]}}]",
        "users: [{user: {extensions: [{name: a}, {name: a}]}}]",
        "contexts: [{context: {extensions: [{name: a}, {name: a}]}}]",
        "preferences: {extensions: [{name: a}, {name: a}]}",
        "users: [null, null]",
        "users: [&u {name: a}, *u]",
    ] {
        let found = decode(text.as_bytes()).unwrap_err();
        assert_eq!(
            found.iter().map(|error| error.kind).collect::<Vec<_>>(),
            [DiagnosticKind::Duplicate],
            "{text}"
        );
    }
    assert_eq!(errors("users: [{name: a}, {name: A}]"), [""; 0]);
}

#[test]
fn missing_mode_means_if_available_for_old_versions_only() {
    // C109
    for (version, mode, expected) in [
        ("v1beta1", "", "IfAvailable"),
        ("v1alpha1", "interactiveMode: ''", "IfAvailable"),
        ("v1", "", ""),
        ("v2", "", ""),
        ("v1beta1", "interactiveMode: Never", "Never"),
        ("v1", "interactiveMode: Sometimes", "Sometimes"),
        ("v1beta1", "interactiveMode: null", "IfAvailable"),
    ] {
        let text = format!(
            "users: [{{user: {{exec: {{apiVersion: client.authentication.k8s.io/{version}, {mode}}}}}}}]"
        );
        let config = decode(text.as_bytes()).unwrap();
        assert_eq!(config.users[0].user.exec.as_ref().unwrap().interactive_mode.as_str(), expected, "{text}");
    }
}

#[test]
fn checks_types_and_reports_every_error() {
    let text = "\
clusters:
- name: 5
  cluster: {server: 6, insecure-skip-tls-verify: 'true', certificate-authority-data: '*'}
users:
- name: ann
  user: {token: 31337, client-key-data: s3cret!, exec: {args: x, env: {A: '1'}}, auth-provider: {config: {id-token: 4}}}
current-context: yes
";
    let found = decode(text.as_bytes()).unwrap_err();
    let paths: Vec<_> = found.iter().map(|error| (error.path.to_string(), error.is_secret)).collect();
    let expected = [
        ("clusters[0].name", false),
        ("clusters[0].cluster.server", false),
        ("clusters[0].cluster.insecure-skip-tls-verify", false),
        ("clusters[0].cluster.certificate-authority-data", false),
        ("users[0].user.token", true),
        ("users[0].user.client-key-data", true),
        ("users[0].user.exec.args", true),
        ("users[0].user.exec.env", false),
        ("users[0].user.auth-provider.config[id-token]", true),
        ("current-context", false),
    ];
    assert_eq!(paths, expected.map(|(path, is_secret)| (path.to_owned(), is_secret)));
    let shown = format!("{found} {found:?}");
    assert!(!shown.contains("31337") && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn syntax_errors_are_marked_as_possibly_secret() {
    let error = decode(b"users:\n- token: s3cret: x\n").unwrap_err();
    assert!(error.iter().all(|error| error.is_secret), "{error}");
}

#[test]
fn extensions_accept_any_value() {
    // C107
    for (written, json) in [
        ("{z: 1, a: [yes, 1.0]}", r#"{"z":1,"a":[true,1]}"#),
        ("s", r#""s""#),
        ("null", "null"),
        ("", "null"),
    ] {
        let config = decode(format!("extensions:\n- name: e\n  extension: {written}\n").as_bytes()).unwrap();
        assert_eq!(config.extensions[0].extension.to_json(), json);
        assert!(config.expose_tree().to_json().contains(&format!("\"extension\":{json}")));
    }
    let absent = decode(b"extensions: [{name: e}]").unwrap();
    assert!(absent.expose_tree().to_json().contains(r#"{"name":"e","extension":null}"#));
}

proptest! {
    #[test]
    fn decoder_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&bytes);
    }

    #[test]
    fn any_value_of_a_known_field_is_rejected_or_round_trips(
        value in prop_oneof!["[a-z0-9~]{0,6}", Just("{}".to_owned()), Just("[x, {name: y}]".to_owned()), Just("'q'".to_owned()), Just("|\n    t".to_owned())],
        field in prop::sample::select(vec!["clusters", "users", "users:\n- user", "users:\n- user:\n    exec", "users:\n- user:\n    token",
            "clusters:\n- cluster:\n    certificate-authority-data", "contexts:\n- name", "preferences", "extensions", "kind", "vendor"]),
    ) {
        if let Ok(config) = decode(format!("{field}: {value}\n").as_bytes()) {
            let written = config.expose_tree_with_unknown_fields().to_yaml();
            prop_assert_eq!(decode(written.as_bytes()).map_err(|error| TestCaseError::fail(error.to_string()))?, config);
        }
    }
}
