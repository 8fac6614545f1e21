//! The exact bytes of requests, and decoding of responses.

use std::collections::BTreeSet;

use super::*;
use crate::tree::{Mapping, Value};

fn request(spec: ExecCredentialSpec, version: ExecVersion) -> String {
    ExecCredential { spec, status: None }.to_request_json(version).expose().clone()
}

fn rejection(text: &str) -> String {
    decode(text.as_bytes()).unwrap_err().to_string()
}

// C210
#[test]
fn request_without_cluster_is_the_documented_line() {
    assert_eq!(
        request(ExecCredentialSpec::default(), ExecVersion::V1),
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"spec\":{\"interactive\":false}}\n"
    );
    let spec = ExecCredentialSpec { interactive: true, ..ExecCredentialSpec::default() };
    assert_eq!(
        request(spec, ExecVersion::V1Beta1),
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\",\"spec\":{\"interactive\":true}}\n"
    );
}

// C210, C211, C230
#[test]
fn request_with_cluster_has_ordered_fields_and_go_escapes() {
    let mut config = Mapping::default();
    config.push("z", Value::Bool(true));
    config.push("a", Value::String("<&>\u{2028}\u{8}\u{c}\u{1}\u{7f}\"\\".to_owned().into()));
    let cluster = ExecCluster {
        server: "https://h".into(),
        tls_server_name: "n".into(),
        insecure_skip_tls_verify: true,
        certificate_authority_data: b"ca".to_vec(),
        proxy_url: "http://p".into(),
        disable_compression: true,
        config: Node::new(Value::Mapping(config)),
    };
    let text = request(
        ExecCredentialSpec { cluster: Some(cluster), ..ExecCredentialSpec::default() },
        ExecVersion::V1,
    );
    assert_eq!(
        text,
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"spec\":{\"cluster\":{\
         \"server\":\"https://h\",\"tls-server-name\":\"n\",\"insecure-skip-tls-verify\":true,\
         \"certificate-authority-data\":\"Y2E=\",\"proxy-url\":\"http://p\",\"disable-compression\":true,\
         \"config\":{\"a\":\"\\u003c\\u0026\\u003e\\u2028\\b\\f\\u0001\u{7f}\\\"\\\\\",\"z\":true}},\"interactive\":false}}\n"
    );
    let (version, read) = decode(text.as_bytes()).unwrap();
    assert_eq!((version, read.to_request_json(version).expose()), (ExecVersion::V1, &text));
}

// C211: always present, null if empty.
#[test]
fn config_is_null_without_the_exec_extension() {
    let spec = ExecCredentialSpec { cluster: Some(ExecCluster::default()), ..ExecCredentialSpec::default() };
    assert!(request(spec, ExecVersion::V1).contains("\"cluster\":{\"server\":\"\",\"config\":null}"));
}

// C213, T07: the names on the wire are those of a kubeconfig's cluster, less two, plus `config`.
#[test]
fn cluster_fields_match_those_of_a_kubeconfig_cluster() {
    let kubeconfig = crate::kubeconfig::Cluster {
        server: "s".into(),
        tls_server_name: "n".into(),
        insecure_skip_tls_verify: true,
        certificate_authority: "f".into(),
        certificate_authority_data: b"x".to_vec(),
        proxy_url: "p".into(),
        disable_compression: true,
        extensions: vec![crate::kubeconfig::NamedExtension::default()],
        other: Mapping::default(),
    };
    let exec = ExecCluster {
        server: "s".into(),
        tls_server_name: "n".into(),
        insecure_skip_tls_verify: true,
        certificate_authority_data: b"x".to_vec(),
        proxy_url: "p".into(),
        disable_compression: true,
        config: Node::default(),
    };
    let entry = crate::kubeconfig::NamedCluster { cluster: kubeconfig, ..Default::default() };
    let config = crate::kubeconfig::Kubeconfig { clusters: vec![entry], ..Default::default() };
    let tree = config.expose_tree();
    let written = &tree.as_mapping().unwrap().last("clusters").unwrap().value.as_sequence().unwrap()[0];
    let mut expected = names(&written.as_mapping().unwrap().last("cluster").unwrap().value);
    for absent in ["certificate-authority", "extensions"] {
        assert!(expected.remove(absent), "{absent}");
    }
    expected.insert("config".to_owned());
    let sent =
        request(ExecCredentialSpec { cluster: Some(exec), ..ExecCredentialSpec::default() }, ExecVersion::V1);
    let sent = crate::tree::parse(sent.as_bytes(), crate::tree::Syntax::Json).unwrap();
    let spec = &sent.as_mapping().unwrap().last("spec").unwrap().value;
    assert_eq!(names(&spec.as_mapping().unwrap().last("cluster").unwrap().value), expected);
}

fn names(node: &Node) -> BTreeSet<String> {
    node.as_mapping().unwrap().entries().iter().map(|entry| entry.key.clone()).collect()
}

// C214: names of a revision that was never released.
#[test]
fn unreleased_field_names_are_ignored() {
    let text = r#"{"apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"serverName":"n","caData":"eA=="}}}"#;
    let (_, read) = decode(text.as_bytes()).unwrap();
    assert_eq!(read.spec.cluster, Some(ExecCluster::default()));
}

// C331, §3.4
#[test]
fn invalid_texts_are_rejected_with_client_go_messages() {
    let cases = [
        ("", "no apiVersion (empty output?)"),
        ("null", "no apiVersion (empty output?)"),
        ("{\"status\":{\"token\":5}}", "no apiVersion (empty output?)"),
        ("{\"apiVersion\":\"client.authentication.k8s.io/__internal\"}", "no apiVersion (empty output?)"),
        (
            "{\"apiVersion\":\"client.authentication.k8s.io/v9\"}",
            "no kind \"ExecCredential\" is registered for version \"client.authentication.k8s.io/v9\"; \
             supported versions are client.authentication.k8s.io/v1 and client.authentication.k8s.io/v1beta1",
        ),
        (
            "{\"apiVersion\":5}",
            "couldn't get version/kind; json parse error: apiVersion: expected a string, found a number (line 1, column 15)",
        ),
        (
            "logging in…",
            "couldn't get version/kind; json parse error: line 1, column 1: expected an object, found a string",
        ),
        (
            "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{\"token\":5,\"expirationTimestamp\":\"\"}}",
            "status.token: expected a string, found a number",
        ),
    ];
    for (text, expected) in cases {
        let shown = rejection(text);
        assert!(shown.starts_with(expected), "{text}: {shown}");
    }
    assert!(rejection("{\"apiVersion\":").starts_with("couldn't get version/kind; json parse error: "));
    assert!(rejection("a:\n\tb: c").starts_with("yaml: "));
}

// C242 as decided
#[test]
fn rejects_duplicate_status() {
    let text =
        r#"{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"a"},"status":{"token":"b"}}"#;
    assert!(rejection(text).starts_with("status: duplicate field"));
}

// C242: as in Go, where YAML becomes JSON with the last of duplicate fields.
#[test]
fn null_removes_only_the_expiry_of_a_duplicate_field_in_json() {
    let status = |text: &str| {
        let text = format!(r#"{{"apiVersion":"client.authentication.k8s.io/v1","status":{text}}}"#);
        decode(text.as_bytes()).map(|(_, read)| read.status.unwrap())
    };
    let read = status(r#"{"token":"a","token":null,"clientKeyData":null,"clientKeyData":"k"}"#).unwrap();
    assert_eq!((read.token.expose().as_str(), read.client_key_data.expose().as_str()), ("a", "k"));
    assert_eq!(status(r#"{"token":"a","token":"b"}"#).unwrap().token.expose(), "b");
    let time = r#""expirationTimestamp":"2031-05-06T07:08:09Z""#;
    let read = status(&format!(r#"{{"token":"a",{time},"expirationTimestamp":null}}"#)).unwrap();
    assert_eq!(read.expiration_timestamp, None);
    let error = status(r#"{"token":5,"token":"b"}"#).unwrap_err().to_string();
    assert!(error.starts_with("status.token: expected a string"), "{error}");
    let yaml = "apiVersion: client.authentication.k8s.io/v1\nstatus: {token: a, token: null}\n";
    assert!(decode(yaml.as_bytes()).unwrap().1.status.unwrap().token.is_empty());
}

// C333
#[test]
fn zero_expiry_means_never() {
    for (time, expected) in
        [("0001-01-01T01:00:00+01:00", None), ("2031-05-06T7:08:09,5Z", Some("2031-05-06T07:08:09.5Z"))]
    {
        let text = format!(
            "{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{{\"expirationTimestamp\":\"{time}\"}}}}"
        );
        let (_, read) = decode(text.as_bytes()).unwrap();
        let found = read.status.unwrap().expiration_timestamp.map(|time| time.to_string());
        assert_eq!(found.as_deref(), expected, "{time}");
    }
}

// C232, C195
#[test]
fn debug_and_errors_never_show_secrets() {
    let canary = "c4nary";
    let text = format!(
        "{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"spec\":{{\"cluster\":{{\"proxy-url\":\"http://u:{canary}@p\",\
         \"config\":{{\"k\":\"{canary}\"}}}}}},\"status\":{{\"token\":\"{canary}\",\"clientKeyData\":\"{canary}\"}}}}"
    );
    let (_, read) = decode(text.as_bytes()).unwrap();
    assert!(!format!("{read:?} {read:#?}").contains(canary));
    for broken in [
        canary.to_owned(),
        format!("{{\"{canary}\""),
        format!("{{\"apiVersion\":\"{canary}!\"}}"),
        format!("{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"{canary}!\"}}"),
        format!(
            "{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{{\"expirationTimestamp\":\"{canary}\"}}}}"
        ),
        format!("{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":\"{canary}\"}}"),
    ] {
        let error = decode(broken.as_bytes()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(canary), "{error:?}");
    }
}

// C606: clients can decode what plugins write.
#[test]
fn response_round_trips() {
    let status = ExecCredentialStatus {
        expiration_timestamp: Some("2031-01-02T03:04:05Z".parse().unwrap()),
        token: "t<&>".to_owned().into(),
        client_certificate_data: "c".into(),
        client_key_data: "k".to_owned().into(),
    };
    for version in ExecVersion::ALL {
        let credential = ExecCredential { spec: ExecCredentialSpec::default(), status: Some(status.clone()) };
        let response = credential.to_response_json(*version);
        assert_eq!(decode(response.expose().as_bytes()).unwrap(), (*version, credential));
        assert_eq!(response.expose().matches('\n').count(), 1);
    }
}

// C202
#[cfg(feature = "exec-v1alpha1")]
#[test]
fn v1alpha1_has_the_server_response_and_no_cluster() {
    let response = ServerResponse {
        header: vec![("B".into(), vec!["2".into()]), ("A".into(), vec!["1".into(), "x".into()])],
        code: 401,
    };
    let spec = ExecCredentialSpec {
        cluster: Some(ExecCluster::default()),
        interactive: false,
        response: Some(response),
    };
    assert_eq!(
        request(spec, ExecVersion::V1Alpha1),
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1alpha1\",\"spec\":{\"response\":\
         {\"header\":{\"A\":[\"1\",\"x\"],\"B\":[\"2\"]},\"code\":401}}}\n"
    );
    assert!(
        request(
            ExecCredentialSpec { interactive: true, ..ExecCredentialSpec::default() },
            ExecVersion::V1Alpha1
        )
        .contains("\"spec\":{\"interactive\":true}")
    );
}

// C242: Go's decoder also reads `Kind`, and YAML keys are sorted first.
#[test]
fn version_and_kind_must_be_strings_in_every_spelling() {
    let v1 = "apiVersion: client.authentication.k8s.io/v1\nstatus: {token: t}\n";
    for (line, ok) in [
        ("Kind: []\nkind: ''\n", false),
        ("kind: ''\nKind: 1\n", false),
        ("kind: ExecCredential\nKind: Other\n", true),
        ("Kind: ExecCredential\nkind: Other\n", false),
        ("Kind: null\nkind: ExecCredential\n", true),
    ] {
        assert_eq!(decode(format!("{line}{v1}").as_bytes()).is_ok(), ok, "{line}");
    }
    let json = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"Other","Kind":"ExecCredential","status":{"token":"t"}}"#;
    assert!(decode(json.as_bytes()).is_ok());
}
