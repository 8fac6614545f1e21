//! A plugin's input, and the errors of failed runs.

use navicert_plugin::{RunError, Stderr};
use navicert_types::exec_credential::ExecVersion;

use super::*;
use crate::metrics::{CallStatus, RefreshReason};

fn one_failure(fixture: &Fixture, exec: &str) -> String {
    current(&fixture.authenticator(exec)).unwrap_err()
}

const NEVER: &str = "{command: /bin/sh, interactiveMode: Never}";

// C302, C303, C304
#[test]
fn environment_is_inherited_then_kubeconfig_then_exec_info() {
    let mut fixture = Fixture::new([token("a1")]);
    fixture.settings.drop_env = vec!["HOME".into()];
    let exec = "{command: /bin/sh, interactiveMode: Never, args: ['$HOME', '*'], env: [{name: PATH, value: /x}, \
                {name: KUBERNETES_EXEC_INFO, value: mine}]}";
    assert!(current(&fixture.authenticator(exec)).is_ok());
    let command = &fixture.runner.commands()[0];
    let variable = |name: &str| command.variable(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(variable("PATH").as_deref(), Some("/x"));
    assert_eq!(variable("HOME"), None);
    assert_eq!(
        variable("KUBERNETES_EXEC_INFO").as_deref(),
        Some(
            "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"spec\":{\"interactive\":false}}\n"
        )
    );
    assert_eq!(command.arguments(), ["$HOME", "*"]);
    assert!(!format!("{fixture:?}", fixture = fixture.client_context).contains("mine"));
}

// C166, C212, C213, C230, C231, T31
#[test]
fn cluster_info_is_the_effective_cluster_with_the_ca_file_read_in() {
    let cluster = "{server: 'https://h/p?q', tls-server-name: name, certificate-authority: ca.pem, proxy-url: 'http://p', \
                   disable-compression: true, extensions: [{name: exec, extension: draft}, \
                   {name: client.authentication.k8s.io/exec, extension: {b: 1, a: <x>}}]}";
    let exec = "{command: p, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, provideClusterInfo: true}";
    let files = MemoryFileSystem::new("/no-such-root", [(PathBuf::from("ca.pem"), b"PEM".to_vec())]);
    let mut selected = effective(cluster, exec);
    let exec_info = |selected: &Effective| {
        Plugin::from_effective(selected, &files).unwrap().unwrap().exec_info(false).unwrap()
    };
    assert!(exec_info(&selected).expose().contains(
        "\"cluster\":{\"server\":\"https://h/p\",\"tls-server-name\":\"name\",\"certificate-authority-data\":\"UEVN\",\
         \"proxy-url\":\"http://p\",\"disable-compression\":true,\"config\":{\"a\":\"\\u003cx\\u003e\",\"b\":1}}"
    ));
    selected.cluster.server = "https://other".into();
    selected.cluster.extensions.clear();
    assert!(
        exec_info(&selected).expose().contains("\"server\":\"https://other\",")
            && exec_info(&selected).expose().contains("\"config\":null")
    );
    selected.cluster.certificate_authority = "/no-such-root/missing".into();
    let error = navicert_types::error_chain(&Plugin::from_effective(&selected, &files).unwrap_err());
    assert!(error.starts_with("failed to load CA bundle for execProvider: "), "{error}");
}

// C160, C201, C225
#[test]
fn no_plugin_over_plain_http_or_with_an_unsupported_version() {
    let files = MemoryFileSystem::new("/no-such-root", []);
    let exec = "{command: p, apiVersion: client.authentication.k8s.io/v1}";
    assert!(Plugin::from_effective(&effective("{server: 'http://h'}", exec), &files).unwrap().is_none());
    let unknown =
        effective("{server: 'https://h'}", "{command: p, apiVersion: client.authentication.k8s.io/v9}");
    let error = Plugin::from_effective(&unknown, &files).unwrap_err().to_string();
    assert!(
        error.starts_with("exec plugin: invalid apiVersion \"client.authentication.k8s.io/v9\""),
        "{error}"
    );
    let fixture = Fixture::new([]);
    assert_eq!(
        one_failure(&fixture, "{command: /bin/sh}"),
        "exec plugin cannot support interactive mode: unknown interactiveMode: \"\""
    );
}

// C221, C223, T22
#[test]
fn plugin_that_requires_a_terminal_is_not_run_without_one() {
    let mut fixture = Fixture::new([]);
    let always = "{command: /bin/sh, interactiveMode: Always}";
    let expected = "exec plugin cannot support interactive mode: standard input is not a terminal";
    for _ in 0..3 {
        assert_eq!(one_failure(&fixture, always), expected, "no back-off");
    }
    fixture.client_context.terminal = Arc::new(FixedTerminal { stdin: true, controlling: true });
    fixture.settings.stdin = interactive::StdinUse::Taken("used by stdin resource manifest reader".into());
    assert_eq!(
        one_failure(&fixture, always),
        "exec plugin cannot support interactive mode: standard input is unavailable: used by stdin resource manifest reader"
    );
    assert_eq!((fixture.runs(), fixture.metrics.calls(CallStatus::ClientInternalError, 1)), (0, 0));
}

// C215, T31
#[test]
fn rejects_input_that_does_not_fit_into_the_environment() {
    let cluster = |bytes: usize| {
        let data = navicert_types::decode::Base64::encode(&vec![b'x'; bytes]);
        format!("{{server: 'https://h', certificate-authority-data: {data}}}")
    };
    let exec = "{command: /bin/sh, interactiveMode: Never, provideClusterInfo: true}";
    let fixture = Fixture::new([token("a1")]);
    let with = |bytes| {
        Authenticator::new(
            plugin_in(&cluster(bytes), exec),
            fixture.settings.clone(),
            fixture.client_context.clone(),
        )
    };
    assert!(current(&with(90 * 1024)).is_ok());
    let error = current(&with(200 * 1024)).unwrap_err();
    assert!(error.contains("`provideClusterInfo`") && error.contains("204800 bytes"), "{error}");
    assert_eq!(fixture.runs(), 1);
}

// C320, C321, C325, T09
#[test]
fn missing_program_is_not_found_and_non_executable_one_fails_to_start() {
    let fixture = Fixture::new([]).like_upstream();
    let not_found = |exec: &str| one_failure(&fixture, exec);
    let bare = not_found("{command: no-such-plugin, interactiveMode: Never, installHint: \"\\e[1mget it\"}");
    assert!(bare.starts_with("exec: executable no-such-plugin not found\n\nThe kubeconfig"), "{bare}");
    assert!(bare.ends_with("\n\nU+001B[1mget it"), "{bare}");
    let absolute = not_found("{command: /no/such//plugin, interactiveMode: Never}");
    assert!(absolute.starts_with("exec: executable /no/such/plugin not found\n\n"), "{absolute}");
    assert_eq!(
        not_found("{command: /etc/passwd, interactiveMode: Never}"),
        "exec: fork/exec /etc/passwd: permission denied"
    );
    assert_eq!(fixture.metrics.calls(CallStatus::PluginNotFoundError, 1), 3);
}

// C322, T11
#[test]
fn help_is_printed_ten_times_an_hour() {
    let fixture = Fixture::new([]).like_upstream();
    let authenticator = fixture.authenticator("{command: no-such-plugin, interactiveMode: Never}");
    let helped = |times: usize| {
        (0..times).filter(|_| current(&authenticator).unwrap_err().contains("not found\n\n")).count()
    };
    assert_eq!(helped(30), 10);
    fixture.advance_seconds(3_599);
    assert_eq!(helped(5), 0);
    fixture.advance_seconds(1);
    assert_eq!(helped(30), 10);
}

// C306, C305, C307, C323, C324, C502, T09
#[test]
fn each_failure_has_client_go_message_and_its_metric() {
    let program = || PathBuf::from("/bin/sh");
    let scripts = [
        (Script::exits(1), "failed with exit code 1", CallStatus::PluginExecutionError, 1),
        (
            Script::exits(2).stdout(output("\"token\":\"c4nary\"")),
            "failed with exit code 2",
            CallStatus::PluginExecutionError,
            2,
        ),
        (Script::dies_by(9), "failed with exit code -1", CallStatus::PluginExecutionError, -1),
        (Script::never_ends(), "timed out after 5m0s", CallStatus::ClientInternalError, 1),
        (
            Script::prints(vec![b'x'; (1 << 20) + 1]),
            "printed more than 1048576 bytes",
            CallStatus::ClientInternalError,
            1,
        ),
        (
            Script::fails(RunError::NotFound { program: program() }),
            "not found",
            CallStatus::PluginNotFoundError,
            1,
        ),
    ];
    for (script, expected, status, code) in scripts {
        let fixture = Fixture::new([script]);
        let error = one_failure(&fixture, NEVER);
        assert!(error.starts_with(&format!("exec: executable /bin/sh {expected}")), "{error}");
        assert!(!error.contains("c4nary"));
        assert_eq!(fixture.metrics.calls(status, code), 1, "{expected}");
    }
}

// C502, T09
#[test]
fn exit_code_zero_counts_as_success_regardless_of_output() {
    let fixture = Fixture::new([Script::prints("nonsense"), token("a1")]).like_upstream();
    let authenticator = fixture.shell_authenticator();
    assert!(
        current(&authenticator)
            .unwrap_err()
            .starts_with("decoding stdout: couldn't get version/kind; json parse error: ")
    );
    assert!(current(&authenticator).is_ok());
    assert_eq!(fixture.metrics.calls(CallStatus::NoError, 0), 2);
    assert_eq!(fixture.metrics.refreshes(RefreshReason::Initial), 2);
}

// C327
#[test]
fn only_the_status_message_is_shown_escaped_and_truncated() {
    let status =
        |message: &str| format!("{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"message\":\"{message}\"}}");
    let failed = |stdout: String| one_failure(&Fixture::new([Script::exits(1).stdout(stdout)]), NEVER);
    let plain = "exec: executable /bin/sh failed with exit code 1";
    assert_eq!(failed(status("log in first\\u001b[0m")), format!("{plain}: log in firstU+001B[0m"));
    assert_eq!(failed(status(&"é".repeat(2_000))).len(), plain.len() + 2 + 1_024);
    for silent in [
        "c4nary".to_owned(),
        status(""),
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"message\":\"c4nary\"}".to_owned(),
    ] {
        assert_eq!(failed(silent), plain);
    }
    let mut fixture = Fixture::new([Script::exits(1).stdout(status("x"))]);
    fixture.settings.status_message = false;
    assert_eq!(one_failure(&fixture, NEVER), plain);
}

// C331, C332, §3.4, T01, T14
#[test]
fn invalid_output_is_rejected_with_client_go_messages_and_never_printed() {
    let v1 = "client.authentication.k8s.io/v1";
    let cases = [
        (String::new(), "exec plugin returned no apiVersion (empty output?)".to_owned()),
        ("{}".to_owned(), "exec plugin returned no apiVersion (empty output?)".to_owned()),
        (
            output("\"token\":\"c4nary\"").replace("/v1", "/v1beta1"),
            format!("exec plugin is configured to use API version {v1}, plugin returned version {v1}beta1"),
        ),
        (
            output("\"token\":\"c4nary\"").replace("/v1", "/v1alpha2"),
            "decoding stdout: no kind \"ExecCredential\" is registered for version".to_owned(),
        ),
        (format!("{{\"apiVersion\":\"{v1}\"}}"), "exec plugin didn't return a status field".to_owned()),
        (output(""), "exec plugin didn't return a token or cert/key pair".to_owned()),
        (
            output("\"token\":\"c4nary\",\"clientKeyData\":\"c4nary\""),
            "exec plugin returned only certificate or key, not both".to_owned(),
        ),
        (
            output("\"clientCertificateData\":\"c4nary\",\"clientKeyData\":\"c4nary\""),
            "failed parsing client key/certificate: failed to find any PEM data in certificate input"
                .to_owned(),
        ),
        (
            output("\"token\":\"c4nary\\n\""),
            "exec plugin returned a token with leading or trailing white space".to_owned(),
        ),
        (
            output("\"token\":\"c4\\nnary\""),
            "exec plugin returned a token with control characters".to_owned(),
        ),
        (format!("c4nary\n{}", output("\"token\":\"c4nary\"")), "decoding stdout: ".to_owned()),
    ];
    for (stdout, expected) in cases {
        let fixture = Fixture::new([Script::prints(stdout.clone())]);
        let error = block_on(fixture.shell_authenticator().get(RequestOrigin::Background)).unwrap_err();
        let text = navicert_types::error_chain(&error);
        assert!(text.starts_with(&expected), "{stdout}: {text}");
        assert!(!format!("{text} {error:?}").contains("c4nary"), "{error:?}");
    }
    for good in [
        format!("apiVersion: {v1}\nstatus: {{token: a1}}\n"),
        format!("{{\"apiVersion\":\"{v1}\",\"kind\":\"ExecCredential\",\"status\":{{\"token\":\"a1\"}}}}"),
    ] {
        assert_eq!(current(&Fixture::new([Script::prints(good)]).shell_authenticator()), Ok("a1".into()));
    }
}

// C195, C232
#[test]
fn debug_of_an_authenticator_shows_no_secrets() {
    let fixture = Fixture::new([token("c4nary")]);
    let exec = "{command: /bin/sh, interactiveMode: Never, provideClusterInfo: true, args: [--token, c4nary], env: [{name: A, value: c4nary}]}";
    let cluster = "{server: 'https://h', proxy-url: 'http://u:c4nary@p', extensions: [{name: client.authentication.k8s.io/exec, extension: {k: c4nary}}]}";
    let authenticator = Authenticator::new(
        plugin_in(cluster, exec),
        fixture.settings.clone(),
        fixture.client_context.clone(),
    );
    let credential = block_on(authenticator.get(RequestOrigin::Background)).unwrap();
    assert_eq!(bearer(&credential), "c4nary");
    for shown in [
        format!("{authenticator:#?}"),
        format!("{credential:#?}"),
        format!("{:#?}", credential.authorization),
    ] {
        assert!(!shown.contains("c4nary"), "{shown}");
    }
}

// C334
#[test]
fn certificate_outside_its_validity_is_used_with_a_warning() {
    let (certificate, key) = pair();
    let fixture = Fixture::new([with_certificate(&certificate, &key)]);
    assert!(current(&fixture.shell_authenticator()).is_ok());
    let escape = |pem: &str| pem.replace('\n', "\\n");
    let text = output(&format!(
        "\"clientCertificateData\":\"{}\",\"clientKeyData\":\"{}\"",
        escape(&certificate),
        escape(&key)
    ));
    let read = response::read(text.as_bytes(), ExecVersion::V1).unwrap();
    let validity = read.identity.as_ref().unwrap().validity();
    let before = validity.not_before - Duration::from_secs(5 * 60);
    assert_eq!(read.certificate_warning(before), None);
    assert!(read.certificate_warning(before - Duration::from_nanos(1)).unwrap().contains("not valid yet"));
    assert_eq!(read.certificate_warning(validity.not_after), None);
    assert!(
        read.certificate_warning(validity.not_after + Duration::from_nanos(1)).unwrap().contains("expired")
    );
}

#[test]
fn standard_error_can_be_captured() {
    // C305
    let captured = Arc::new(std::sync::Mutex::new(Vec::new()));
    let hear = Arc::clone(&captured);
    let mut fixture = Fixture::new([token("a1").stderr("a word")]);
    fixture.settings.stderr =
        Stderr::Forward(Arc::new(move |bytes| hear.lock().unwrap().extend_from_slice(bytes)));
    assert!(current(&fixture.shell_authenticator()).is_ok());
    assert_eq!(*captured.lock().unwrap(), b"a word");
}

proptest::proptest! {
    // Never panics, and errors never contain the output.
    #[test]
    fn any_output_is_decoded_or_rejected_without_printing_it(
        start in "(\\{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":)?",
        before in "[{}\\[\\]\":, \\na-z\\\\0-9]{0,30}",
        after in "[{}\\[\\]\":, \\na-z\\\\0-9]{0,30}",
        bytes: Vec<u8>,
    ) {
        let text = format!("{start}{before}c4nary{after}");
        for stdout in [text.as_bytes(), bytes.as_slice(), &[text.as_bytes(), &bytes].concat()] {
            if let Err(error) = response::read(stdout, ExecVersion::V1) {
                let shown = format!("{} {error:?}", navicert_types::error_chain(&error));
                proptest::prop_assert!(!shown.contains("c4nary"), "{}", shown);
            }
            let _ = response::status_message(stdout);
        }
    }
}
