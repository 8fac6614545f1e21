//! Commands and files in the guides that no transcript shows: they are read by the program as they are.

use navicert_testkit::cli::transcript::TestContext;
use navicert_testkit::{Ca, Kubeconfig};

use super::read;

/// The first fence of this language behind a text of the page.
pub(crate) fn fence(page: &str, behind: &str, language: &str) -> String {
    let text = read(page);
    let (_, text) = text.split_once(behind).unwrap_or_else(|| panic!("{page}: no `{behind}`"));
    // Behind the language there may be what tests it.
    let (_, text) = text.split_once(&format!("```{language}")).unwrap();
    let (_, text) = text.split_once('\n').unwrap();
    text.split("```").next().unwrap().to_owned()
}

/// A command of several lines as one.
fn command(page: &str, behind: &str) -> String {
    fence(page, behind, "sh").replace("\\\n", " ").trim().to_owned()
}

/// The files that the servers' commands name.
fn context() -> TestContext {
    let ca = Ca::new("root");
    let identity = ca.server().issue();
    let upstream = Kubeconfig::new("https://127.0.0.1:6443").ca_file("tls.crt").token("canary");
    TestContext::new()
        .program("navicert", env!("CARGO_BIN_EXE_navicert"))
        .file("auth.yaml", &read("examples/authentication/keycloak.yaml"))
        .file("tls.crt", &identity.chain_pem())
        .file("tls.key", &identity.key_pem())
        .file("navicert-ca.crt", &ca.pem())
        .file("upstream.kubeconfig", &upstream.to_string())
}

#[test]
fn commands_of_the_servers_are_complete() {
    let context = context();
    for (page, behind) in
        [("docs/proxy.md", "## A whole example"), ("docs/webhook.md", "on the same machine:")]
    {
        let line = format!("{} --check", command(page, behind));
        let outcome = context.run(&line);
        let printed = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert_eq!(outcome.code(), Some(0), "{line}\n{printed}");
    }
}

/// The command that needs a kubeconfig from the environment, and those of the webhook's first steps.
#[test]
fn commands_at_the_head_of_the_server_guides_are_complete() {
    let context = context()
        .file("apiserver-client-ca.crt", &Ca::new("clients").pem())
        .file("ca.crt", &Ca::new("servers").pem())
        .variable("KUBECONFIG", "upstream.kubeconfig");
    let check = |line: &str| {
        let outcome = context.run(line);
        assert_eq!(outcome.code(), Some(0), "{line}\n{}", String::from_utf8_lossy(&outcome.stderr));
        String::from_utf8(outcome.stdout).unwrap()
    };
    check(&format!("{} --check", command("docs/proxy.md", "# Authenticating proxy")));
    let steps = fence("docs/webhook.md", "Three steps", "console").replace("\\\n", " ");
    let mut steps = steps.lines().filter_map(|line| line.strip_prefix("$ "));
    check(&format!("{} --check", steps.next().unwrap()));
    let printed = check(steps.next().unwrap().strip_suffix(" > webhook.kubeconfig").unwrap());
    assert!(
        printed.contains("server: \"https://navicert.example:8443/authenticate\"")
            || printed.contains("server: https://navicert.example:8443/authenticate"),
        "{printed}"
    );
    assert!(
        steps
            .next()
            .unwrap()
            .starts_with("kube-apiserver … --authentication-token-webhook-config-file=webhook.kubeconfig")
    );
}

#[test]
fn kubeconfig_of_the_proxy_guide_is_usable() {
    let config = fence("docs/proxy.md", "A user's kubeconfig", "yaml");
    let context = context().file("config", &config);
    let outcome = context.run("navicert kubeconfig check --kubeconfig config");
    let printed = [outcome.stdout.clone(), outcome.stderr.clone()].concat();
    assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&printed));
}
