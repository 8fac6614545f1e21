//! Confinement of a server as a process: what a request makes it try is refused by the kernel.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests; a broken set-up should stop the test")]

use std::fs;
use std::path::{Path, PathBuf};

use http::Request;
use navicert_testkit::cli::program::Running;
use navicert_testkit::{Ca, HttpClient, Program, report};

/// A directory that the server may read and one that it may not, and the running server.
struct Confined {
    running: Running,
    address: String,
    /// What the server said of each measure.
    report: String,
    own: tempfile::TempDir,
    other: tempfile::TempDir,
}

impl Confined {
    async fn start(mode: &str) -> Self {
        let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(own.path().join("log")).unwrap();
        for dir in [own.path(), other.path()] {
            fs::write(dir.join("file"), "secret").unwrap();
            navicert_testkit::cli::program::copy_executable(a_library(), dir.join("library.so")).unwrap();
        }
        let running = Program::new(env!("CARGO_BIN_EXE_navicert-confined-probe"))
            .arguments([
                Path::new(mode),
                own.path().join("file").as_path(),
                &own.path().join("log/audit.log"),
            ])
            .start_running()
            .unwrap();
        let said = running.wait_for_output(".\n").await;
        let (report, address) = said.split_once("listening on ").unwrap();
        let address = address.trim_end().trim_end_matches('.').to_owned();
        Confined { running, address, report: report.to_owned(), own, other }
    }

    /// What the server answers when it is told to try this.
    async fn attempt(&self, what: &str, path: &Path) -> String {
        let url = format!("http://{}/{what}", self.address);
        let request = Request::get(url).header("path", path.to_str().unwrap()).body(Default::default());
        let reply = HttpClient::trusting(&Ca::new("unused")).send(request.unwrap()).await.unwrap();
        reply.text().to_owned()
    }

    fn reported(&self, measure: &str) -> &str {
        let line = self.report.lines().find_map(|line| line.strip_prefix(&format!("{measure}: ")));
        line.unwrap()
    }

    /// A field of `/proc/PID/status` for every thread.
    fn of_threads(&self, field: &str) -> Vec<String> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.running.pid())).unwrap();
        let status = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("status")).unwrap());
        let field = format!("{field}:");
        let value =
            |text: String| text.lines().find_map(|line| line.strip_prefix(&field)).unwrap().trim().to_owned();
        status.map(value).collect()
    }
}

/// A library that this process uses too: it can be loaded.
fn a_library() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths = maps.lines().filter_map(|line| line.split_whitespace().last());
    PathBuf::from(paths.find(|path| path.contains("libgcc_s")).unwrap())
}

/// Without confinement everything works: the other tests are about confinement and nothing else.
#[tokio::test]
async fn unconfined_server_can_do_everything() {
    let server = Confined::start("free").await;
    let other = server.other.path();
    assert_eq!(server.attempt("read", &other.join("file")).await, "done");
    assert_eq!(server.attempt("create", &other.join("new")).await, "done");
    assert_eq!(server.attempt("execute", Path::new("/bin/true")).await, "done");
    assert_eq!(server.attempt("listen", Path::new("")).await, "done");
    let loaded = server.attempt("load", &other.join("library.so")).await;
    assert!(loaded.ends_with("not a PKCS#11 module"), "it was loaded, and lacks a function: {loaded}");
}

#[tokio::test]
async fn confined_server_cannot_execute_or_load_and_reads_its_own_files_only() {
    let server = Confined::start("confined").await;
    let (own, other) = (server.own.path(), server.other.path());
    assert_eq!(server.reported("no_new_privs"), "enforced");
    assert_eq!(server.reported("seccomp"), "enforced");
    assert_eq!(server.reported("threads"), "Some(0)");
    // Every thread, not only the first.
    let threads = server.of_threads("NoNewPrivs");
    assert!(threads.len() > 2 && threads.iter().all(|value| value == "1"), "{threads:?}");
    assert!(server.of_threads("Seccomp").iter().all(|mode| mode == "2"));

    let executed = server.attempt("execute", Path::new("/bin/true")).await;
    assert!(executed.contains("Operation not permitted"), "{executed}");
    // It may read this one: that is not enough to map it as code.
    let loaded = server.attempt("load", &own.join("library.so")).await;
    assert!(loaded.ends_with("failed to map segment from shared object"), "{loaded}");

    assert_eq!(server.attempt("read", &own.join("file")).await, "done");
    assert_eq!(server.attempt("create", &own.join("log/audit.log")).await, "done");
    let landlock = server.reported("landlock");
    if landlock.starts_with("ABI ") {
        for (what, path) in [
            ("read", other.join("file")),
            ("read", PathBuf::from("/proc/self/environ")),
            ("create", other.join("new")),
            ("create", own.join("new")),
            ("load", other.join("library.so")),
        ] {
            let answer = server.attempt(what, &path).await;
            assert!(answer.contains("Permission denied"), "{what} {}: {answer}", path.display());
        }
        // A file that takes the place of another has its name, and is another file.
        fs::write(own.join("file.new"), "new").unwrap();
        fs::rename(own.join("file.new"), own.join("file")).unwrap();
        assert_eq!(server.attempt("read", &own.join("file")).await, "done");
        if landlock.trim_start_matches("ABI ").parse::<u32>().unwrap() >= 4 {
            assert!(server.attempt("listen", Path::new("")).await.contains("Permission denied"));
        }
    } else {
        // Not silently: the reason is the kernel's.
        assert!(landlock.starts_with("unavailable: the kernel"), "{landlock}");
        report::skipped("landlock", landlock);
        assert_eq!(server.attempt("read", &other.join("file")).await, "done");
    }
}

#[tokio::test]
async fn server_with_a_plugin_can_start_it() {
    let server = Confined::start("plugin").await;
    assert_eq!(server.reported("landlock"), "off: credential plugin `probe` would be confined too");
    assert_eq!(
        server.reported("seccomp"),
        "enforced, except for starting programs: credential plugin `probe`"
    );
    assert_eq!(server.attempt("execute", Path::new("/bin/true")).await, "done");
    assert!(server.of_threads("Seccomp").iter().all(|mode| mode == "2"));
    assert!(server.of_threads("NoNewPrivs").iter().all(|value| value == "1"));
}
