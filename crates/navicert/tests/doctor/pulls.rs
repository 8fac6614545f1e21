//! Image pulls without a credential: what a real containerd prints, which is what the events of a pod show.

use std::path::{Path, PathBuf};

use navicert_testkit::cli::program::Running;
use navicert_testkit::cli::tools;
use navicert_testkit::{Answer, HttpServer, Program, wait};
use serde_json::json;

use super::symptoms::{contains, rows};

/// A containerd of its own, with nothing but what a pull needs.
struct Containerd {
    dir: tempfile::TempDir,
    client: PathBuf,
    _daemon: Running,
}

impl Containerd {
    /// `None`, reported as skipped, if it is not installed.
    fn start() -> Option<Self> {
        let daemon = tools::installed("containerd", "containerd")?;
        let client = tools::installed("containerd", "ctr")?;
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| json!(dir.path().join(name)).to_string();
        // The owner of its sockets is the user of the test, who need not be root.
        let config = format!(
            "version = 2\nroot = {}\nstate = {}\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\", \"io.containerd.internal.v1.opt\"]\n\
             [grpc]\naddress = {}\nuid = {uid}\ngid = {gid}\n[ttrpc]\naddress = {}\nuid = {uid}\ngid = {gid}\n",
            path("root"),
            path("state"),
            path("grpc.sock"),
            path("ttrpc.sock"),
            uid = rustix::process::getuid().as_raw(),
            gid = rustix::process::getgid().as_raw(),
        );
        std::fs::write(dir.path().join("config.toml"), config).unwrap();
        let daemon = Program::new(daemon).arguments(["--config", "config.toml"]).directory(dir.path());
        let daemon = daemon.start_running().unwrap();
        wait::blocking(daemon.wait_for_output("successfully booted"));
        Some(Containerd { dir, client, _daemon: daemon })
    }

    /// What it prints about a pull that fails.
    fn pull(&self, image: &str) -> String {
        let socket = self.dir.path().join("grpc.sock");
        let outcome = Program::new(&self.client)
            .arguments([Path::new("--address"), &socket])
            .arguments(["images", "pull", "--plain-http", image])
            .merged()
            .run()
            .unwrap();
        let printed = String::from_utf8_lossy(&outcome.stdout).into_owned();
        assert_eq!(outcome.code(), Some(1), "{printed}");
        printed
    }
}

/// A registry that asks for a token of its token service, which `tokens` answers.
fn registry(challenge: &'static str, tokens: fn() -> Answer) -> HttpServer {
    let server = HttpServer::start_plain();
    server.answer_with("/token*", move |_| tokens());
    let realm = server.url_of("/token");
    server.answer_with("/v2/*", move |_| {
        let challenge = format!("Bearer realm=\"{realm}\",service=\"registry\"{challenge}");
        Answer::status(401).header("www-authenticate", &challenge)
    });
    server
}

#[test]
fn containerd_prints_what_the_rows_quote_if_it_has_no_credential() {
    let Some(containerd) = Containerd::start() else { return };
    let refused = || Answer::status(401);
    let anonymous = || Answer::json(&json!({"token": "anonymous"}));
    let mut checked = 0;
    for row in rows() {
        let Some(service) = row.producer.strip_prefix("containerd ") else { continue };
        let registry = match service {
            "no-anonymous-token" => registry("", refused),
            "insufficient-scope" => registry(",error=\"insufficient_scope\"", anonymous),
            other => panic!("unknown registry `{other}`"),
        };
        let printed = containerd.pull(&format!("{}/team/app:v1", registry.address()));
        assert!(printed.lines().any(|line| contains(line, &row.seen)), "`{}`: {printed}", row.seen);
        checked += 1;
    }
    assert_eq!(checked, 2);
}
