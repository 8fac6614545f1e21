//! `navicert login` killed with SIGKILL at random moments of logins and refreshes: the cache is always readable, no lock stays, and no
//! session is lost that the provider still honours. `make soak` runs the long form.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "helpers of tests, which start, kill and time the program itself"
)]

#[path = "login_support/person.rs"]
mod person;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use navicert_testkit::net::http_server::{BodyState, Log, Request};
use navicert_testkit::services::login_provider::CLIENT;
use navicert_testkit::{LoginProvider, soak, wait};
use serde_json::{Value, json};

/// Kills of the short form; `make soak` multiplies it to 200 and more.
const KILLS: usize = 20;

struct Setup {
    dir: tempfile::TempDir,
    provider: LoginProvider,
}

impl Setup {
    fn new(forgives_lost_answers: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let provider = LoginProvider::start(dir.path());
        provider.state().forgives_lost_answers = forgives_lost_answers;
        std::fs::write(dir.path().join("password"), "canary-password\n").unwrap();
        Setup { dir, provider }
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    fn command(&self, verb: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_navicert"));
        command.env_clear().env("HOME", self.dir.path()).args(verb);
        command.arg(format!("--token-cache-dir={}", self.cache().display()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A login; `--username` with a password needs no person, `--skip-open-browser` needs one.
    fn login(&self, more: &[&str]) -> Command {
        let mut command = self.command(&["login"]);
        command.arg(format!("--oidc-issuer-url={}", self.provider.issuer.issuer_url()));
        command.arg(format!("--oidc-client-id={CLIENT}"));
        command.arg(format!("--certificate-authority={}", self.provider.ca_file.display()));
        command.args(more);
        command
    }

    fn password_login(&self) -> Command {
        let file = self.dir.path().join("password");
        self.login(&["--username=ann", &format!("--password-file={}", file.display())])
    }

    /// The session, if there is one; its file must be whole.
    fn entry(&self) -> Option<(PathBuf, Value)> {
        let files = std::fs::read_dir(self.cache()).ok()?.map(|entry| entry.unwrap().path());
        let is_entry = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.ends_with(".json") && !name.ends_with(".provider.json") && !name.starts_with('.')
        };
        let path = files.into_iter().find(is_entry)?;
        let bytes = std::fs::read(&path).unwrap();
        let entry =
            serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("unreadable cache: {error}"));
        Some((path, entry))
    }

    fn expire(&self) {
        let (path, mut entry) = self.entry().unwrap();
        entry["receivedAt"] = json!("2020-01-01T00:00:00Z");
        entry["localExpiry"] = json!("2020-01-01T01:00:00Z");
        std::fs::write(path, entry.to_string()).unwrap();
    }

    /// The provider may still work on a request of the killed process.
    fn wait_for_late_requests(&self) {
        let is_over = |log: &Log| {
            log.connections.iter().all(|each| each.closed)
                && log.requests.iter().all(|each| each.body_state != BodyState::Arriving)
        };
        let what = "the killed process's connections to close";
        let log = wait::blocking(self.provider.issuer.wait_until(what, is_over));
        let is_complete = |each: &&Request| each.path() == "/token" && each.body_state == BodyState::Complete;
        let complete = log.requests.iter().filter(is_complete).count();
        while self.provider.state().forms.len() < complete {
            std::thread::yield_now();
        }
    }

    /// What holds after every kill.
    fn check_after_kill(&self) {
        self.wait_for_late_requests();
        let Ok(files) = std::fs::read_dir(self.cache()) else { return };
        for path in files.map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            assert!(!name.ends_with(".bad"), "a file was set aside: {name}");
            if name.ends_with(".lock") {
                let lock = std::fs::File::open(&path).unwrap();
                let held = rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive);
                held.unwrap_or_else(|error| panic!("a lock stays: {error}"));
            }
            if name.ends_with(".state") {
                let state: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
                assert!(state.is_object());
            }
        }
        self.entry();
        let status = self.command(&["status", "-o", "json"]).output().unwrap();
        let report: Result<Value, _> = serde_json::from_slice(&status.stdout);
        assert!(report.is_ok(), "{}", String::from_utf8_lossy(&status.stderr));
    }
}

/// Moments that are spread over the duration of a run and some more, in a different place every time the test runs.
struct Moments {
    longest: Duration,
    fraction: f64,
}

impl Moments {
    fn new(typical: Duration) -> Self {
        use std::hash::{BuildHasher as _, Hasher as _};
        let random = std::hash::RandomState::new().build_hasher().finish() % 1_000;
        Moments {
            longest: typical.mul_f64(1.3),
            fraction: f64::from(u32::try_from(random).unwrap()) / 1_000.0,
        }
    }

    /// Steps of the golden ratio never cluster.
    fn next(&mut self) -> Duration {
        self.fraction = (self.fraction + 0.618_034).fract();
        self.longest.mul_f64(self.fraction)
    }
}

/// Kills the process after this time; whether it was still running.
fn kill_after(mut child: Child, moment: Duration) -> bool {
    std::thread::sleep(moment); // not synchronisation: the random moment itself
    let was_running = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    child.wait().unwrap();
    was_running
}

fn timed(mut command: Command) -> Duration {
    let start = Instant::now();
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    start.elapsed()
}

fn refresh_rounds(forgives_lost_answers: bool) {
    let setup = Setup::new(forgives_lost_answers);
    let rounds = KILLS * soak::factor();
    timed(setup.password_login());
    setup.expire();
    let mut moments = Moments::new(timed(setup.password_login()));
    let (mut killed, mut renewed, mut lost) = (0, 0, 0);
    for round in 0..rounds {
        setup.expire();
        let before = setup.entry().unwrap().1;
        killed += usize::from(kill_after(setup.password_login().spawn().unwrap(), moments.next()));
        setup.check_after_kill();
        let after = setup.entry().unwrap_or_else(|| panic!("round {round}: the session is gone")).1;
        let is_renewed = after["refreshToken"] != before["refreshToken"];
        renewed += usize::from(is_renewed);
        let is_honoured = setup.provider.state().honours(after["refreshToken"].as_str().unwrap());
        assert!(
            is_honoured || (!is_renewed && !forgives_lost_answers),
            "round {round}: {} is stored and not honoured: {:?}",
            after["refreshToken"],
            setup.provider.state()
        );
        // The next run needs no login if the provider honours what is stored.
        setup.expire();
        let requests = setup.provider.token_requests();
        assert!(setup.password_login().output().unwrap().status.success(), "round {round}");
        let forms = setup.provider.state().forms.clone();
        let new: Vec<_> = forms[requests..].iter().map(|form| form["grant_type"].as_str()).collect();
        let expected: &[&str] = if is_honoured { &["refresh_token"] } else { &["refresh_token", "password"] };
        assert_eq!(new, expected, "round {round}");
        lost += usize::from(!is_honoured);
    }
    eprintln!(
        "{rounds} refreshes (lost answers forgiven: {forgives_lost_answers}): {killed} killed, {renewed} renewed before the kill, \
         {lost} answers lost between provider and disk"
    );
}

// L405, L501, L831, L832, L1315
#[test]
fn refresh_that_is_killed_loses_no_session_that_the_provider_honours() {
    refresh_rounds(false);
}

// L405, L501, L833: with a provider that forgives a lost answer, no session is lost at all.
#[test]
fn refresh_that_is_killed_loses_nothing_at_a_provider_that_forgives_lost_answers() {
    refresh_rounds(true);
}

/// A person who answers a login in a browser, as far as the program lives.
fn answer_in_browser(provider: &LoginProvider, stderr: impl std::io::Read) -> Option<String> {
    person::answer(provider, &person::start_link(stderr)?)
}

// L405, L501, L524, L913, L1315
#[test]
fn login_that_is_killed_leaves_no_session_or_a_whole_one() {
    let setup = Setup::new(false);
    let rounds = KILLS * soak::factor();
    let spawn = || {
        let mut command = setup.login(&["--grant-type=authcode", "--skip-open-browser"]);
        command.spawn().unwrap()
    };
    let start = Instant::now();
    let mut child = spawn();
    answer_in_browser(&setup.provider, child.stderr.take().unwrap()).unwrap();
    assert!(child.wait().unwrap().success());
    let mut moments = Moments::new(start.elapsed());
    let (mut killed, mut stored) = (0, 0);
    for round in 0..rounds {
        remove_entry(&setup.cache());
        let mut child = spawn();
        let stderr = child.stderr.take().unwrap();
        let is_killed = std::thread::scope(|scope| {
            let person = scope.spawn(|| answer_in_browser(&setup.provider, stderr));
            let is_killed = kill_after(child, moments.next());
            let _ = person.join().unwrap();
            is_killed
        });
        killed += usize::from(is_killed);
        setup.check_after_kill();
        if let Some((_, entry)) = setup.entry() {
            stored += 1;
            assert!(setup.provider.state().honours(entry["refreshToken"].as_str().unwrap()), "round {round}");
            let before = setup.provider.token_requests();
            let output = setup.login(&["--prompt-when=never"]).output().unwrap();
            assert!(output.status.success(), "round {round}: {}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(setup.provider.token_requests(), before, "it is fresh");
        }
    }
    // The last one is not killed: nothing that the others left behind keeps a person from logging in.
    remove_entry(&setup.cache());
    let mut child = spawn();
    answer_in_browser(&setup.provider, child.stderr.take().unwrap()).unwrap();
    assert!(child.wait().unwrap().success());
    eprintln!("{rounds} logins: {killed} killed, {stored} stored before the kill");
}

fn remove_entry(cache: &Path) {
    for file in std::fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".json") && !name.ends_with(".provider.json") {
            std::fs::remove_file(file).unwrap();
        }
    }
}
