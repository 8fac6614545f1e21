//! `navicert image serve` as a process: cleanup, secrets and metrics.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests; a daemon runs beside the test"
)]

#[expect(dead_code, reason = "these tests ask the daemon, not the provider")]
mod image_support;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use image_support::Fixture;
use navicert_image::socket::{DaemonVerb, call};
use navicert_testkit::Program;
use navicert_testkit::cli::output_schema;
use navicert_testkit::cli::program::copy_executable;

const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");
const NO_ACCOUNT: &str = "{serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: false}";

struct Daemon(Child);

impl Daemon {
    /// Returns once it listens.
    fn start(fixture: &Fixture, arguments: &[&str]) -> Self {
        let mut child = Command::new(NAVICERT)
            .args(["image", "serve", "--config", "config.yaml", "--bin-dir", "bin"])
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("XDG_RUNTIME_DIR", fixture.path("run"))
            .current_dir(fixture.path("."))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on "), "{line}");
        Daemon(child)
    }

    /// Sends a signal and waits for the end: the exit code and what was said.
    fn stop(mut self, signal: &str) -> (Option<i32>, String) {
        let script = format!("kill {signal} {}", self.0.id());
        let outcome = Program::new("/bin/sh").arguments(["-c", &script]).run().unwrap();
        assert!(outcome.status.success());
        let code = self.0.wait().unwrap().code();
        let mut said = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (code, said)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn navicert(fixture: &Fixture, arguments: &[&str]) -> (Option<i32>, String, String) {
    let program = Program::new(NAVICERT).arguments(arguments).own_environment();
    let outcome = program.variable("XDG_RUNTIME_DIR", fixture.path("run")).run().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (outcome.code(), text(outcome.stdout), text(outcome.stderr))
}

#[test]
fn stopped_daemon_removes_its_socket() {
    for signal in ["-TERM", "-INT"] {
        let fixture = Fixture::new(NO_ACCOUNT);
        let daemon = Daemon::start(&fixture, &[]);
        let socket = fixture.path("run/navicert/image.sock");
        assert!(socket.exists());
        assert_eq!(daemon.stop(signal), (Some(0), String::new()));
        assert!(!socket.exists(), "{signal}");
        let (code, _, said) = navicert(&fixture, &["image", "metrics"]);
        assert_eq!(code, Some(4));
        assert!(said.contains("no daemon is listening on"), "{said}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_daemon_leaves_no_core_dump() {
    // I266
    let fixture = Fixture::new(NO_ACCOUNT);
    let daemon = Daemon::start(&fixture, &[]);
    let limits = fs::read_to_string(format!("/proc/{}/limits", daemon.0.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).collect::<Vec<_>>(), ["0", "0", "bytes"]);
}

#[test]
fn daemon_metrics_and_invalidation_work() {
    // I156, I163, I253, I261, I264
    let fixture = Fixture::new(NO_ACCOUNT);
    let daemon = Daemon::start(&fixture, &["--mirror", "mirror.example:5000=registry.example"]);
    let socket = fixture.path("run/navicert/image.sock");
    for server in ["registry.example", "mirror.example:5000"] {
        let reply = call(&socket, DaemonVerb::Get, server).unwrap().unwrap();
        let response = String::from_utf8(reply.stdout.to_vec()).unwrap();
        assert_eq!(
            response,
            format!("{{\"ServerURL\":\"{server}\",\"Username\":\"ann\",\"Secret\":\"canary\"}}\n")
        );
    }
    let (code, metrics, _) = navicert(&fixture, &["image", "metrics"]);
    assert_eq!(code, Some(0));
    for line in [
        "kubelet_credential_provider_plugin_duration_count{plugin_name=\"workload\"} 1\n",
        "navicert_image_cache_lookups_total{plugin_name=\"workload\",result=\"hit_image\"} 1\n",
        "navicert_image_cache_lookups_total{plugin_name=\"workload\",result=\"miss\"} 1\n",
        "navicert_image_plugin_last_success_timestamp_seconds{plugin_name=\"workload\"} ",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    assert!(!metrics.contains("canary"), "{metrics}");
    let program = Program::new(NAVICERT).arguments(["image", "explain", "--dry-run", "registry.example/app"]);
    let program =
        program.arguments(["--config", "config.yaml", "--bin-dir", "bin"]).directory(&fixture.path("."));
    let outcome = program.own_environment().variable("XDG_RUNTIME_DIR", fixture.path("run")).run().unwrap();
    let explained = String::from_utf8(outcome.stdout).unwrap();
    assert!(
        explained.contains("  daemon     cached response for registry.example (Registry) until 2"),
        "{explained}"
    );
    for (forgotten, count) in [("1 cached response removed", 1), ("0 cached responses removed", 0)] {
        let (code, said, _) = navicert(&fixture, &["image", "invalidate", "registry.example/app"]);
        assert_eq!((code, said), (Some(0), format!("registry.example/app: {forgotten}\n")), "{count}");
    }
    let (_, said, _) = navicert(&fixture, &["image", "invalidate", "registry.example/app", "-o", "json"]);
    output_schema::check_all("image-invalidate", [&serde_json::from_str(&said).unwrap()]);
    let (code, _, said) =
        navicert(&fixture, &["image", "serve", "--config", fixture.path("config.yaml").to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(said.contains("a daemon is already listening on"), "{said}");
    drop(daemon);
}

#[test]
fn missing_provider_does_not_stop_the_daemon_from_serving_others() {
    // I251
    let fixture = Fixture::new(NO_ACCOUNT);
    let config = fs::read_to_string(fixture.path("config.yaml")).unwrap();
    let absent = "- {name: absent, matchImages: [other.example], defaultCacheDuration: 1m, apiVersion: credentialprovider.kubelet.k8s.io/v1}\n";
    fs::write(fixture.path("config.yaml"), format!("{config}{absent}")).unwrap();
    let daemon = Daemon::start(&fixture, &[]);
    let socket = fixture.path("run/navicert/image.sock");
    assert_eq!(call(&socket, DaemonVerb::Get, "registry.example").unwrap().unwrap().code, 0);
    let failed = call(&socket, DaemonVerb::Get, "other.example").unwrap().unwrap();
    assert!(failed.code == 1 && String::from_utf8_lossy(&failed.stdout).contains("absent"));
    let (code, said) = daemon.stop("-TERM");
    assert!(code == Some(0) && said.contains("absent"), "{said}");
}

#[test]
fn missing_configuration_error_names_the_flag_to_set() {
    let fixture = Fixture::new(NO_ACCOUNT);
    fs::create_dir_all(fixture.path("xdg/navicert/image")).unwrap();
    let program =
        Program::new(NAVICERT).arguments(["image", "get", "registry.example/app"]).own_environment();
    let outcome = program.variable("XDG_CONFIG_HOME", fixture.path("xdg")).run().unwrap();
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert_eq!(outcome.code(), Some(3));
    assert!(said.contains("xdg/navicert/image/config` does not exist; set `--image-"), "{said}");
}

// As for root, after `su`, in cron jobs and containers.
#[test]
fn daemon_and_clients_find_each_other_without_a_runtime_directory() {
    let as_other = |program: &str| {
        let command = Program::new("setpriv").arguments(["--reuid=nobody", "--clear-groups", "--", program]);
        command.own_environment().variable("PATH", "/usr/bin:/bin")
    };
    if as_other("true").run().map_or(true, |outcome| outcome.code() != Some(0)) {
        return navicert_testkit::report::skipped("root", "only root can run a program as another user");
    }
    let fixture = Fixture::new(NO_ACCOUNT);
    let copy = fixture.path("navicert");
    copy_executable(NAVICERT, &copy).unwrap();
    let home = fixture.path(".");
    let chown = Program::new("chown").arguments(["-R", "nobody"]).arguments([&home]);
    assert_eq!(chown.run().unwrap().code(), Some(0));
    let navicert =
        |arguments: &[&str]| as_other(copy.to_str().unwrap()).arguments(arguments).directory(&home);
    let serve = navicert(&["image", "serve", "--config", "config.yaml", "--bin-dir", "bin"]);
    let daemon = serve.start_running().unwrap();
    let line = navicert_testkit::wait::blocking(daemon.wait_for_output("image.sock\n"));
    let metrics = navicert(&["image", "metrics"]).run().unwrap();
    assert_eq!(metrics.code(), Some(0), "{line}{}", String::from_utf8_lossy(&metrics.stderr));
    daemon.signal("TERM");
    assert_eq!(navicert_testkit::wait::blocking(daemon.wait()).code(), Some(0));
    let stopped = navicert(&["image", "metrics"]).run().unwrap();
    assert_eq!(stopped.code(), Some(4), "{}", String::from_utf8_lossy(&stopped.stderr));
}
