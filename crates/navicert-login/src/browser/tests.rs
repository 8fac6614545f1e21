//! Opening a browser: what the program gets, and what it does not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::*;

const URL: &str = "http://127.0.0.1:8000/start/AAAAAAAAAAAAAAAAAAAAAA";

struct Desk {
    directory: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        Desk { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn program(&self, name: &str, script: &str) -> &Self {
        fs::write(self.path(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn fifo(&self, name: &str) -> PathBuf {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let path = self.path(name);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        path
    }

    fn browser(&self, variables: &[(&str, &str)]) -> Browser {
        let path = format!("{}:/usr/bin:/bin", self.directory.path().display());
        let own = [("PATH", path.as_str()), ("DISPLAY", ":0"), ("KUBERNETES_EXEC_INFO", "{}")];
        let environment = own.iter().chain(variables).copied().collect();
        let context = BrowserContext { command: None, environment, platform: Platform::Unix };
        Browser::detect(&context).unwrap().unwrap()
    }
}

fn open(browser: &Browser) -> Result<(), OpenError> {
    browser.open_within(&URL.parse().unwrap(), Duration::from_secs(60))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn opener_gets_the_start_link_and_nothing_else() {
    // L723, L724
    let desk = Desk::new();
    let script = format!("echo \"$# $1 [$KUBERNETES_EXEC_INFO]\" >{}", desk.path("seen").display());
    desk.program("xdg-open", &script);
    open(&desk.browser(&[])).unwrap();
    assert_eq!(read(&desk.path("seen")), format!("1 {URL} []\n"));
}

#[test]
fn next_program_is_tried_if_one_fails_or_is_missing() {
    // L722, L723
    let desk = Desk::new();
    let note = |name: &str| format!("echo {name} >>{}", desk.path("seen").display());
    desk.program("broken", &format!("{}; exit 4", note("broken")));
    desk.program("w3m", &note("w3m"));
    desk.program("good", &note("good"));
    open(&desk.browser(&[("BROWSER", "missing:w3m:broken:good")])).unwrap();
    assert_eq!(read(&desk.path("seen")), "broken\ngood\n");
}

#[test]
fn failures_name_the_program() {
    let desk = Desk::new();
    desk.program("broken", "exit 4");
    let environment = [("PATH", desk.directory.path().to_str().unwrap()), ("BROWSER", "broken")];
    let context = |variables: &[(&str, &str)]| BrowserContext {
        command: None,
        environment: variables.iter().copied().collect(),
        platform: Platform::Unix,
    };
    let failed = open(&Browser::detect(&context(&environment)).unwrap().unwrap()).unwrap_err();
    assert_eq!(failed.to_string(), "`broken` failed to open a browser: exit code 4");
    let none = [("PATH", ""), ("BROWSER", "a:b")];
    let failed = open(&Browser::detect(&context(&none)).unwrap().unwrap()).unwrap_err();
    assert_eq!(failed.to_string(), "no program to open a browser was found (tried a, b)");
}

#[test]
#[cfg(target_os = "linux")]
fn browser_that_stays_holds_neither_lock_nor_port() {
    // L502, L723
    let desk = Desk::new();
    let fifo = desk.fifo("fifo");
    desk.program("xdg-open", &format!("echo $$ >{}; exec sleep 600", fifo.display()));
    let lock = fs::File::create(desk.path("K.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let browser = desk.browser(&[]);
    browser.open_within(&URL.parse().unwrap(), Duration::ZERO).unwrap();
    let pid: i32 = read(&fifo).trim().parse().unwrap();
    // Its own descriptors are looked at: whether the lock is free would also depend on programs that other tests start.
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let open: Vec<PathBuf> = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok()).collect();
    let streams: Vec<_> =
        (0..3).map(|stream| fs::read_link(format!("/proc/{pid}/fd/{stream}")).unwrap()).collect();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    drop((lock, listener));
    let is_ours = |path: &PathBuf| path.ends_with("K.lock") || path.to_string_lossy().starts_with("socket:");
    assert!(!open.iter().any(is_ours), "{open:?}");
    assert!(streams.iter().all(|stream| stream == Path::new("/dev/null")), "{streams:?}");
}
