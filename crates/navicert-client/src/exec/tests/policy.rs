//! Plugin policies, and access to shared credentials.

use navicert_plugin::{AllowlistEntry, Policy};

use super::*;
use crate::kuberc;

fn allowlist(command: &str) -> Policy {
    Policy::from_parts("Allowlist", Some(vec![AllowlistEntry::new(command)])).unwrap()
}

// C730, C731, C502, C503
#[test]
fn denied_plugin_is_not_run_and_only_the_policy_is_counted() {
    for (policy, expected) in [
        (Policy::DenyAll, "plugin \"/bin/sh\" not allowed: policy set to \"DenyAll\""),
        (
            allowlist("/bin/cat"),
            "plugin path \"/bin/sh\" is not permitted by the credential plugin allowlist",
        ),
    ] {
        let mut fixture = Fixture::new([]);
        fixture.client_context.policy = policy.into();
        let authenticator = fixture.shell_authenticator();
        for _ in 0..3 {
            assert_eq!(current(&authenticator), Err(expected.into()), "no back-off");
        }
        assert_eq!((fixture.runs(), fixture.metrics.policy_decisions()), (0, (0, 3)));
        let error = block_on(authenticator.get(RequestOrigin::Background)).unwrap_err();
        assert!(error.is_denied() && error.retry_in().is_none());
    }
}

// C730
#[test]
fn policy_is_checked_for_every_run_of_a_listed_plugin() {
    let mut fixture = Fixture::new([token_until("a1", 60), token("a2")]);
    fixture.client_context.policy = allowlist("/bin/sh").into();
    let authenticator = fixture.shell_authenticator();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    assert_eq!(fixture.metrics.policy_decisions(), (1, 0), "checked once per run");
    fixture.advance_seconds(61);
    assert_eq!(current(&authenticator), Ok("a2".into()));
    assert_eq!(fixture.metrics.policy_decisions(), (2, 0));
}

// C404: not even a credential obtained by another authenticator.
#[test]
fn denied_client_cannot_use_a_cached_credential() {
    let mut fixture = Fixture::new([token("a1")]);
    let free = fixture.shell_authenticator();
    fixture.client_context.policy = Policy::DenyAll.into();
    let denied = fixture.shell_authenticator();
    fixture.client_context.policy = allowlist("/bin/sh").into();
    let listed = fixture.shell_authenticator();
    assert_eq!(fixture.client_context.registry.len(), 1);
    assert_eq!(current(&free), Ok("a1".into()));
    assert!(denied.cached().is_none());
    assert!(current(&denied).unwrap_err().contains("DenyAll"));
    assert!(listed.cached().is_none());
    assert_eq!(current(&listed), Ok("a1".into()));
    assert!(listed.cached().is_some());
    assert_eq!(fixture.runs(), 1);
}

// C404, C421: a denial affects only its own client.
#[test]
fn denied_client_does_not_affect_others() {
    let mut fixture = Fixture::new([token("a1")]);
    fixture.client_context.policy = Policy::DenyAll.into();
    let denied = fixture.shell_authenticator();
    assert!(current(&denied).is_err());
    fixture.client_context.policy = PluginPolicy::default();
    assert_eq!(current(&fixture.shell_authenticator()), Ok("a1".into()), "no back-off");
}

// C740
#[test]
fn invalid_kuberc_permits_nothing_and_names_the_line() {
    let text =
        "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ncredentialPluginPolcy: DenyAll\n";
    let files = MemoryFileSystem::new("/no-such-root", [(PathBuf::from("kuberc"), text.as_bytes().to_vec())]);
    let mut fixture = Fixture::new([]);
    fixture.client_context.policy =
        kuberc::load(&kuberc::KubercSource::Home("/no-such-root/kuberc".into()), &files).into();
    let error = current(&fixture.shell_authenticator()).unwrap_err();
    assert_eq!(
        error,
        "exec plugin /bin/sh is not allowed to run: invalid kuberc `/no-such-root/kuberc`, so no credential plugin may run: \
         credentialPluginPolcy: unknown field (line 3, column 1); did you mean `credentialPluginPolicy`?"
    );
    assert_eq!((fixture.runs(), fixture.metrics.policy_decisions()), (0, (0, 1)));
}

// C742
#[test]
fn caller_can_only_make_the_policy_stricter() {
    let mut fixture = Fixture::new([token("a1")]);
    fixture.client_context.policy = PluginPolicy::from(allowlist("/bin/sh")).and(Policy::AllowAll);
    assert_eq!(current(&fixture.shell_authenticator()), Ok("a1".into()));
    fixture.client_context.policy = PluginPolicy::from(Policy::AllowAll).and(Policy::DenyAll);
    assert!(current(&fixture.shell_authenticator()).is_err());
}

// C741: no name is harmless for every plugin; the variable of the protocol is the client's.
#[test]
fn kubeconfig_sets_only_variables_that_the_entry_names() {
    for name in ["LD_PRELOAD", "BASH_FUNC_x%%", "PERLLIB", "BROWSER", "OPENSSL_CONF", "AWS_PROFILE"] {
        let mut fixture = Fixture::new([token("a1")]);
        fixture.client_context.policy = allowlist("/bin/sh").into();
        let exec =
            format!("{{command: /bin/sh, interactiveMode: Never, env: [{{name: '{name}', value: /tmp/x}}]}}");
        let error = current(&fixture.authenticator(&exec)).unwrap_err();
        assert!(error.contains(&format!("does not allow the environment variable `{name}`")), "{error}");
        assert!(error.ends_with(&format!("`command: /bin/sh`: envNames: [\"{name}\"]")), "{error}");
        assert_eq!(fixture.runs(), 0);
        let entry = AllowlistEntry::new("/bin/sh").env_names([name]);
        fixture.client_context.policy = Policy::from_parts("Allowlist", Some(vec![entry])).unwrap().into();
        assert_eq!(current(&fixture.authenticator(&exec)), Ok("a1".into()));
    }
}
