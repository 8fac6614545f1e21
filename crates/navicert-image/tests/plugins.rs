//! Runs real plugin processes, including misbehaving ones, and checks what the conformance runner reports.

#![expect(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use navicert_image::config::{ConfigFile, ImageConfig};
use navicert_image::conformance::{ConformanceResult, ConformanceRule, ImagePluginUnderTest, check};
use navicert_image::provider::{Lookup, ProviderSettings, Providers};
use navicert_image::service_account::PullIdentity;
use navicert_image::{Profile, ProviderError};
use navicert_plugin::{Environment, ProcessRunner};
use navicert_testkit::Canaries;
use navicert_types::image_credential::WireVersion;
use navicert_types::{Clock, SystemClock};
use tempfile::TempDir;

const GOOD: &str = r#"{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Image","auth":{"registry.example":{"username":"ann","password":"a-good-password"}}}"#;

/// Reads stdin and rejects invalid requests, as a plugin should.
const READ: &str = r#"request=$(cat)
case "$request" in
  *'"kind":"CredentialProviderRequest"'*) ;;
  *) echo "no request" >&2; exit 1;;
esac
case "$request" in *'/v99'*|*'"image":""'*) exit 1;; esac
"#;

fn script(dir: &Path, name: &str, body: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn environment() -> Environment {
    [("PATH", "/usr/bin:/bin"), ("INHERITED", "yes")].into_iter().collect()
}

fn settings(dir: &Path) -> ProviderSettings {
    let clock = Arc::new(SystemClock);
    let runner = Arc::new(ProcessRunner::new(Arc::clone(&clock) as _));
    let mut settings = ProviderSettings::new(dir, environment(), runner, clock);
    settings.limits.run = Duration::from_millis(1_500);
    settings
}

/// Runs one lookup with a plugin of this shell script.
fn lookup(body: &str, more: &str) -> (TempDir, Lookup) {
    let dir = tempfile::tempdir().unwrap();
    script(dir.path(), "plugin", body);
    let text = format!(
        "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: plugin\n  \
         matchImages: [registry.example]\n  defaultCacheDuration: 1m\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n{more}"
    );
    let config =
        ImageConfig::decode(&[ConfigFile { path: "c".into(), text: text.into() }], Profile::Hardened)
            .unwrap();
    let providers = Providers::new(&config, settings(dir.path()));
    let lookup = providers.lookup("registry.example/app", &PullIdentity::None);
    (dir, lookup)
}

fn error(body: &str) -> ProviderError {
    let (_, lookup) = lookup(body, "");
    assert!(lookup.attempts().is_empty());
    lookup.errors().next().unwrap().clone()
}

#[test]
fn runs_plugin_with_configured_arguments_and_environment() {
    // I91, I92
    let body = format!(
        r#"{READ}[ "$0 $1 $2 $INHERITED $SET" = "${{0%/*}}/plugin get -v yes last" ] || {{ echo "$0 $@ $INHERITED $SET" >&2; exit 9; }}
echo '{GOOD}'"#
    );
    let more = "  args: [get, -v]\n  env: [{name: SET, value: first}, {name: SET, value: last}]\n";
    let (_, found) = lookup(&body, more);
    assert_eq!(found.errors().map(|error| format!("{error} {}", error.stderr())).collect::<String>(), "");
    assert_eq!(found.attempts()[0].credential.username, "ann");
}

#[test]
fn accepts_plugin_that_does_not_read_its_request() {
    // I93, also if the request exceeds the pipe buffer.
    let (_, found) = lookup(&format!("echo '{GOOD}'"), "");
    assert_eq!(found.attempts().len(), 1);
}

#[test]
fn rejects_output_that_is_not_a_single_json_object() {
    // I101, I268
    for (body, cause) in [
        (String::new(), "printed nothing"),
        (format!("echo 'I0101 starting'; echo '{GOOD}'"), "text before the object"),
        (format!("echo '{GOOD}'; echo done"), "text after the object"),
        (format!(r"printf '\357\273\277'; echo '{GOOD}'"), "byte order mark"),
        ("echo 'kind: CredentialProviderResponse'".to_owned(), "looks like YAML"),
        (format!("echo '{}'", GOOD.replace("/v1\"", "/v1beta1\"")), "apiVersion"),
        (format!("echo '{}'", GOOD.replace("\"auth\"", "\"cacheDuration\":60,\"auth\"")), "cacheDuration"),
        (
            format!("echo '{}'", GOOD.replace("\"username\"", "\"user\"")),
            "auth[registry.example].user: unknown field",
        ),
        (format!("echo '{GOOD}{GOOD}'"), "text after the object"),
        ("head -c 100000 /dev/zero".to_owned(), "malformed"),
    ] {
        let error = navicert_types::error_chain(&error(&body));
        assert!(error.contains(cause), "{body}: {error}");
    }
}

#[test]
fn distinguishes_exit_codes_signals_and_limits() {
    // I94, I95, I98
    for (body, cause) in [
        ("echo why >&2; exit 3", "exit code 3"),
        ("kill -9 $$", "signal 9"),
        ("yes", "printed more than 1048576 bytes"),
        ("sleep 1000", "timed out after 1.5s"),
        ("trap '' TERM INT HUP; while :; do sleep 1; done", "timed out after 1.5s"),
    ] {
        let error = error(body);
        let text = navicert_types::error_chain(&error);
        assert!(text.contains(cause), "{body}: {text}");
    }
    assert_eq!(error("echo why >&2; exit 3").stderr(), "why");
}

#[test]
fn grandchild_neither_delays_the_response_nor_outlives_it() {
    // I96
    for body in [
        format!("echo '{GOOD}'; sleep 1000 & echo $! > \"$0.pid\""),
        "sleep 1000 & echo $! > \"$0.pid\"; wait".to_owned(),
    ] {
        let started = SystemClock.monotonic();
        let (dir, _) = lookup(&body, "");
        assert!(SystemClock.monotonic().saturating_sub(started) < Duration::from_secs(30));
        let pid = fs::read_to_string(dir.path().join("plugin.pid")).unwrap();
        wait_until_gone(pid.trim());
    }
}

/// Waits until the killed process is gone, with a time limit.
fn wait_until_gone(pid: &str) {
    let limit = SystemClock.monotonic() + Duration::from_secs(30);
    loop {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        if status.is_empty() || status.contains("State:\tZ") {
            return;
        }
        assert!(SystemClock.monotonic() < limit, "a process outlives the run: {status}");
        std::thread::yield_now();
    }
}

#[test]
fn error_for_missing_plugin_names_its_path() {
    // I5–I7
    let (dir, found) = lookup(&format!("echo '{GOOD}'"), "");
    assert_eq!(found.attempts().len(), 1);
    let path = dir.path().join("plugin");
    let config = ConfigFile { path: "c".into(), text: b"apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- {name: plugin, matchImages: [registry.example], defaultCacheDuration: 0s, apiVersion: credentialprovider.kubelet.k8s.io/v1}\n".to_vec() };
    let providers =
        Providers::new(&ImageConfig::decode(&[config], Profile::Kube).unwrap(), settings(dir.path()));
    let ask = || providers.lookup("registry.example/app", &PullIdentity::None);
    assert_eq!(ask().attempts().len(), 1);
    fs::remove_file(&path).unwrap();
    providers.invalidate("registry.example/app");
    let gone = navicert_types::error_chain(ask().errors().next().unwrap());
    assert!(gone.contains(&format!("`{}` does not exist", path.display())), "{gone}");
    assert!(providers.check_executables().is_err());
}

#[test]
fn errors_and_debug_contain_no_secrets() {
    // I104, I266
    let mut canaries = Canaries::new();
    let (password, argument, variable) =
        (canaries.plant("password"), canaries.plant("argument"), canaries.plant("variable"));
    let more = format!("  args: [--password={argument}]\n  env: [{{name: API_TOKEN, value: {variable}}}]\n");
    let say = "echo \"$1 $API_TOKEN\" >&2";
    for body in [
        format!("{say}; echo '{}'", GOOD.replace("a-good-password", &password)),
        format!(
            "{say}; echo '{}'",
            GOOD.replace("a-good-password", &password).replace("\"Image\"", "\"image\"")
        ),
        format!("{say}; echo '{} {password}'", GOOD.replace("a-good-password", &password)),
        format!("{say}; echo '{password}'; exit 1"),
    ] {
        let (_, found) = lookup(&body, &more);
        let errors: String = found
            .errors()
            .map(|error| format!("{} {error:?} {}", navicert_types::error_chain(error), error.stderr()))
            .collect();
        canaries.assert_absent("a lookup's errors and Debug", format!("{found:?} {errors}").as_bytes());
    }
}

/// The rules that a plugin of this shell script violates.
fn violated(body: &str) -> Vec<ConformanceRule> {
    let results = results(body);
    results.into_iter().filter(|result| result.result.is_err()).map(|result| result.rule).collect()
}

fn results(body: &str) -> Vec<ConformanceResult> {
    let dir = tempfile::tempdir().unwrap();
    let plugin = ImagePluginUnderTest {
        program: script(dir.path(), "plugin", body),
        args: Vec::new(),
        environment: environment(),
        image: "registry.example/app".to_owned(),
        version: WireVersion::V1,
        limit: Duration::from_millis(1_500),
    };
    check(&plugin, &ProcessRunner::new(Arc::new(SystemClock)))
}

#[test]
fn plugin_that_always_fails_does_not_pass_rejection_rules() {
    assert_eq!(results("exit 1").len(), 1);
    assert_eq!(
        results(&format!("{READ}echo '{GOOD}'")).iter().filter(|result| result.result.is_err()).count(),
        0
    );
}

#[test]
fn reports_the_rule_that_each_plugin_violates() {
    let good = |change: &dyn Fn(&str) -> String| format!("{READ}echo '{}'", change(GOOD));
    let cases: Vec<(String, &[ConformanceRule])> = vec![
        (good(&|text| text.to_owned()), &[]),
        (format!("{READ}exit 3"), &[ConformanceRule::Runs]),
        (format!("{READ}sleep 1000"), &[ConformanceRule::TimeLimit]),
        (format!("{READ}yes"), &[ConformanceRule::OutputSize]),
        (format!("{READ}sleep 1000 & echo '{GOOD}'"), &[ConformanceRule::ClosesStdout]),
        (format!("{READ}echo starting; echo '{GOOD}'"), &[ConformanceRule::OneJsonObject]),
        (good(&|text| text.replace("/v1\"", "/v1alpha1\"")), &[ConformanceRule::ApiVersion]),
        (good(&|text| text.replace("\"auth\"", "\"extra\":1,\"auth\"")), &[ConformanceRule::Schema]),
        (good(&|text| text.replace("\"Image\"", "\"ServiceAccount\"")), &[ConformanceRule::CacheKeyType]),
        (
            good(&|text| text.replace("\"registry.example\"", "\"registry.example\":{},\"a:b\"")),
            &[ConformanceRule::Keys],
        ),
        (good(&|text| text.replace("registry.example", "other.example")), &[ConformanceRule::MatchesImage]),
        (format!("{READ}echo a-good-password >&2; echo '{GOOD}'"), &[ConformanceRule::NoSecretsOnStderr]),
        (
            format!("{READ}case \"$request\" in *unknownFutureField*) exit 1;; esac; echo '{GOOD}'"),
            &[ConformanceRule::AcceptsUnknownFields],
        ),
        (
            format!("cat >/dev/null; echo '{GOOD}'"),
            &[
                ConformanceRule::RejectsInvalidInput,
                ConformanceRule::RejectsUnknownVersions,
                ConformanceRule::RejectsEmptyImage,
            ],
        ),
        (
            format!(
                r#"{READ}token=$(printf %s "$request" | sed -n 's/.*"serviceAccountToken":"\([^"]*\)".*/\1/p')
printf '%s' '{GOOD}' | sed "s/a-good-password/$token/""#
            ),
            &[ConformanceRule::DoesNotEchoToken],
        ),
    ];
    for (body, rules) in cases {
        assert_eq!(violated(&body), rules, "{body}");
    }
}
