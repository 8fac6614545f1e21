//! skopeo and podman pull from a real registry with a password, using only the helper and a provider plugin.

#![expect(clippy::unwrap_used, reason = "test helpers fail by panicking")]

mod support;

use std::fs;
use std::sync::Arc;
use std::thread;

use navicert_image::daemon::{Daemon, DaemonService};
use navicert_image::docker_helper::Scopes;
use navicert_image::metrics::TextMetrics;
use navicert_image::provider::ProviderSettings;
use navicert_image::reload::Reloader;
use navicert_image::socket::{DaemonVerb, call};
use navicert_plugin::{Environment, ProcessRunner};
use navicert_testkit::Program;
use navicert_types::SystemClock;
use support::{PASSWORD, PullerHome, registry};

const HELPER: &str = env!("CARGO_BIN_EXE_docker-credential-navicert");

#[test]
fn skopeo_and_podman_pull_with_the_helper_alone() {
    let Some(registry) = registry() else { return };
    let home = PullerHome::new(&registry, HELPER);
    for pull in [home.skopeo(&registry), home.podman(&registry)] {
        let outcome = pull.run().unwrap();
        assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    }
    assert!(home.runs() >= 2, "the provider runs for each pull");
    let anonymous = home.skopeo(&registry).variable("NAVICERT_IMAGE_CONFIG", home.dir("none")).run().unwrap();
    assert_ne!(anonymous.code(), Some(0), "the registry requires a password");
}

#[test]
fn wrong_credential_stays_cached_until_erased_or_invalidated() {
    // I131a, I238, I261
    let Some(registry) = registry() else { return };
    let home = PullerHome::new(&registry, HELPER);
    let clock = Arc::new(SystemClock);
    let runner = Arc::new(ProcessRunner::new(Arc::clone(&clock) as _));
    let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    let settings = ProviderSettings::new(&home.dir("bin"), environment, runner, Arc::clone(&clock) as _);
    let reloader = Reloader::open(&home.dir("config.yaml"), settings).unwrap();
    let service = DaemonService::new(reloader, Scopes::new(), Arc::new(TextMetrics::new()), clock);
    let daemon = Daemon::bind(&home.dir("run/navicert/image.sock"), service).unwrap();
    thread::spawn(move || daemon.run());

    let erase = || {
        let erased = home.helper("erase").stdin(registry.host()).run().unwrap();
        assert_eq!((erased.code(), erased.stdout.as_slice()), (Some(0), &b""[..]));
    };
    // The request that `navicert image invalidate IMAGE` sends to the daemon.
    let socket = home.dir("run/navicert/image.sock");
    let image = registry.image();
    let invalidate =
        || assert_eq!(&**call(&socket, DaemonVerb::Invalidate, &image).unwrap().unwrap().stdout, b"1\n");
    let rounds: [(Program, &dyn Fn()); 4] = [
        (home.skopeo(&registry), &erase),
        (home.skopeo(&registry), &invalidate),
        (home.podman(&registry), &erase),
        (home.podman(&registry), &invalidate),
    ];
    for (puller, forget) in rounds {
        erase();
        fs::write(home.dir("password"), "wrong-password").unwrap();
        let pull = || puller.run().unwrap().code();
        assert_ne!(pull(), Some(0), "{puller}: a wrong password");
        let runs = home.runs();
        fs::write(home.dir("password"), PASSWORD).unwrap();
        assert_ne!(pull(), Some(0), "{puller}: the daemon still caches the wrong one");
        assert_eq!(home.runs(), runs);
        forget();
        assert_eq!(pull(), Some(0), "{puller}");
        assert_eq!(home.runs(), runs + 1);
    }
    let listed = String::from_utf8(home.helper("list").stdin("unused").run().unwrap().stdout).unwrap();
    assert_eq!(listed, format!("{{\"{}\":\"ann\"}}\n", registry.host()));
}

#[test]
fn podman_pulls_with_generated_auth_file() {
    // I226, I228, I235, I252
    let Some(registry) = registry() else { return };
    let home = PullerHome::new(&registry, HELPER);
    let config =
        navicert_image::reload::load(&home.dir("config.yaml"), navicert_image::Profile::Hardened).unwrap();
    let clock = Arc::new(SystemClock);
    let runner = Arc::new(ProcessRunner::new(Arc::clone(&clock) as _));
    let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    let providers = navicert_image::Providers::new(
        &config,
        ProviderSettings::new(&home.dir("bin"), environment, runner, clock),
    );
    let image = navicert_image::Repository::from_image(&registry.image()).unwrap();
    let mut file = navicert_image::auth_file::AuthFile::new();
    assert!(
        file.add(&providers.lookup(image.as_str(), &navicert_image::service_account::PullIdentity::None))
    );
    navicert_image::auth_file::write_private(&home.dir("auth.json"), file.encode().expose()).unwrap();
    fs::remove_file(home.dir("bin/docker-credential-navicert")).unwrap();
    let outcome = home.podman(&registry).run().unwrap();
    assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
}

#[test]
fn helper_follows_the_protocol() {
    // I220, I221, I222, I223, I238: no registry needed.
    let dir = tempfile::tempdir().unwrap();
    let helper = |arguments: &[&str], stdin: &str| {
        let program = Program::new(HELPER).arguments(arguments).stdin(stdin).own_environment();
        let outcome = program.variable("NAVICERT_IMAGE_CONFIG", dir.path().join("absent")).run().unwrap();
        (outcome.code(), String::from_utf8(outcome.stdout).unwrap())
    };
    for (arguments, stdin, code, stdout) in [
        (&["list"][..], "unused", 0, "{}\n"),
        (&["erase"], "a.io", 0, ""),
        (&["get"], "", 1, "no credentials server URL\n"),
        (
            &["get"],
            "a.io\nhost=evil.com",
            1,
            "invalid server name: contains a control character or white space\n",
        ),
        (&["get"], "me:canary@a.io", 1, "invalid server name: contains user info\n"),
    ] {
        assert_eq!(helper(arguments, stdin), (Some(code), stdout.to_owned()), "{arguments:?} {stdin}");
    }
    let (code, stdout) = helper(&["store"], r#"{"ServerURL":"a.io","Username":"u","Secret":"canary"}"#);
    assert!(
        code == Some(1)
            && stdout.contains("storing credentials is not supported")
            && !stdout.contains("canary"),
        "{stdout}"
    );
    for arguments in [&[][..], &["get", "list"], &["frobnicate"]] {
        let (code, stdout) = helper(arguments, "");
        assert!(code == Some(1) && stdout.starts_with("usage: "), "{stdout}");
    }
    let (code, stdout) = helper(&["get"], "a.io");
    assert!(code == Some(1) && stdout.contains("unable to access path"), "{stdout}");
    let version = helper(&["version"], "");
    assert!(version.0 == Some(0) && version.1.starts_with("docker-credential-navicert "));
}
