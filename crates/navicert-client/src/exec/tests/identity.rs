//! Which authenticators are one, and that none outlives its clients.

use super::*;

const SHELL: &str = "{command: /bin/sh, interactiveMode: Never}";

fn runs_of(stage: &Stage, authenticators: &[Authenticator]) -> usize {
    for authenticator in authenticators {
        assert!(current(authenticator).is_ok());
    }
    stage.runs()
}

fn tokens() -> impl Iterator<Item = Script> {
    (0..20).map(|n| token(&format!("t{n}")))
}

// T10, C401, C404
#[test]
fn what_reaches_the_plugin_makes_it_another_one() {
    let variants = [
        "{command: /bin/sh, interactiveMode: Never}",
        "{command: /bin/cat, interactiveMode: Never}",
        "{command: /bin/sh, interactiveMode: Never, args: [a, b]}",
        "{command: /bin/sh, interactiveMode: Never, args: [ab]}",
        "{command: /bin/sh, interactiveMode: Never, env: [{name: A, value: '1'}, {name: B, value: '2'}]}",
        "{command: /bin/sh, interactiveMode: Never, env: [{name: B, value: '2'}, {name: A, value: '1'}]}",
        "{command: /bin/sh, interactiveMode: Never, provideClusterInfo: true}",
    ];
    let stage = Stage::new(tokens());
    let authenticators: Vec<_> = variants.iter().map(|exec| stage.authenticator(exec)).collect();
    assert_eq!(runs_of(&stage, &authenticators), variants.len());
    assert_eq!(stage.around.registry.len(), variants.len());
}

// T10, C403, C404: what belongs to whoever asks does not.
#[test]
fn hints_and_standard_input_do_not() {
    let mut stage = Stage::new(tokens());
    let mut authenticators = vec![stage.usual()];
    authenticators.push(stage.authenticator("{command: /bin/sh, interactiveMode: Never, installHint: x}"));
    authenticators.push(stage.authenticator("{command: /bin/sh, interactiveMode: IfAvailable}"));
    stage.settings.stdin = interactive::Stdin::Taken("x".into());
    authenticators.push(stage.usual());
    assert_eq!(runs_of(&stage, &authenticators), 1);
    assert_eq!(stage.around.registry.len(), 1);
}

// C472
#[test]
fn impersonation_does_not_make_it_another_one() {
    let mut boss = effective("{server: 'https://127.0.0.1:6443'}", &with_version(SHELL));
    boss.user.impersonate = "boss".to_owned();
    let files = MemoryFolder::new("/no-such-root", []);
    let stage = Stage::new(tokens());
    let plugin = Plugin::of(&boss, &files).unwrap().unwrap();
    let as_boss = Authenticator::new(plugin, stage.settings.clone(), stage.around.clone());
    assert_eq!(runs_of(&stage, &[as_boss, stage.usual()]), 1);
}

// C405
#[test]
fn of_many_that_come_at_once_one_makes_the_entry_for_all() {
    let stage = Stage::new(tokens());
    let barrier = std::sync::Barrier::new(16);
    let authenticators: Vec<Authenticator> = std::thread::scope(|scope| {
        let makers = (0..16).map(|_| {
            scope.spawn(|| {
                barrier.wait();
                stage.usual()
            })
        });
        let makers: Vec<_> = makers.collect();
        makers.into_iter().map(|maker| maker.join().unwrap()).collect()
    });
    assert_eq!(stage.around.registry.len(), 1);
    assert_eq!(runs_of(&stage, &authenticators), 1);
}

// T10, C402, C404
#[test]
fn servers_are_kept_apart_unless_told_otherwise() {
    let exec = "{command: /bin/sh, interactiveMode: Never}";
    for (isolate, expected) in [(true, 2), (false, 1)] {
        let mut stage = Stage::new(tokens());
        stage.settings.isolate_by_server = isolate;
        let clusters = ["{server: 'https://a'}", "{server: 'https://b'}"];
        let authenticators = clusters.map(|cluster| {
            Authenticator::new(plugin_in(cluster, exec), stage.settings.clone(), stage.around.clone())
        });
        assert_eq!(runs_of(&stage, &authenticators), expected, "isolate: {isolate}");
    }
}

// C404: the configuration of the cluster counts even where the plugin is not told about it.
#[test]
fn the_clusters_configuration_is_part_of_it() {
    let mut stage = Stage::new(tokens());
    stage.settings.isolate_by_server = false;
    let cluster = |value: &str| {
        format!(
            "{{server: 'https://a', extensions: [{{name: client.authentication.k8s.io/exec, extension: {value}}}]}}"
        )
    };
    let authenticators = ["{x: 1}", "{x: 2}", "{x: 1}"].map(|value| {
        let plugin = plugin_in(&cluster(value), "{command: /bin/sh, interactiveMode: Never}");
        Authenticator::new(plugin, stage.settings.clone(), stage.around.clone())
    });
    assert_eq!(runs_of(&stage, &authenticators), 2);
}

// C404, C504
#[test]
fn a_credential_is_gone_with_its_last_client() {
    let (certificate, key) = pair();
    let stage = Stage::new([with_certificate(&certificate, &key), token("t2")]);
    let (one, two) = (stage.usual(), stage.usual());
    assert!(current(&one).is_ok());
    assert!(stage.metrics.ttl_seconds(stage.clock.now()).is_finite());
    drop(one);
    assert_eq!((stage.around.registry.len(), stage.runs()), (1, 1));
    assert!(two.ready().is_some());
    drop(two);
    assert!(stage.around.registry.is_empty());
    assert_eq!(stage.metrics.ttl_seconds(stage.clock.now()), f64::INFINITY);
    assert_eq!(current(&stage.usual()), Ok("t2".into()), "and is got anew");
}

// C501, §5: age of the old certificate, not on the first and not with a token only.
#[test]
fn a_rotation_is_counted_with_the_age_of_the_old_certificate() {
    let (one, two) = (pair(), pair());
    let scripts = [
        token("t"),
        with_certificate(&one.0, &one.1),
        with_certificate(&one.0, &one.1),
        with_certificate(&two.0, &two.1),
        token("t"),
        token("u"),
    ];
    let stage = Stage::new(scripts);
    let authenticator = stage.usual();
    for expected in [0, 0, 0, 1, 2, 2] {
        block_on(authenticator.refresh()).unwrap();
        assert_eq!(stage.metrics.rotations().0, expected);
    }
    assert_eq!(stage.metrics.ttl_seconds(stage.clock.now()), f64::INFINITY, "a token only takes it out");
}
