//! Arguments of `kubectl oidc-login get-token` as kubeconfigs have them, and runs of them.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine as _;
use navicert_testkit::LoginProvider;
use navicert_testkit::services::login_provider::CLIENT;
use serde_json::Value;

use super::person;

/// As kubectl 1.20 starts a plugin.
const INFO: &str = r#"{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential","spec":{"interactive":false}}"#;

/// Which arguments stand before those of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// Issuer, client and certificate authority.
    Usual,
    /// The same as two words each.
    TwoWords,
    /// Issuer and client.
    WithoutAuthority,
}

/// Rows of arguments; `{…}` is replaced.
pub(crate) const ROWS: [(Base, &[&str]); 30] = {
    use Base::{TwoWords, Usual, WithoutAuthority};
    const USER: &str = "--username=ann";
    const PASSWORD: &str = "--password=any";
    const BROWSER: &str = "--skip-open-browser";
    const LISTEN: &str = "--listen-address=127.0.0.1:{port}";
    [
        (Usual, &[USER, PASSWORD]),
        (TwoWords, &["--username", "ann", "--password", "any"]),
        (Usual, &["--grant-type=password", USER, PASSWORD]),
        (Usual, &["--grant-type", "auto", USER, PASSWORD]),
        (Usual, &[USER, PASSWORD, "--oidc-client-secret=secret"]),
        (Usual, &[USER, PASSWORD, "--oidc-extra-scope=email"]),
        (Usual, &[USER, PASSWORD, "--oidc-extra-scope=email,profile"]),
        (Usual, &[USER, PASSWORD, "--oidc-extra-scope=email", "--oidc-extra-scope", "groups"]),
        (Usual, &[USER, PASSWORD, "--oidc-extra-scope=offline_access"]),
        (Usual, &[USER, PASSWORD, "--force-refresh"]),
        (Usual, &[USER, PASSWORD, "--token-cache-dir={cache}"]),
        (Usual, &[USER, PASSWORD, "--token-cache-storage=disk"]),
        (Usual, &[USER, PASSWORD, "--token-cache-storage=none"]),
        (Usual, &[USER, PASSWORD, "--tls-renegotiation-once"]),
        (Usual, &[USER, PASSWORD, "--tls-renegotiation-freely=true"]),
        (Usual, &[USER, PASSWORD, "-v1"]),
        (Usual, &[USER, PASSWORD, "--v=1", "--logtostderr", "--stderrthreshold=2"]),
        (Usual, &[USER, PASSWORD, "--oidc-request-header=X-Tenant=a"]),
        (WithoutAuthority, &[USER, PASSWORD, "--insecure-skip-tls-verify"]),
        (WithoutAuthority, &[USER, PASSWORD, "--certificate-authority-data={authority-data}"]),
        (Usual, &[USER, PASSWORD, "--certificate-authority-data={authority-data}"]),
        (Usual, &["--grant-type=client-credentials", "--oidc-client-secret=secret"]),
        (
            Usual,
            &[
                "--grant-type=client-credentials",
                "--oidc-client-secret=secret",
                "--oidc-auth-request-extra-params=audience=a",
            ],
        ),
        (Usual, &["--grant-type=authcode", BROWSER, LISTEN]),
        (TwoWords, &[BROWSER, "--listen-address", "127.0.0.1:{port}", "--oidc-pkce-method", "S256"]),
        (Usual, &[BROWSER, LISTEN, "--oidc-pkce-method=auto", "--oidc-extra-scope=email"]),
        (Usual, &[BROWSER, LISTEN, "--oidc-pkce-method=no", "--oidc-client-secret=secret"]),
        (Usual, &[BROWSER, LISTEN, "--oidc-redirect-url=http://localhost:{port}"]),
        (
            Usual,
            &[
                BROWSER,
                LISTEN,
                "--authentication-timeout-sec=60",
                "--oidc-auth-request-extra-params=prompt=login,ui_locales=de",
            ],
        ),
        (Usual, &[BROWSER, "--listen-address=127.0.0.1:{port},127.0.0.1:{other-port}"]),
    ]
};

/// Runs a program with the arguments of a row, in a home of its own, and returns the claims of its token.
pub(crate) fn claims_of(provider: &LoginProvider, program: &[&Path], row: (Base, &[&str])) -> Value {
    let home = tempfile::tempdir().unwrap();
    let (first, rest) = program.split_first().unwrap();
    let mut command = Command::new(first);
    command.args(rest).arg("get-token").args(arguments(provider, home.path(), row));
    command
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .env("KUBERNETES_EXEC_INFO", INFO);
    // A person with a desktop is there although no terminal is.
    command.env("NAVICERT_LOGIN_PROMPT", "always").env("DISPLAY", ":0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let mut told = String::new();
    if row.1.contains(&"--skip-open-browser") {
        let start = person::start_link(&mut stderr).unwrap_or_else(|| panic!("{row:?}: no address"));
        person::answer(provider, &start);
    } else {
        stderr.read_to_string(&mut told).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{row:?}: {told}");
    let response: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(response["apiVersion"], "client.authentication.k8s.io/v1beta1");
    super::claims(response["status"]["token"].as_str().unwrap())
}

fn arguments(provider: &LoginProvider, home: &Path, (base, row): (Base, &[&str])) -> Vec<String> {
    let issuer = provider.issuer.issuer_url();
    let authority = provider.ca_file.display().to_string();
    let fixed = [
        ("oidc-issuer-url", issuer.as_str()),
        ("oidc-client-id", CLIENT),
        ("certificate-authority", &authority),
    ];
    let count = if base == Base::WithoutAuthority { 2 } else { 3 };
    let mut arguments = Vec::new();
    for (name, value) in fixed.iter().take(count) {
        match base {
            Base::TwoWords => arguments.extend([format!("--{name}"), (*value).to_owned()]),
            _ => arguments.push(format!("--{name}={value}")),
        }
    }
    let data = base64::engine::general_purpose::STANDARD.encode(std::fs::read(&provider.ca_file).unwrap());
    let (port, other) = (super::free_port().to_string(), super::free_port().to_string());
    let cache = home.join("cache").display().to_string();
    arguments.extend(row.iter().map(|word| {
        let word = word.replace("{port}", &port).replace("{other-port}", &other);
        word.replace("{cache}", &cache).replace("{authority-data}", &data)
    }));
    arguments
}
