//! The API for plugin authors.

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<PluginInput, PluginInputError> {
    PluginInput::read(Some(OsStr::new(text)))
}

fn exec_info(cluster: &str) -> String {
    format!(
        r#"{{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{{{cluster}"interactive":true}}}}"#
    )
}

// C601, C602, T08
#[test]
fn invalid_input_is_rejected_with_client_go_messages() {
    assert_eq!(
        PluginInput::read(None).unwrap_err().to_string(),
        "KUBERNETES_EXEC_INFO env var is unset or empty"
    );
    assert_eq!(read("").unwrap_err(), PluginInputError::Unset);
    assert!(read("{").unwrap_err().to_string().starts_with("decode: "));
    assert!(read("{}").unwrap_err().to_string().starts_with("decode: "));
    let cases = [
        (r#"{"kind":"Pod","apiVersion":"v1"}"#, "got Pod"),
        (
            r#"{"kind":"Pod","apiVersion":"client.authentication.k8s.io/v1"}"#,
            "got Pod.client.authentication.k8s.io",
        ),
        (r#"{"kind":"ExecCredential","apiVersion":"x/v1"}"#, "got ExecCredential.x"),
    ];
    for (text, got) in cases {
        let error = navicert_types::error_chain(&read(text).unwrap_err());
        assert_eq!(
            error,
            format!("invalid group/kind: wanted ExecCredential.client.authentication.k8s.io, {got}")
        );
    }
    let proxy =
        read(&exec_info(r#""cluster":{"server":"s","proxy-url":"http://[::1","config":null},"#)).unwrap();
    let error = navicert_types::error_chain(&proxy.cluster().unwrap_err());
    assert!(error.starts_with("cannot create rest.Config: cannot parse proxy URL: "), "{error}");
}

// C603, C604
#[test]
fn input_without_cluster_is_valid_unless_one_is_required() {
    let input = read(&exec_info("")).unwrap();
    assert_eq!(
        (input.version(), input.is_interactive(), input.cluster()),
        (ExecVersion::V1Beta1, true, Ok(None))
    );
    assert_eq!(
        input.require_cluster().unwrap_err().to_string(),
        "ExecCredential does not contain cluster information"
    );
    let input =
        read(&exec_info(r#""cluster":{"server":"https://s","tls-server-name":"n","config":{"a":1}},"#))
            .unwrap();
    let cluster = input.require_cluster().unwrap();
    assert_eq!((cluster.server.as_str(), cluster.tls_server_name.as_str()), ("https://s", "n"));
    assert!(input.config().unwrap().as_mapping().is_some());
}

proptest! {
    // C605, T08
    #[test]
    fn client_config_round_trips_through_a_plugin(
        server in "[a-z<>&\"é]{0,9}", name in "[a-z.]{0,9}", insecure: bool, authority: Vec<u8>,
        port in 0u16.., has_proxy: bool, compression: bool,
    ) {
        let config = ClientConfig {
            server,
            tls_server_name: name,
            insecure_skip_tls_verify: insecure,
            certificate_authority_data: authority,
            proxy_url: if has_proxy { format!("socks5://p.example:{port}") } else { String::new() },
            disable_compression: compression,
        };
        let spec = ExecCredentialSpec { cluster: Some(ExecCluster::from(&config)), ..ExecCredentialSpec::default() };
        let request = ExecCredential { spec, status: None }.to_request_json(ExecVersion::V1);
        let read = read(request.expose()).unwrap().require_cluster();
        prop_assert_eq!(read, Ok(config));
    }
}

// C606
#[test]
fn response_is_one_line_in_the_requested_version_and_not_written_if_clients_would_reject_it() {
    let input = read(&exec_info("")).unwrap();
    let mut stdout = Vec::new();
    let expiry = Timestamp::from_millisecond(1_925_000_000_900).unwrap();
    PluginResponse::token("t0ken").with_expiry(expiry).write(&input, &mut stdout).unwrap();
    assert_eq!(
        String::from_utf8(stdout).unwrap(),
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\",\
         \"status\":{\"expirationTimestamp\":\"2031-01-01T02:13:20Z\",\"token\":\"t0ken\"}}\n"
    );
    for (response, expected) in [
        (PluginResponse::default(), "exec plugin didn't return a token or cert/key pair"),
        (PluginResponse::token("a\nb"), "exec plugin returned a token with control characters"),
        (
            PluginResponse::certificate("x", String::new()),
            "exec plugin returned only certificate or key, not both",
        ),
    ] {
        let mut stdout = Vec::new();
        assert_eq!(navicert_types::error_chain(&response.write(&input, &mut stdout).unwrap_err()), expected);
        assert!(stdout.is_empty());
    }
}

// C606, C327
#[test]
fn failure_is_a_status_on_stdout_and_a_message_on_stderr() {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    assert_eq!(fail("log in first\u{1b}[1m", &mut stdout, &mut stderr).unwrap(), 1);
    assert_eq!(response::status_message(&stdout).as_deref(), Some("log in firstU+001B[1m"));
    assert_eq!(stderr, b"log in firstU+001B[1m\n");
}
