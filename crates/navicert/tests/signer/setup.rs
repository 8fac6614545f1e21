//! `navicert signer setup`: both files are written, and a client uses the key with nothing edited by hand.

use navicert_testkit::{KeyKind, TestContext};
use serde_json::{Value, json};

use super::{PIN, Setup, stdout};

const OTHER_USER: &str = "\
# work
users:
- name: ci # the other plugin
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}}
";

/// A kubeconfig with a cluster and a context, and a user with an exec plugin.
fn with_cluster(setup: &Setup, context: TestContext) -> TestContext {
    let rest = format!(
        "clusters:\n- name: c\n  cluster: {{server: '{}', certificate-authority: ca.crt}}\n\
         contexts:\n- name: x\n  context: {{cluster: c, user: other}}\ncurrent-context: x\n",
        setup.api.url()
    );
    context.file("~/.kube/ca.crt", &setup.ca.pem()).file("~/.kube/config", &format!("{OTHER_USER}{rest}"))
}

fn read(context: &TestContext, name: &str) -> String {
    std::fs::read_to_string(context.home().join(".kube").join(name)).unwrap()
}

#[test]
fn key_works_after_one_command() {
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let context = with_cluster(&setup, setup.context(PIN));
    let before = read(&context, "config");
    let preview = context.run("navicert signer setup --context x");
    let message = String::from_utf8_lossy(&preview.stderr).into_owned();
    assert_eq!((preview.code(), read(&context, "config")), (Some(5), before.clone()), "{message}");
    assert!(message.contains("forbids every plugin that is not in the list"), "{message}");
    assert!(message.contains("/bin/sh (user ci)") && message.contains("add `--yes`"), "{message}");
    assert!(!context.home().join(".kube/kuberc").exists());

    let command = "navicert signer setup 'pkcs11:token=my%20token;id=%01' --context x --yes --add-plugins-in-use -o json";
    let report: Value = serde_json::from_str(&stdout(&context.run(command))).unwrap();
    assert_eq!((&report["user"], &report["files"][0]["action"]), (&json!("ann"), &json!("create")));
    assert_eq!(report["otherPlugins"], json!([{"command": "/bin/sh", "users": ["ci"], "added": true}]));
    let (config, kuberc) = (read(&context, "config"), read(&context, "kuberc"));
    assert!(config.starts_with(OTHER_USER) && config.contains("user: \"ann\"}"), "{config}");
    assert!(kuberc.contains("- command: navicert-signer-pkcs11\n  pathLib:\n"), "{kuberc}");
    assert!(kuberc.contains("- command: /bin/sh\n"), "{kuberc}");
    assert!(stdout(&context.run("navicert whoami")).starts_with("username  ann\n"));

    let again = stdout(&context.run("navicert signer setup --context x --yes"));
    assert!(again.contains("kuberc is as it should be"), "{again}");
    assert_eq!((read(&context, "config"), read(&context, "kuberc")), (config, kuberc));
}

#[test]
fn key_must_be_found_and_be_the_only_one() {
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let context = with_cluster(&setup, setup.context(PIN));
    for (command, exit, expected) in [
        ("navicert signer setup pkcs11:token=other --yes", 1, "no key found"),
        ("navicert signer setup pkcs11:id=%77 --yes", 1, "no key found"),
        ("navicert signer setup x --yes", 2, "invalid URI"),
        ("navicert signer setup --yes --user ci", 1, "user `ci` exists in"),
        ("navicert signer setup --yes --context none", 3, "unknown context `none`"),
    ] {
        let outcome = context.run(command);
        let message = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert_eq!(outcome.code(), Some(exit), "{command}: {message}");
        assert!(message.contains(expected), "{command}: {message}");
        assert!(!context.home().join(".kube/kuberc").exists());
    }
    let second = setup.hsm.generate(KeyKind::EcP256, "02", "second key");
    let chain = setup.ca.client("bob").issue_for(&second.public_key);
    setup.hsm.import_certificate(chain.first().unwrap(), "02", "second key");
    let outcome = context.run("navicert signer setup --yes");
    let message = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert_eq!(outcome.code(), Some(2), "{message}");
    assert!(message.contains("several keys are found") && message.contains("id=%02"), "{message}");
    let chosen = context.run("navicert signer setup 'pkcs11:object=second%20key' --yes");
    assert!(stdout(&chosen).contains("+- name: bob\n"));
}
