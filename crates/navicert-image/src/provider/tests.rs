//! Lookups with scripted plugins: order, caches, single flight, failures, service accounts (I87–I131, I259–I262).

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use navicert_plugin::{RunGate, Script, ScriptedRunner};
use navicert_types::Secret;
use navicert_types::clock::ManualClock;

use super::*;
use crate::config::ConfigFile;
use crate::metrics::TextMetrics;
use crate::service_account::{PodRef, ServiceAccount, ServiceAccountToken, TokenRequest};

/// Providers and the fakes around them.
struct Bench {
    runner: Arc<ScriptedRunner>,
    clock: Arc<ManualClock>,
    metrics: Arc<TextMetrics>,
    api: Arc<Api>,
    providers: Providers,
}

/// One provider. The name must be a program in /bin: the executable is checked, but never run.
fn provider(name: &str, patterns: &str, more: &str) -> String {
    format!(
        "- name: {name}\n  matchImages: [{patterns}]\n  defaultCacheDuration: 1h\n  \
         apiVersion: credentialprovider.kubelet.k8s.io/v1\n{more}"
    )
}

fn config(providers: &[String], profile: Profile) -> ImageConfig {
    let text = format!(
        "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n{}",
        providers.concat()
    );
    ImageConfig::decode(&[ConfigFile { path: "c.yaml".into(), text: text.into() }], profile).unwrap()
}

fn bench(profile: Profile, providers: &[String], scripts: impl IntoIterator<Item = Script>) -> Bench {
    bench_with(profile, providers, scripts, |_| ())
}

fn bench_with(
    profile: Profile,
    providers: &[String],
    scripts: impl IntoIterator<Item = Script>,
    change: impl FnOnce(&mut ProviderSettings),
) -> Bench {
    let runner = Arc::new(ScriptedRunner::new(scripts));
    let clock = Arc::new(ManualClock::at(1_000_000));
    let metrics = Arc::new(TextMetrics::new());
    let api = Arc::new(Api {
        clock: Arc::clone(&clock),
        down: AtomicBool::new(false),
        tokens: AtomicUsize::new(0),
        annotations: Mutex::default(),
    });
    let environment = [("PATH", "/usr/bin"), ("A", "inherited")].into_iter().collect();
    let mut settings = ProviderSettings::new(
        Path::new("/bin"),
        environment,
        Arc::clone(&runner) as _,
        Arc::clone(&clock) as _,
    );
    settings.profile = profile;
    settings.recorder = Arc::clone(&metrics) as _;
    settings.service_accounts = Some(Arc::clone(&api) as _);
    change(&mut settings);
    Bench { runner, clock, metrics, api, providers: Providers::new(&config(providers, profile), settings) }
}

impl Bench {
    fn users(&self, image: &str) -> Vec<String> {
        self.users_for(image, &PullIdentity::None)
    }

    fn users_for(&self, image: &str, identity: &PullIdentity) -> Vec<String> {
        let lookup = self.providers.lookup(image, identity);
        lookup.attempts().iter().map(|attempt| attempt.credential.username.clone()).collect()
    }

    fn error(&self, image: &str) -> String {
        self.providers
            .lookup(image, &PullIdentity::None)
            .errors()
            .map(|error| navicert_types::error_chain(error))
            .collect()
    }

    fn runs(&self) -> usize {
        self.runner.commands().len()
    }

    fn requests(&self) -> Vec<String> {
        let text = |command: &navicert_plugin::Command| {
            String::from_utf8(command.stdin_bytes().unwrap().expose().clone()).unwrap()
        };
        self.runner.commands().iter().map(text).collect()
    }
}

fn response(more: &str) -> Script {
    Script::prints(format!(
        r#"{{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1",{more}}}"#
    ))
}

fn credentials(key_type: &str, auth: &[(&str, &str)]) -> Script {
    let entry =
        |(key, user): &(&str, &str)| format!(r#""{key}":{{"username":"{user}","password":"secret"}}"#);
    let auth: Vec<String> = auth.iter().map(entry).collect();
    response(&format!(r#""cacheKeyType":"{key_type}","auth":{{{}}}"#, auth.join(",")))
}

#[test]
fn runs_plugin_with_arguments_environment_and_request() {
    // I87, I91, I92, I95, I245
    let more = "  args: [get, -v]\n  env: [{name: A, value: first}, {name: A, value: last}]\n";
    let bench = bench(Profile::Kube, &[provider("sh", "a.io", more)], [credentials("Image", &[])]);
    bench.users("a.io/x");
    let command = &bench.runner.commands()[0];
    assert_eq!(command.program(), "/bin/sh");
    assert_eq!(command.arguments(), ["get", "-v"]);
    assert_eq!(command.variable("A"), Some("last".as_ref()));
    assert_eq!(command.variable("PATH"), Some("/usr/bin".as_ref()));
    let expected = "{\"kind\":\"CredentialProviderRequest\",\"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1\",\"image\":\"a.io/x\"}\n";
    assert_eq!(bench.requests(), [expected]);
}

#[test]
fn runs_only_matching_providers_and_orders_by_key() {
    // I80, I137, I147
    for profile in [Profile::Kube, Profile::Hardened] {
        let list =
            [provider("sh", "'*.io', x.io", ""), provider("cat", "b.io", ""), provider("ls", "a.io", "")];
        let bench = bench(profile, &list, []);
        let gate = RunGate::closed();
        gate.open();
        // In hardened the order of the two runs is not defined, so both print the same response.
        for _ in 0..2 {
            bench
                .runner
                .push(credentials("Image", &[("*.io", "general"), ("a.io/x", "special")]).held_by(&gate));
        }
        assert_eq!(bench.users("a.io/x"), ["special", "special", "general", "general"]);
        assert_eq!(bench.runs(), 2);
        assert!(bench.users("c.example/x").is_empty());
        assert!(bench.metrics.render().contains("navicert_image_no_match_total 1"));
    }
}

#[test]
fn error_of_one_provider_does_not_affect_the_others() {
    // I98, I100
    let list = [provider("sh", "a.io", ""), provider("cat", "a.io", "")];
    let bench = bench(
        Profile::Kube,
        &list,
        [Script::exits(1).stderr("boom"), credentials("Image", &[("a.io", "ann")])],
    );
    let lookup = bench.providers.lookup("a.io/x", &PullIdentity::None);
    assert_eq!(lookup.attempts()[0].credential.username, "ann");
    let error = lookup.errors().next().unwrap();
    assert_eq!(
        (navicert_types::error_chain(error).as_str(), error.stderr()),
        (
            "error execing credential provider plugin sh for image a.io/x: `/bin/sh` failed with exit code 1",
            "boom"
        )
    );
    assert!(
        bench
            .metrics
            .render()
            .contains("kubelet_credential_provider_plugin_errors_total{plugin_name=\"sh\"} 1")
    );
}

#[test]
fn caches_responses_per_image_registry_or_globally() {
    // I121, I125
    for (key_type, runs) in [("Image", [1, 1, 2, 3]), ("Registry", [1, 1, 1, 2]), ("Global", [1, 1, 1, 1])] {
        for profile in [Profile::Kube, Profile::Hardened] {
            let scripts = (0..4).map(|_| credentials(key_type, &[("*.io", "ann")]));
            let bench = bench(profile, &[provider("sh", "'*.io'", "")], scripts);
            for (image, expected) in ["a.io/x", "a.io/x", "a.io/y", "b.io/x"].into_iter().zip(runs) {
                assert_eq!(bench.users(image), ["ann"]);
                assert_eq!(bench.runs(), expected, "{key_type} {image} {profile:?}");
            }
        }
    }
}

#[test]
fn response_expires_strictly_after_its_lifetime() {
    // I126, I127
    for (duration, good_for) in [
        ("", Some(3_600)),
        (r#","cacheDuration":"90s""#, Some(90)),
        (r#","cacheDuration":"0s""#, None),
        (r#","cacheDuration":"-1h""#, None),
    ] {
        let script = || response(&format!(r#""cacheKeyType":"Image","auth":{{"a.io":{{}}}}{duration}"#));
        let bench = bench(Profile::Kube, &[provider("sh", "a.io", "")], (0..3).map(|_| script()));
        bench.users("a.io/x");
        bench.clock.advance(Duration::from_secs(good_for.unwrap_or(0)));
        bench.users("a.io/x");
        assert_eq!(bench.runs(), if good_for.is_some() { 1 } else { 2 }, "{duration}");
        bench.clock.advance(Duration::from_nanos(1));
        bench.users("a.io/x");
        assert_eq!(bench.runs(), if good_for.is_some() { 2 } else { 3 }, "{duration}");
    }
}

#[test]
fn caches_empty_response_fully_in_kube_and_briefly_in_hardened_profile() {
    // I128
    for (profile, after_a_minute) in [(Profile::Kube, 1), (Profile::Hardened, 2)] {
        let bench = bench(
            profile,
            &[provider("sh", "a.io", "")],
            (0..2).map(|_| response(r#""cacheKeyType":"Registry""#)),
        );
        for image in ["a.io/x", "a.io/x", "a.io/y", "a.io/z"] {
            assert!(bench.users(image).is_empty());
        }
        assert_eq!(bench.runs(), 1);
        assert!(bench.metrics.render().contains("result=\"negative_hit\"} 3"));
        bench.clock.advance(Duration::from_secs(60));
        bench.users("a.io/x");
        assert_eq!(bench.runs(), after_a_minute);
    }
}

#[test]
fn retries_failure_immediately_in_kube_and_with_back_off_in_hardened_profile() {
    // I129, I262
    let kube = bench(Profile::Kube, &[provider("sh", "a.io", "")], (0..3).map(|_| Script::exits(1)));
    let hardened = bench(Profile::Hardened, &[provider("sh", "a.io", "")], (0..3).map(|_| Script::exits(1)));
    for bench in [&kube, &hardened] {
        bench.error("a.io/x");
        bench.error("a.io/x");
    }
    assert_eq!((kube.runs(), hardened.runs()), (2, 1));
    assert!(hardened.error("a.io/x").contains("failed recently, next attempt in"));
    hardened.clock.advance(Duration::from_secs(2));
    hardened.error("a.io/x");
    assert_eq!(hardened.runs(), 2);
    assert_eq!(hardened.providers.invalidate("a.io/x"), 0);
    hardened.error("a.io/x");
    assert_eq!(hardened.runs(), 3, "invalidating also resets the back-off");
}

#[test]
fn reports_and_counts_invalid_responses() {
    // I103–I106, I159, I163
    let bench = bench(
        Profile::Kube,
        &[provider("sh", "a.io", "")],
        [response(r#""cacheKeyType":"image""#).stderr("hint")],
    );
    let lookup = bench.providers.lookup("a.io/x", &PullIdentity::None);
    let error = lookup.errors().next().unwrap();
    let text = navicert_types::error_chain(error);
    assert!(text.contains("cacheKeyType must be"), "{text}");
    assert_eq!(error.stderr(), "hint");
    let metrics = bench.metrics.render();
    assert!(
        metrics
            .contains("navicert_image_response_errors_total{plugin_name=\"sh\",reason=\"cache_key_type\"} 1")
    );
    assert!(
        metrics.contains("kubelet_credential_provider_plugin_errors_total{plugin_name=\"sh\"} 0"),
        "{metrics}"
    );
}

#[test]
fn does_not_use_responses_that_expired_during_suspend() {
    // I131b: the kubelet uses a clock that stops during suspend; navicert also checks the wall clock.
    for profile in [Profile::Kube, Profile::Hardened] {
        let answer = || credentials("Registry", &[("a.io", "ann")]);
        let bench = bench(profile, &[provider("sh", "a.io", "")], [answer(), answer()]);
        for hours in [0, 1] {
            bench.clock.set_wall(bench.clock.now() + Duration::from_secs(hours * 3_600));
            assert_eq!(bench.users("a.io/x"), ["ann"]);
        }
        assert_eq!(bench.runs(), 1, "valid up to and including one hour");
        bench.clock.set_wall(bench.clock.now() + Duration::from_secs(1));
        assert_eq!(bench.users("a.io/x"), ["ann"]);
        assert_eq!(bench.runs(), 2, "{profile:?}");
    }
}

#[test]
fn metrics_show_last_response_and_its_expiry() {
    // I163
    let scripts = [credentials("Registry", &[("a.io", "ann")]), Script::exits(1)];
    let bench = bench(Profile::Kube, &[provider("sh", "a.io", "")], scripts);
    bench.users("a.io/x");
    bench.clock.advance(Duration::from_secs(3_601));
    bench.users("a.io/x");
    let metrics = bench.metrics.render();
    for line in [
        "navicert_image_plugin_last_success_timestamp_seconds{plugin_name=\"sh\"} 1000000",
        "navicert_image_credential_expiry_timestamp_seconds{plugin_name=\"sh\"} 1003600",
        "kubelet_credential_provider_plugin_errors_total{plugin_name=\"sh\"} 1",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
}

#[test]
fn anonymous_credential_keeps_its_position() {
    // I151, I219
    let auth = r#""auth":{"a.io":{"username":"ann","password":"p"},"*.io":null,"a.io/x":{"username":"x","password":"p"}}"#;
    let bench = bench(
        Profile::Kube,
        &[provider("sh", "a.io", "")],
        [response(&format!(r#""cacheKeyType":"Image",{auth}"#))],
    );
    assert_eq!(bench.users("a.io/x"), ["x", "ann", ""], "the last attempt is explicitly anonymous");
    assert!(bench.users("b.io/x").is_empty(), "no credentials: one anonymous attempt (I151)");
}

#[test]
fn runs_providers_concurrently_in_hardened_and_sequentially_in_kube_profile() {
    // I148: both plugins block until both have started, which would never happen sequentially.
    let gate = RunGate::closed();
    let answers = [("*.io", "one"), ("a.io", "two")]
        .map(|(key, user)| credentials("Image", &[(key, user)]).held_by(&gate));
    let bench = bench(Profile::Hardened, &[provider("sh", "a.io", ""), provider("cat", "a.io", "")], answers);
    let users = thread::scope(|scope| {
        let asking = scope.spawn(|| bench.users("a.io/x"));
        assert!(gate.wait_for_arrivals(2, Duration::from_secs(60)));
        gate.open();
        asking.join().unwrap()
    });
    assert_eq!(users.len(), 2);
    let bench = self::bench(
        Profile::Kube,
        &[provider("sh", "a.io", ""), provider("cat", "a.io", "")],
        ["one", "two"].map(|user| credentials("Image", &[("a.io", user)])),
    );
    assert_eq!(bench.users("a.io/x"), ["one", "two"]);
    let programs: Vec<_> =
        bench.runner.commands().iter().map(|command| command.program().to_owned()).collect();
    assert_eq!(programs, [Path::new("/bin/sh"), Path::new("/bin/cat")]);
}

#[test]
fn sweeps_expired_responses_every_15_minutes() {
    // I130
    let scripts = [credentials("Image", &[]), credentials("Image", &[])];
    let bench = bench(Profile::Kube, &[provider("sh", "a.io", "").replace("1h", "1m")], scripts);
    bench.users("a.io/x");
    bench.clock.advance(Duration::from_secs(15 * 60 + 1));
    bench.users("a.io/y");
    assert_eq!(bench.providers.list_cache().len(), 1);
}

/// Runs a hundred concurrent lookups of this many images and returns the number of plugin runs.
fn hundred(bench: &Bench, images: usize, gate: &RunGate) -> usize {
    thread::scope(|scope| {
        for number in 0..100 {
            scope.spawn(move || bench.users(&format!("a.io/x{}", number % images)));
        }
        gate.open();
    });
    bench.runs()
}

#[test]
fn a_hundred_concurrent_pulls_from_one_registry_cause_one_run() {
    // I131, I255, I259
    let gate = RunGate::closed();
    let scripts = (0..100).map(|_| credentials("Registry", &[("a.io", "ann")]).held_by(&gate));
    let bench = bench(Profile::Hardened, &[provider("sh", "a.io", "")], scripts);
    assert_eq!(hundred(&bench, 100, &gate), 1);
}

#[test]
fn plugin_with_image_scope_runs_once_per_image() {
    // I259
    let gate = RunGate::closed();
    let scripts = (0..100).map(|_| credentials("Image", &[("a.io", "ann")]).held_by(&gate));
    let bench = bench(Profile::Hardened, &[provider("sh", "a.io", "")], scripts);
    assert_eq!(hundred(&bench, 10, &gate), 10);
}

#[test]
fn rejected_credential_is_removed_from_the_cache_once() {
    // I131a, I261
    let scripts = (0..4).map(|_| credentials("Registry", &[("a.io", "ann")]));
    let bench = bench(Profile::Hardened, &[provider("sh", "a.io", "")], scripts);
    bench.users("a.io/x");
    let hash = RegistryCredential::new("ann", "secret".to_owned()).hash();
    assert!(!bench.providers.report_rejected("a.io/x", "another"));
    assert!(bench.providers.report_rejected("a.io/x", &hash));
    bench.users("a.io/x");
    assert_eq!(bench.runs(), 2);
    assert!(!bench.providers.report_rejected("a.io/x", &hash), "not again within ten seconds");
    bench.clock.advance(Duration::from_secs(10));
    assert!(bench.providers.report_rejected("a.io/x", &hash));
    assert_eq!(bench.providers.invalidate("a.io/x"), 0);
}

#[test]
fn refreshes_in_the_background_and_keeps_response_if_the_refresh_fails() {
    // I247, I254, I256, I260, I262: the cached response served meanwhile has not expired.
    let (gate, failed) = (RunGate::closed(), RunGate::closed());
    let scripts = [
        credentials("Registry", &[("a.io", "old")]),
        Script::exits(1).held_by(&failed),
        credentials("Registry", &[("a.io", "new")]).held_by(&gate),
    ];
    let bench = bench_with(Profile::Hardened, &[provider("sh", "a.io", "")], scripts, |settings| {
        settings.refresh_ahead = true;
    });
    bench.users("a.io/x");
    bench.clock.advance(Duration::from_secs(2_879));
    assert_eq!((bench.users("a.io/x"), bench.runs()), (vec!["old".to_owned()], 1));
    bench.clock.advance(Duration::from_secs(190));
    assert_eq!(bench.users("a.io/x"), ["old"], "lookups do not wait for the refresh");
    assert!(failed.wait_for_arrivals(1, Duration::from_secs(30)));
    failed.open();
    while bench.metrics.render().contains("plugin_in_flight{plugin_name=\"sh\"} 1") {
        thread::yield_now();
    }
    while bench.providers.providers()[0].runs_in_flight() > 0 {
        thread::yield_now();
    }
    for _ in 0..3 {
        assert_eq!(bench.users("a.io/x"), ["old"], "a failed refresh keeps the cached response");
    }
    assert_eq!(bench.runs(), 2, "and backs off");
    bench.clock.advance(Duration::from_secs(2));
    gate.open();
    while bench.users("a.io/x") != ["new"] {
        thread::yield_now();
    }
    assert_eq!(bench.runs(), 3);
}

#[test]
fn keeps_redacted_stderr_also_after_success() {
    // I99, I244, I266
    let more = "  args: [--password=canary-argument]\n  env: [{name: API_TOKEN, value: canary-variable}]\n";
    let said = "\u{1b}[2Jusing canary-variable and --password=canary-argument and eyJhbGci.eyJpc3Mi.c2ln";
    let bench =
        bench(Profile::Hardened, &[provider("sh", "a.io", more)], [credentials("Image", &[]).stderr(said)]);
    bench.users("a.io/x");
    let kept = bench.providers.providers()[0].last_stderr();
    assert!(kept.starts_with("U+001B[2Jusing REDACTED and REDACTED and REDACTED"), "{kept}");
}

#[test]
fn error_for_missing_executable_names_its_path() {
    // I4–I6
    let missing = bench(Profile::Kube, &[provider("no-such-program", "a.io", "")], []);
    let error = navicert_types::error_chain(&missing.providers.check_executables().unwrap_err());
    assert!(error.contains("/bin/no-such-program"), "{error}");
    let nowhere = bench_with(Profile::Kube, &[provider("sh", "a.io", "")], [], |settings| {
        settings.bin_dir = "/no/such".into();
    });
    assert_eq!(
        nowhere.providers.check_executables().unwrap_err().to_string(),
        "plugin binary directory /no/such did not exist"
    );
    assert!(bench(Profile::Kube, &[provider("sh", "a.io", "")], []).providers.check_executables().is_ok());
}

// Service accounts.

#[derive(Debug)]
struct Api {
    clock: Arc<ManualClock>,
    down: AtomicBool,
    tokens: AtomicUsize,
    annotations: Mutex<BTreeMap<String, String>>,
}

impl ServiceAccounts for Api {
    fn account(&self, _: &str, name: &str) -> Result<ServiceAccount, String> {
        if self.down.load(Ordering::SeqCst) {
            return Err("the API server is unreachable".to_owned());
        }
        Ok(ServiceAccount {
            uid: format!("uid-{name}"),
            annotations: self.annotations.lock().unwrap().clone(),
        })
    }

    fn token(&self, request: &TokenRequest) -> Result<ServiceAccountToken, String> {
        if self.down.load(Ordering::SeqCst) {
            return Err("the API server is unreachable".to_owned());
        }
        self.tokens.fetch_add(1, Ordering::SeqCst);
        let issued = self.clock.now();
        let token =
            format!("token of {} for {} in {}", request.account.name, request.audience, request.pod.0);
        Ok(ServiceAccountToken { token: token.into(), issued, expires: issued + Duration::from_secs(3_600) })
    }
}

fn pod(name: &str, account: &str) -> PullIdentity {
    PullIdentity::Pod(PodRef {
        namespace: "ns".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
        service_account_name: account.into(),
    })
}

fn with_token(cache_type: &str, more: &str) -> [String; 1] {
    [provider(
        "sh",
        "a.io",
        &format!(
            "  tokenAttributes:\n    serviceAccountTokenAudience: aud\n    cacheType: {cache_type}\n    requireServiceAccount: true\n{more}"
        ),
    )]
}

#[test]
fn passes_pod_token_and_requested_annotations() {
    // I109, I113, I114, I118
    let more = "    requiredServiceAccountAnnotationKeys: [r.io/role]\n    optionalServiceAccountAnnotationKeys: [o]\n";
    let bench =
        bench(Profile::Kube, &with_token("Token", more), [credentials("Registry", &[("a.io", "ann")])]);
    let skipped = bench.providers.lookup("a.io/x", &pod("p", "sa"));
    assert!(
        matches!(skipped.outcomes().next(), Some((_, ProviderOutcome::Skipped(Skipped::MissingAnnotation(key)))) if key == "r.io/role")
    );
    bench
        .api
        .annotations
        .lock()
        .unwrap()
        .extend([("r.io/role".into(), "<x>".into()), ("other".into(), "y".into())]);
    let lookup = bench.providers.lookup("a.io/x", &pod("p", "sa"));
    assert_eq!(lookup.attempts()[0].source.unwrap().uid, "uid-sa");
    assert!(bench.requests()[0].ends_with("\"serviceAccountToken\":\"token of sa for aud in p\",\"serviceAccountAnnotations\":{\"r.io/role\":\"\\u003cx\\u003e\"}}\n"));
}

#[test]
fn skips_provider_that_requires_a_service_account() {
    // I111, I237
    let strict = bench(Profile::Kube, &with_token("Token", ""), []);
    for identity in [pod("static", ""), PullIdentity::None] {
        let lookup = strict.providers.lookup("a.io/x", &identity);
        assert!(matches!(
            lookup.outcomes().next(),
            Some((_, ProviderOutcome::Skipped(Skipped::NoServiceAccount)))
        ));
    }
    let optional = with_token("Token", "")
        .map(|text| text.replace("requireServiceAccount: true", "requireServiceAccount: false"));
    let bench = bench(Profile::Kube, &optional, [credentials("Image", &[("a.io", "ann")])]);
    assert_eq!(bench.users_for("a.io/x", &pod("static", "")), ["ann"]);
    assert!(!bench.requests()[0].contains("serviceAccountToken"));
}

#[test]
fn shares_responses_per_token_or_service_account() {
    // I123
    for (cache_type, runs) in [("Token", 2), ("ServiceAccount", 1)] {
        for profile in [Profile::Kube, Profile::Hardened] {
            let scripts = (0..4).map(|_| credentials("Registry", &[("a.io", "ann")]));
            let bench = bench(profile, &with_token(cache_type, ""), scripts);
            for name in ["p1", "p2", "p1"] {
                assert_eq!(bench.users_for("a.io/x", &pod(name, "sa")), ["ann"]);
            }
            assert_eq!(bench.runs(), runs, "{cache_type} {profile:?}");
            bench.users_for("a.io/x", &pod("p1", "other"));
            assert_eq!(bench.runs(), runs + 1, "accounts never share responses");
        }
    }
}

#[test]
fn cached_credentials_survive_an_api_server_outage() {
    // I110: the kubelet fails here.
    for (profile, survives) in [(Profile::Kube, false), (Profile::Hardened, true)] {
        for cache_type in ["Token", "ServiceAccount"] {
            let bench =
                bench(profile, &with_token(cache_type, ""), [credentials("Registry", &[("a.io", "ann")])]);
            assert_eq!(bench.users_for("a.io/x", &pod("p", "sa")), ["ann"]);
            bench.api.down.store(true, Ordering::SeqCst);
            let found = bench.providers.lookup("a.io/y", &pod("p", "sa"));
            assert_eq!(!found.attempts().is_empty(), survives, "{profile:?} {cache_type}");
            assert_eq!(found.errors().next().is_none(), survives);
            let unknown = bench.providers.lookup("a.io/y", &pod("p", "never-seen"));
            let text = navicert_types::error_chain(unknown.errors().next().unwrap());
            assert_eq!(
                text,
                "credential provider plugin sh was not run: failed to get service account: the API server is unreachable"
            );
        }
    }
}

#[test]
fn hardened_profile_requests_token_only_for_plugin_runs() {
    // I110
    for (profile, tokens) in [(Profile::Kube, 2), (Profile::Hardened, 1)] {
        let bench =
            bench(profile, &with_token("ServiceAccount", ""), [credentials("Registry", &[("a.io", "ann")])]);
        bench.users_for("a.io/x", &pod("p1", "sa"));
        bench.users_for("a.io/x", &pod("p2", "sa"));
        assert_eq!(bench.api.tokens.load(Ordering::SeqCst), tokens, "{profile:?}");
    }
}

#[test]
fn rejects_echoed_token_unless_cached_per_token() {
    // I117
    let echo = || {
        response(
            r#""cacheKeyType":"Image","auth":{"a.io":{"username":"u","password":"token of sa for aud in p"}}"#,
        )
    };
    let shared = bench(Profile::Kube, &with_token("ServiceAccount", ""), [echo()]);
    let lookup = shared.providers.lookup("a.io/x", &pod("p", "sa"));
    let error = lookup.errors().next().unwrap().to_string();
    assert!(error.contains("returned the service account token as the password"), "{error}");
    assert!(!error.contains("token of sa"));
    let own = bench(Profile::Kube, &with_token("Token", ""), [echo()]);
    assert_eq!(own.users_for("a.io/x", &pod("p", "sa")), ["u"]);
}

#[test]
fn uses_token_provided_by_the_caller() {
    // I237
    let bench = bench(
        Profile::Hardened,
        &with_token("ServiceAccount", ""),
        (0..2).map(|_| credentials("Registry", &[("a.io", "ann")])),
    );
    let bearer = |token: &str| PullIdentity::Bearer {
        token: Secret::from(token.to_owned()),
        annotations: BTreeMap::new(),
    };
    for token in ["one", "one", "two"] {
        assert_eq!(bench.users_for("a.io/x", &bearer(token)), ["ann"]);
    }
    assert_eq!(bench.runs(), 2, "different tokens do not share responses");
    assert!(bench.requests()[0].contains("\"serviceAccountToken\":\"one\""));
}

#[test]
fn debug_shows_no_secrets() {
    let more = "  args: [canary-argument]\n  env: [{name: A, value: canary-variable}]\n";
    let bench = bench(
        Profile::Hardened,
        &[provider("sh", "a.io", more)],
        [response(r#""cacheKeyType":"Image","auth":{"a.io":{"password":"canary-password"}}"#)],
    );
    let lookup = bench.providers.lookup("a.io/x", &PullIdentity::None);
    let shown = format!("{lookup:?} {:?} {:?}", bench.providers, lookup.attempts());
    assert!(!shown.contains("canary"), "{shown}");
}
