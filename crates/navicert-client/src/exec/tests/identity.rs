//! Which authenticators share a credential, and that none outlives its clients.

use super::*;

const SHELL: &str = "{command: /bin/sh, interactiveMode: Never}";

fn runs_of(fixture: &Fixture, authenticators: &[Authenticator]) -> usize {
    for authenticator in authenticators {
        assert!(current(authenticator).is_ok());
    }
    fixture.runs()
}

fn tokens() -> impl Iterator<Item = Script> {
    (0..20).map(|n| token(&format!("t{n}")))
}

// T10, C401, C404
#[test]
fn different_plugin_input_separates_credentials() {
    let variants = [
        "{command: /bin/sh, interactiveMode: Never}",
        "{command: /bin/cat, interactiveMode: Never}",
        "{command: /bin/sh, interactiveMode: Never, args: [a, b]}",
        "{command: /bin/sh, interactiveMode: Never, args: [ab]}",
        "{command: /bin/sh, interactiveMode: Never, env: [{name: A, value: '1'}, {name: B, value: '2'}]}",
        "{command: /bin/sh, interactiveMode: Never, env: [{name: B, value: '2'}, {name: A, value: '1'}]}",
        "{command: /bin/sh, interactiveMode: Never, provideClusterInfo: true}",
    ];
    let fixture = Fixture::new(tokens());
    let authenticators: Vec<_> = variants.iter().map(|exec| fixture.authenticator(exec)).collect();
    assert_eq!(runs_of(&fixture, &authenticators), variants.len());
    assert_eq!(fixture.client_context.registry.len(), variants.len());
}

// T10, C403, C404: per-client settings do not.
#[test]
fn install_hint_and_standard_input_do_not_separate_credentials() {
    let mut fixture = Fixture::new(tokens());
    let mut authenticators = vec![fixture.shell_authenticator()];
    authenticators.push(fixture.authenticator("{command: /bin/sh, interactiveMode: Never, installHint: x}"));
    authenticators.push(fixture.authenticator("{command: /bin/sh, interactiveMode: IfAvailable}"));
    fixture.settings.stdin = interactive::StdinUse::Taken("x".into());
    authenticators.push(fixture.shell_authenticator());
    assert_eq!(runs_of(&fixture, &authenticators), 1);
    assert_eq!(fixture.client_context.registry.len(), 1);
}

// C472
#[test]
fn impersonation_does_not_separate_credentials() {
    let mut boss = effective("{server: 'https://127.0.0.1:6443'}", &with_version(SHELL));
    boss.user.impersonate = "boss".to_owned();
    let files = MemoryFileSystem::new("/no-such-root", []);
    let fixture = Fixture::new(tokens());
    let plugin = Plugin::from_effective(&boss, &files).unwrap().unwrap();
    let as_boss = Authenticator::new(plugin, fixture.settings.clone(), fixture.client_context.clone());
    assert_eq!(runs_of(&fixture, &[as_boss, fixture.shell_authenticator()]), 1);
}

// C405
#[test]
fn concurrent_authenticators_share_one_credential() {
    let fixture = Fixture::new(tokens());
    let barrier = std::sync::Barrier::new(16);
    let authenticators: Vec<Authenticator> = std::thread::scope(|scope| {
        let makers = (0..16).map(|_| {
            scope.spawn(|| {
                barrier.wait();
                fixture.shell_authenticator()
            })
        });
        let makers: Vec<_> = makers.collect();
        makers.into_iter().map(|maker| maker.join().unwrap()).collect()
    });
    assert_eq!(fixture.client_context.registry.len(), 1);
    assert_eq!(runs_of(&fixture, &authenticators), 1);
}

// T10, C402, C404
#[test]
fn servers_are_isolated_by_default() {
    let exec = "{command: /bin/sh, interactiveMode: Never}";
    for (isolate, expected) in [(true, 2), (false, 1)] {
        let mut fixture = Fixture::new(tokens());
        fixture.settings.isolate_by_server = isolate;
        let clusters = ["{server: 'https://a'}", "{server: 'https://b'}"];
        let authenticators = clusters.map(|cluster| {
            Authenticator::new(
                plugin_in(cluster, exec),
                fixture.settings.clone(),
                fixture.client_context.clone(),
            )
        });
        assert_eq!(runs_of(&fixture, &authenticators), expected, "isolate: {isolate}");
    }
}

// C404: the cluster's exec configuration counts even without `provideClusterInfo`.
#[test]
fn cluster_exec_configuration_separates_credentials() {
    let mut fixture = Fixture::new(tokens());
    fixture.settings.isolate_by_server = false;
    let cluster = |value: &str| {
        format!(
            "{{server: 'https://a', extensions: [{{name: client.authentication.k8s.io/exec, extension: {value}}}]}}"
        )
    };
    let authenticators = ["{x: 1}", "{x: 2}", "{x: 1}"].map(|value| {
        let plugin = plugin_in(&cluster(value), "{command: /bin/sh, interactiveMode: Never}");
        Authenticator::new(plugin, fixture.settings.clone(), fixture.client_context.clone())
    });
    assert_eq!(runs_of(&fixture, &authenticators), 2);
}

// C404, C504
#[test]
fn credential_is_dropped_with_its_last_client() {
    let (certificate, key) = pair();
    let fixture = Fixture::new([with_certificate(&certificate, &key), token("t2")]);
    let (one, two) = (fixture.shell_authenticator(), fixture.shell_authenticator());
    assert!(current(&one).is_ok());
    assert!(fixture.metrics.ttl_seconds(fixture.clock.now()).is_finite());
    drop(one);
    assert_eq!((fixture.client_context.registry.len(), fixture.runs()), (1, 1));
    assert!(two.cached().is_some());
    drop(two);
    assert!(fixture.client_context.registry.is_empty());
    assert_eq!(fixture.metrics.ttl_seconds(fixture.clock.now()), f64::INFINITY);
    assert_eq!(current(&fixture.shell_authenticator()), Ok("t2".into()), "obtained again");
}

// C501, §5: age of the old certificate, not on the first and not with a token only.
#[test]
fn rotation_is_counted_with_the_age_of_the_old_certificate() {
    let (one, two) = (pair(), pair());
    let scripts = [
        token("t"),
        with_certificate(&one.0, &one.1),
        with_certificate(&one.0, &one.1),
        with_certificate(&two.0, &two.1),
        token("t"),
        token("u"),
    ];
    let fixture = Fixture::new(scripts);
    let authenticator = fixture.shell_authenticator();
    for expected in [0, 0, 0, 1, 2, 2] {
        block_on(authenticator.refresh()).unwrap();
        assert_eq!(fixture.metrics.rotations().0, expected);
    }
    assert_eq!(
        fixture.metrics.ttl_seconds(fixture.clock.now()),
        f64::INFINITY,
        "a token alone removes the certificate"
    );
}
