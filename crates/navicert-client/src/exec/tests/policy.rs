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
        fixture.around.policy = policy.into();
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
    fixture.around.policy = allowlist("/bin/sh").into();
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
    fixture.around.policy = Policy::DenyAll.into();
    let denied = fixture.shell_authenticator();
    fixture.around.policy = allowlist("/bin/sh").into();
    let listed = fixture.shell_authenticator();
    assert_eq!(fixture.around.registry.len(), 1);
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
    fixture.around.policy = Policy::DenyAll.into();
    let denied = fixture.shell_authenticator();
    assert!(current(&denied).is_err());
    fixture.around.policy = PluginPolicy::default();
    assert_eq!(current(&fixture.shell_authenticator()), Ok("a1".into()), "no back-off");
}

// C740
#[test]
fn invalid_kuberc_permits_nothing_and_names_the_line() {
    let text =
        "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ncredentialPluginPolcy: DenyAll\n";
    let files = MemoryFileSystem::new("/no-such-root", [(PathBuf::from("kuberc"), text.as_bytes().to_vec())]);
    let mut fixture = Fixture::new([]);
    fixture.around.policy =
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
    fixture.around.policy = PluginPolicy::from(allowlist("/bin/sh")).and(Policy::AllowAll);
    assert_eq!(current(&fixture.shell_authenticator()), Ok("a1".into()));
    fixture.around.policy = PluginPolicy::from(Policy::AllowAll).and(Policy::DenyAll);
    assert!(current(&fixture.shell_authenticator()).is_err());
}

// C741
#[test]
fn kubeconfig_cannot_set_loader_variables_of_a_listed_plugin() {
    let mut fixture = Fixture::new([token("a1")]);
    fixture.around.policy = allowlist("/bin/sh").into();
    let authenticator = fixture.authenticator(
        "{command: /bin/sh, interactiveMode: Never, env: [{name: LD_PRELOAD, value: /tmp/x}]}",
    );
    assert!(
        current(&authenticator)
            .unwrap_err()
            .contains("may not be given the environment variable `LD_PRELOAD`")
    );
    assert_eq!(fixture.runs(), 0);
}
