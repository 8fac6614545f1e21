//! What a plugin is given, and what becomes of a run that fails.

use navicert_plugin::{RunError, Stderr};
use navicert_types::exec_credential::Version;

use super::*;
use crate::metrics::{CallStatus, RefreshReason};

fn one_failure(stage: &Stage, exec: &str) -> String {
    current(&stage.authenticator(exec)).unwrap_err()
}

const NEVER: &str = "{command: /bin/sh, interactiveMode: Never}";

// C302, C303, C304
#[test]
fn the_environment_is_inherited_then_the_kubeconfigs_then_the_question() {
    let mut stage = Stage::new([token("a1")]);
    stage.settings.drop_env = vec!["HOME".into()];
    let exec = "{command: /bin/sh, interactiveMode: Never, args: ['$HOME', '*'], env: [{name: PATH, value: /x}, \
                {name: KUBERNETES_EXEC_INFO, value: mine}]}";
    assert!(current(&stage.authenticator(exec)).is_ok());
    let command = &stage.runner.commands()[0];
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
    assert!(!format!("{stage:?}", stage = stage.around).contains("mine"));
}

// C166, C212, C213, C230, C231, T31
#[test]
fn cluster_info_is_the_effective_cluster_with_its_authority_read_in() {
    let cluster = "{server: 'https://h/p?q', tls-server-name: name, certificate-authority: ca.pem, proxy-url: 'http://p', \
                   disable-compression: true, extensions: [{name: exec, extension: draft}, \
                   {name: client.authentication.k8s.io/exec, extension: {b: 1, a: <x>}}]}";
    let exec = "{command: p, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, provideClusterInfo: true}";
    let files = MemoryFolder::new("/no-such-root", [(PathBuf::from("ca.pem"), b"PEM".to_vec())]);
    let mut selected = effective(cluster, exec);
    let told = |selected: &Effective| Plugin::of(selected, &files).unwrap().unwrap().question(false).unwrap();
    assert!(told(&selected).expose().contains(
        "\"cluster\":{\"server\":\"https://h/p\",\"tls-server-name\":\"name\",\"certificate-authority-data\":\"UEVN\",\
         \"proxy-url\":\"http://p\",\"disable-compression\":true,\"config\":{\"a\":\"\\u003cx\\u003e\",\"b\":1}}"
    ));
    selected.cluster.server = "https://other".into();
    selected.cluster.extensions.clear();
    assert!(
        told(&selected).expose().contains("\"server\":\"https://other\",")
            && told(&selected).expose().contains("\"config\":null")
    );
    selected.cluster.certificate_authority = "/no-such-root/missing".into();
    let error = Plugin::of(&selected, &files).unwrap_err().to_string();
    assert!(error.starts_with("failed to load CA bundle for execProvider: "), "{error}");
}

// C160, C201, C225
#[test]
fn no_plugin_over_plain_http_and_none_in_an_unknown_version() {
    let files = MemoryFolder::new("/no-such-root", []);
    let exec = "{command: p, apiVersion: client.authentication.k8s.io/v1}";
    assert!(Plugin::of(&effective("{server: 'http://h'}", exec), &files).unwrap().is_none());
    let unknown =
        effective("{server: 'https://h'}", "{command: p, apiVersion: client.authentication.k8s.io/v9}");
    let error = Plugin::of(&unknown, &files).unwrap_err().to_string();
    assert!(
        error.starts_with("exec plugin: invalid apiVersion \"client.authentication.k8s.io/v9\""),
        "{error}"
    );
    let stage = Stage::new([]);
    assert_eq!(
        one_failure(&stage, "{command: /bin/sh}"),
        "exec plugin cannot support interactive mode: unknown interactiveMode: \"\""
    );
}

// C221, C223, T22
#[test]
fn a_plugin_that_must_talk_and_cannot_is_not_run() {
    let mut stage = Stage::new([]);
    let always = "{command: /bin/sh, interactiveMode: Always}";
    let expected = "exec plugin cannot support interactive mode: standard input is not a terminal";
    for _ in 0..3 {
        assert_eq!(one_failure(&stage, always), expected, "nothing is waited out");
    }
    stage.around.terminal = Arc::new(FixedTerminal { stdin: true, controlling: true });
    stage.settings.stdin = interactive::Stdin::Taken("used by stdin resource manifest reader".into());
    assert_eq!(
        one_failure(&stage, always),
        "exec plugin cannot support interactive mode: standard input is unavailable: used by stdin resource manifest reader"
    );
    assert_eq!((stage.runs(), stage.metrics.calls(CallStatus::ClientInternalError, 1)), (0, 0));
}

// C215, T31
#[test]
fn what_does_not_fit_into_the_environment_is_refused_before_the_run() {
    let cluster = |bytes: usize| {
        let data = navicert_types::decode::Base64::encode(&vec![b'x'; bytes]);
        format!("{{server: 'https://h', certificate-authority-data: {data}}}")
    };
    let exec = "{command: /bin/sh, interactiveMode: Never, provideClusterInfo: true}";
    let stage = Stage::new([token("a1")]);
    let with = |bytes| {
        Authenticator::new(plugin_in(&cluster(bytes), exec), stage.settings.clone(), stage.around.clone())
    };
    assert!(current(&with(90 * 1024)).is_ok());
    let error = current(&with(200 * 1024)).unwrap_err();
    assert!(error.contains("`provideClusterInfo`") && error.contains("204800 bytes"), "{error}");
    assert_eq!(stage.runs(), 1);
}

// C320, C321, C325, T09
#[test]
fn a_program_that_is_not_there_is_not_found_and_one_that_cannot_run_is_said_so() {
    let stage = Stage::new([]).like_upstream();
    let not_found = |exec: &str| one_failure(&stage, exec);
    let bare = not_found("{command: no-such-plugin, interactiveMode: Never, installHint: \"\\e[1mget it\"}");
    assert!(bare.starts_with("exec: executable no-such-plugin not found\n\nThe kubeconfig"), "{bare}");
    assert!(bare.ends_with("\n\nU+001B[1mget it"), "{bare}");
    let absolute = not_found("{command: /no/such//plugin, interactiveMode: Never}");
    assert!(absolute.starts_with("exec: executable /no/such/plugin not found\n\n"), "{absolute}");
    assert_eq!(
        not_found("{command: /etc/passwd, interactiveMode: Never}"),
        "exec: fork/exec /etc/passwd: permission denied"
    );
    assert_eq!(stage.metrics.calls(CallStatus::PluginNotFoundError, 1), 3);
}

// C322, T11
#[test]
fn help_is_given_ten_times_an_hour() {
    let stage = Stage::new([]).like_upstream();
    let authenticator = stage.authenticator("{command: no-such-plugin, interactiveMode: Never}");
    let helped = |times: usize| {
        (0..times).filter(|_| current(&authenticator).unwrap_err().contains("not found\n\n")).count()
    };
    assert_eq!(helped(30), 10);
    stage.later(3_599);
    assert_eq!(helped(5), 0);
    stage.later(1);
    assert_eq!(helped(30), 10);
}

// C306, C305, C307, C323, C324, C502, T09
#[test]
fn each_way_to_fail_hlike_upstreams_words_and_its_count() {
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
        let stage = Stage::new([script]);
        let error = one_failure(&stage, NEVER);
        assert!(error.starts_with(&format!("exec: executable /bin/sh {expected}")), "{error}");
        assert!(!error.contains("c4nary"));
        assert_eq!(stage.metrics.calls(status, code), 1, "{expected}");
    }
}

// C502, T09
#[test]
fn a_plugin_that_exits_with_zero_counts_as_good_whatever_it_prints() {
    let stage = Stage::new([Script::prints("nonsense"), token("a1")]).like_upstream();
    let authenticator = stage.usual();
    assert!(
        current(&authenticator)
            .unwrap_err()
            .starts_with("decoding stdout: couldn't get version/kind; json parse error: ")
    );
    assert!(current(&authenticator).is_ok());
    assert_eq!(stage.metrics.calls(CallStatus::NoError, 0), 2);
    assert_eq!(stage.metrics.refreshes(RefreshReason::Initial), 2);
}

// C327
#[test]
fn the_message_of_a_status_is_shown_cleaned_and_cut_and_nothing_else_is() {
    let status =
        |message: &str| format!("{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"message\":\"{message}\"}}");
    let failed = |stdout: String| one_failure(&Stage::new([Script::exits(1).stdout(stdout)]), NEVER);
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
    let mut stage = Stage::new([Script::exits(1).stdout(status("x"))]);
    stage.settings.status_message = false;
    assert_eq!(one_failure(&stage, NEVER), plain);
}

// C331, C332, §3.4, T01, T14
#[test]
fn answers_that_are_none_are_refused_in_upstreams_words_without_echo() {
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
            "exec plugin returned a token with white space around it".to_owned(),
        ),
        (
            output("\"token\":\"c4\\nnary\""),
            "exec plugin returned a token with control characters in it".to_owned(),
        ),
        (format!("c4nary\n{}", output("\"token\":\"c4nary\"")), "decoding stdout: ".to_owned()),
    ];
    for (stdout, expected) in cases {
        let stage = Stage::new([Script::prints(stdout.clone())]);
        let error = block_on(stage.usual().current(Asking::Background)).unwrap_err();
        assert!(error.to_string().starts_with(&expected), "{stdout}: {error}");
        assert!(!format!("{error} {error:?}").contains("c4nary"), "{error:?}");
    }
    for good in [
        format!("apiVersion: {v1}\nstatus: {{token: a1}}\n"),
        format!("{{\"apiVersion\":\"{v1}\",\"kind\":\"ExecCredential\",\"status\":{{\"token\":\"a1\"}}}}"),
    ] {
        assert_eq!(current(&Stage::new([Script::prints(good)]).usual()), Ok("a1".into()));
    }
}

// C195, C232
#[test]
fn nothing_secret_is_shown_by_an_authenticator() {
    let stage = Stage::new([token("c4nary")]);
    let exec = "{command: /bin/sh, interactiveMode: Never, provideClusterInfo: true, args: [--token, c4nary], env: [{name: A, value: c4nary}]}";
    let cluster = "{server: 'https://h', proxy-url: 'http://u:c4nary@p', extensions: [{name: client.authentication.k8s.io/exec, extension: {k: c4nary}}]}";
    let authenticator =
        Authenticator::new(plugin_in(cluster, exec), stage.settings.clone(), stage.around.clone());
    let credential = block_on(authenticator.current(Asking::Background)).unwrap();
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
fn a_certificate_out_of_its_time_is_used_and_warned_about() {
    let (certificate, key) = pair();
    let stage = Stage::new([with_certificate(&certificate, &key)]);
    assert!(current(&stage.usual()).is_ok());
    let escape = |pem: &str| pem.replace('\n', "\\n");
    let text = output(&format!(
        "\"clientCertificateData\":\"{}\",\"clientKeyData\":\"{}\"",
        escape(&certificate),
        escape(&key)
    ));
    let read = response::read(text.as_bytes(), Version::V1).unwrap();
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
fn complaints_can_be_heard_instead_of_inherited() {
    // C305
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let hear = Arc::clone(&heard);
    let mut stage = Stage::new([token("a1").stderr("a word")]);
    stage.settings.stderr =
        Stderr::Forward(Arc::new(move |bytes| hear.lock().unwrap().extend_from_slice(bytes)));
    assert!(current(&stage.usual()).is_ok());
    assert_eq!(*heard.lock().unwrap(), b"a word");
}

proptest::proptest! {
    // Never a panic on input, and never the input in an error.
    #[test]
    fn whatever_a_plugin_prints_is_read_or_refused_without_echo(
        start in "(\\{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":)?",
        before in "[{}\\[\\]\":, \\na-z\\\\0-9]{0,30}",
        after in "[{}\\[\\]\":, \\na-z\\\\0-9]{0,30}",
        bytes: Vec<u8>,
    ) {
        let text = format!("{start}{before}c4nary{after}");
        for stdout in [text.as_bytes(), bytes.as_slice(), &[text.as_bytes(), &bytes].concat()] {
            if let Err(error) = response::read(stdout, Version::V1) {
                let shown = format!("{error} {error:?}");
                proptest::prop_assert!(!shown.contains("c4nary"), "{}", shown);
            }
            let _ = response::status_message(stdout);
        }
    }
}
