//! Which plugins may run, and who may use what others got.

use navicert_plugin::{AllowlistEntry, Policy};

use super::*;
use crate::kuberc;

fn allowlist(command: &str) -> Policy {
    Policy::from_parts("Allowlist", Some(vec![AllowlistEntry::new(command)])).unwrap()
}

// C730, C731, C502, C503
#[test]
fn a_denied_plugin_is_not_run_and_only_the_policy_is_counted() {
    for (policy, expected) in [
        (Policy::DenyAll, "plugin \"/bin/sh\" not allowed: policy set to \"DenyAll\""),
        (
            allowlist("/bin/cat"),
            "plugin path \"/bin/sh\" is not permitted by the credential plugin allowlist",
        ),
    ] {
        let mut stage = Stage::new([]);
        stage.around.policy = policy.into();
        let authenticator = stage.usual();
        for _ in 0..3 {
            assert_eq!(current(&authenticator), Err(expected.into()), "nothing to wait for");
        }
        assert_eq!((stage.runs(), stage.metrics.policy_decisions()), (0, (0, 3)));
        let error = block_on(authenticator.current(Asking::Background)).unwrap_err();
        assert!(error.is_denied() && error.retry_in().is_none());
    }
}

// C730
#[test]
fn a_listed_plugin_runs_and_is_asked_about_every_time() {
    let mut stage = Stage::new([token_until("a1", 60), token("a2")]);
    stage.around.policy = allowlist("/bin/sh").into();
    let authenticator = stage.usual();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    assert_eq!(stage.metrics.policy_decisions(), (1, 0), "asked once, not once for each step");
    stage.later(61);
    assert_eq!(current(&authenticator), Ok("a2".into()));
    assert_eq!(stage.metrics.policy_decisions(), (2, 0));
}

// C404: not even what somebody else got.
#[test]
fn a_policy_that_says_no_keeps_a_cached_credential_from_its_client() {
    let mut stage = Stage::new([token("a1")]);
    let free = stage.usual();
    stage.around.policy = Policy::DenyAll.into();
    let denied = stage.usual();
    stage.around.policy = allowlist("/bin/sh").into();
    let listed = stage.usual();
    assert_eq!(stage.around.registry.len(), 1);
    assert_eq!(current(&free), Ok("a1".into()));
    assert!(denied.ready().is_none());
    assert!(current(&denied).unwrap_err().contains("DenyAll"));
    assert!(listed.ready().is_none());
    assert_eq!(current(&listed), Ok("a1".into()));
    assert!(listed.ready().is_some());
    assert_eq!(stage.runs(), 1);
}

// C404, C421: the no of one client is nobody else's.
#[test]
fn a_denied_client_does_not_fail_the_others() {
    let mut stage = Stage::new([token("a1")]);
    stage.around.policy = Policy::DenyAll.into();
    let denied = stage.usual();
    assert!(current(&denied).is_err());
    stage.around.policy = PluginPolicy::default();
    assert_eq!(current(&stage.usual()), Ok("a1".into()), "and none of them waits because of it");
}

// C740
#[test]
fn a_broken_kuberc_permits_nothing_and_says_which_line() {
    let text =
        "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ncredentialPluginPolcy: DenyAll\n";
    let files = MemoryFolder::new("/no-such-root", [(PathBuf::from("kuberc"), text.as_bytes().to_vec())]);
    let mut stage = Stage::new([]);
    stage.around.policy = kuberc::load(&kuberc::Source::Home("/no-such-root/kuberc".into()), &files).into();
    let error = current(&stage.usual()).unwrap_err();
    assert_eq!(
        error,
        "exec plugin /bin/sh is not run: the kuberc `/no-such-root/kuberc` is not valid, so no credential plugin may run: \
         credentialPluginPolcy: unknown field (line 3, column 1); did you mean `credentialPluginPolicy`?"
    );
    assert_eq!((stage.runs(), stage.metrics.policy_decisions()), (0, (0, 1)));
}

// C742
#[test]
fn a_caller_can_only_make_the_policy_stricter() {
    let mut stage = Stage::new([token("a1")]);
    stage.around.policy = PluginPolicy::from(allowlist("/bin/sh")).and(Policy::AllowAll);
    assert_eq!(current(&stage.usual()), Ok("a1".into()));
    stage.around.policy = PluginPolicy::from(Policy::AllowAll).and(Policy::DenyAll);
    assert!(current(&stage.usual()).is_err());
}

// C741
#[test]
fn a_kubeconfig_cannot_steer_a_listed_plugin_through_its_loader() {
    let mut stage = Stage::new([token("a1")]);
    stage.around.policy = allowlist("/bin/sh").into();
    let authenticator = stage.authenticator(
        "{command: /bin/sh, interactiveMode: Never, env: [{name: LD_PRELOAD, value: /tmp/x}]}",
    );
    assert!(
        current(&authenticator)
            .unwrap_err()
            .contains("may not be given the environment variable `LD_PRELOAD`")
    );
    assert_eq!(stage.runs(), 0);
}
