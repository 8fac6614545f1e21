//! Attacks on `navicert login` that need a process of its own: another user's requests, core files, other people's files in the cache
//! folder, and many processes that wait.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests, which run the program itself"
)]

#[path = "login_support/person.rs"]
mod person;

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use navicert_testkit::services::login_provider::CLIENT;
use navicert_testkit::{LoginProvider, Program, report};

/// Requests of the other user.
const REQUESTS: usize = 1_000;

struct Setup {
    dir: tempfile::TempDir,
    provider: LoginProvider,
}

impl Setup {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let provider = LoginProvider::start(dir.path());
        std::fs::write(dir.path().join("password"), "canary-password\n").unwrap();
        Setup { dir, provider }
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    fn selection(&self) -> Vec<String> {
        vec![
            format!("--oidc-issuer-url={}", self.provider.issuer.issuer_url()),
            format!("--oidc-client-id={CLIENT}"),
            format!("--certificate-authority={}", self.provider.ca_file.display()),
            format!("--token-cache-dir={}", self.cache().display()),
        ]
    }

    /// `program ARGUMENTS navicert login FLAGS`.
    fn command(&self, program: &str, arguments: &[&str], flags: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).args(self.selection()).args(flags);
        command
            .env_clear()
            .env("HOME", self.dir.path())
            .env("PATH", "/usr/bin:/bin")
            .current_dir(self.dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn password_login(&self) -> Command {
        let file = format!("--password-file={}", self.dir.path().join("password").display());
        self.command(NAVICERT, &["login"], &["--username=ann", &file])
    }

    fn logged_in(&self) {
        let output = self.password_login().output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The files of the cache whose names end like this.
    fn files(&self, end: &str) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.cache()).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.to_str().unwrap().ends_with(end)).collect()
    }

    /// Makes every token old.
    fn expire(&self) {
        for path in
            self.files(".json").into_iter().filter(|path| !path.to_str().unwrap().ends_with(".provider.json"))
        {
            let mut entry: serde_json::Value =
                serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            for (name, time) in
                [("receivedAt", "2020-01-01T00:00:00Z"), ("localExpiry", "2020-01-01T01:00:00Z")]
            {
                entry.as_object_mut().unwrap().insert(name.to_owned(), time.into());
            }
            std::fs::write(path, entry.to_string()).unwrap();
        }
    }
}

const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");
const WITHOUT_BROWSER: [&str; 2] = ["--grant-type=authcode", "--skip-open-browser"];

/// A login that waits for its answer, and its start link.
fn waiting_login(mut command: Command) -> (Child, String) {
    let mut child = command.spawn().unwrap();
    let start = person::start_link(child.stderr.take().unwrap()).unwrap_or_else(|| panic!("no start link"));
    (child, start)
}

// L903, L1301, L1310: LA9 of the specification.
#[test]
fn thousand_requests_of_another_user_do_not_disturb_a_login() {
    let as_other = ["--reuid=65534", "--clear-groups", "--"];
    let can_change_user = Program::new("setpriv").arguments(as_other).arguments(["true"]).run();
    if !can_change_user.is_ok_and(|outcome| outcome.code() == Some(0)) {
        return report::skipped("login by another user", "needs root and setpriv");
    }
    let setup = Setup::new();
    let (child, start) = waiting_login(setup.command(NAVICERT, &["login"], &WITHOUT_BROWSER));
    let (host, path) = start.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let (address, port) = host.split_once(':').unwrap();
    let script = format!(
        "trap '' PIPE; answered=0\n\
         for ((i = 0; i < {REQUESTS}; i++)); do\n\
           case $((i % 3)) in 0) path=/{path};; 1) path='/callback?error=access_denied&state=x';; *) path='/callback?code=evil&state=x';; esac\n\
           if exec 3<>/dev/tcp/{address}/{port}; then\n\
             printf 'GET %s HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n' \"$path\" >&3 2>/dev/null\n\
             if read -r line <&3; then answered=$((answered + 1)); fi; exec 3>&-\n\
           fi\n\
         done 2>/dev/null\n\
         echo \"answered $answered\""
    );
    let outcome =
        Program::new("setpriv").arguments(as_other).arguments(["bash", "-c", &script]).run().unwrap();
    assert_eq!(String::from_utf8_lossy(&outcome.stdout), "answered 0\n", "closed without an answer");
    let page = person::answer(&setup.provider, &start).unwrap();
    assert!(page.contains("Logged in"), "{page}");
    assert!(child.wait_with_output().unwrap().status.success());
}

// L1317
#[test]
fn aborted_login_leaves_no_core_file() {
    const UNLIMITED: [&str; 3] = ["-c", "ulimit -c unlimited && exec \"$0\" \"$@\"", "placeholder"];
    let dump = |arguments: &[&str]| {
        let mut command = Command::new("/bin/sh");
        let dir = tempfile::tempdir().unwrap();
        command.args(arguments).current_dir(dir.path()).stderr(Stdio::null()).status().unwrap().core_dumped()
    };
    if !dump(&["-c", "ulimit -c unlimited && kill -ABRT $$"]) {
        return report::skipped("core files", "this system writes none");
    }
    let setup = Setup::new();
    let [flag, script, _] = UNLIMITED;
    let command = setup.command("/bin/sh", &[flag, script, NAVICERT, "login"], &WITHOUT_BROWSER);
    let (mut child, _) = waiting_login(command);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::ABORT).unwrap();
    let status = child.wait().unwrap();
    assert_eq!((status.signal(), status.core_dumped()), (Some(6), false));
}

// L404, L1320
#[test]
fn provider_documents_behind_a_link_are_not_used() {
    let setup = Setup::new();
    setup.logged_in();
    let documents = setup.files(".provider.json").remove(0);
    let evil = setup.dir.path().join("evil.json");
    std::fs::rename(&documents, &evil).unwrap();
    let before = std::fs::read(&evil).unwrap();
    std::os::unix::fs::symlink(&evil, &documents).unwrap();
    let requests = setup.provider.issuer.count(setup.provider.issuer.discovery_path());
    setup.expire();
    setup.logged_in();
    assert!(setup.provider.issuer.count(setup.provider.issuer.discovery_path()) > requests, "fetched again");
    assert!(!documents.symlink_metadata().unwrap().is_symlink(), "replaced");
    assert_eq!(std::fs::read(evil).unwrap(), before, "not written through the link");
}

// L405, L1104, L1316
#[test]
fn tokens_are_in_owner_only_files_and_in_none_after_a_logout() {
    let setup = Setup::new();
    setup.logged_in();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&setup.cache()), 0o700);
    assert!(setup.files("").iter().all(|path| mode(path) == 0o600), "{:?}", setup.files(""));
    let tokens = setup.provider.state().sent.clone();
    let holds_token = |path: &PathBuf| {
        let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        tokens.iter().any(|token| text.contains(token.as_str()))
    };
    assert_eq!(setup.files("").into_iter().filter(holds_token).count(), 1);
    let output = setup.command(NAVICERT, &["logout"], &["--username=ann"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(setup.files("").into_iter().filter(holds_token).count(), 0);
}

// L503, L505, L1322
#[test]
fn process_that_waits_sleeps_and_uses_little_memory() {
    const MAX_WAITING_KIB: u64 = 8 << 10;
    let setup = Setup::new();
    let (mut holder, _) = waiting_login(setup.command(NAVICERT, &["login"], &WITHOUT_BROWSER));
    let mut waiter = setup.command(NAVICERT, &["login"], &WITHOUT_BROWSER).spawn().unwrap();
    let field = |name: &str| -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", waiter.id())).unwrap();
        let value = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .unwrap()
            .trim()
            .to_owned();
        value.split(' ').next().unwrap().parse().unwrap()
    };
    // It sleeps only while it waits for the lock.
    while field("voluntary_ctxt_switches") < 10 {
        std::thread::yield_now();
    }
    assert!(field("RssAnon") < MAX_WAITING_KIB, "{} KiB", field("RssAnon"));
    assert_eq!(field("Threads"), 1);
    for child in [&mut waiter, &mut holder] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
