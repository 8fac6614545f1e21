//! Secrets that a command, or another user, must not be able to read.

use std::fs;

use navicert_testkit::cli::process::{Process, contains};
use navicert_testkit::cli::program::copy_executable;
use navicert_testkit::cli::tools;
use navicert_testkit::{Canaries, report, wait};

use super::setup::{Setup, kubectl, text};

// Memory, environment, temporary files and arguments of the command hold no key.
#[test]
fn key_is_not_accessible_to_the_command() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    let pod = setup.api.add_pod("web", false);
    let mut canaries = Canaries::new();
    let key = setup.ann.key_der().to_vec();
    canaries.adopt("the key", &key[key.len() - 40..]);
    let running = setup.kubectl(&[], &["get", "pods", "--watch", "-o", "name"]).start_running().unwrap();
    wait::blocking(pod.events.wait_for_opened(1));
    let child = child_of(running.pid());
    canaries.assert_absent("the environment", &child.environment().unwrap());
    canaries.assert_absent("the arguments", &child.arguments().unwrap());
    for dir in setup.left_behind() {
        for entry in fs::read_dir(dir).unwrap() {
            canaries.assert_absent("a file", &fs::read(entry.unwrap().path()).unwrap());
        }
    }
    let memory = child.memory().unwrap();
    assert!(memory.len() > 1 << 20, "only {} bytes of memory were read", memory.len());
    assert!(contains(&memory, b"KUBECONFIG="), "the memory that was read is not the command's");
    assert!(!contains(&memory, &key[key.len() - 40..]));
    running.signal("TERM");
}

// A command runs as the same user; it still cannot read navicert's memory.
#[test]
fn memory_is_not_readable_by_other_processes_of_the_user() {
    let Some(user) = Other::find() else { return };
    let setup = Setup::new();
    user.own(&setup);
    // `$PPID` is navicert.
    let script = "cat /proc/$PPID/environ /proc/$PPID/maps >/dev/null 2>&1 && echo readable || echo closed";
    let outcome = user.run(&setup, &["run", "--", "/bin/sh", "-c", script]);
    assert_eq!(text(&outcome.stdout), "closed\n", "{}", text(&outcome.stderr));
}

// A second user of the machine cannot use the gateway.
#[test]
fn other_user_cannot_use_the_gateway() {
    let Some(_) = tools::kubectl() else { return };
    let Some(other) = Other::find() else { return };
    let setup = Setup::new();
    let running = setup
        .shell("cp $KUBECONFIG stolen; chmod 644 stolen; echo $KUBECONFIG; echo up; exec sleep 60")
        .start_running()
        .unwrap();
    let told = wait::blocking(running.wait_for_output("up\n"));
    let own = told.lines().next().unwrap();
    super::setup::set_mode(setup.dir.path(), 0o755);
    let read = other.command(&["cat", own]).run().unwrap();
    assert_ne!(read.code(), Some(0), "the file is its owner's");
    // Even with a copy of the kubeconfig, the connection is rejected before a byte is read.
    let stolen = setup.dir.path().join("stolen");
    let kubectl = kubectl().canonicalize().unwrap();
    let program =
        other.command(&[kubectl.to_str().unwrap(), "get", "--raw", "/version", "--request-timeout=5s"]);
    let theirs = program.variable("KUBECONFIG", &stolen).variable("HOME", "/nonexistent").run().unwrap();
    assert_ne!(theirs.code(), Some(0), "{}", text(&theirs.stdout));
    assert_eq!(setup.api.requests().len(), 0);
    // The owner gets through with the same copy.
    let ours = navicert_testkit::Program::new(&kubectl).arguments(["get", "--raw", "/version"]);
    let ours = ours.variable("KUBECONFIG", &stolen).run().unwrap();
    assert_eq!(ours.code(), Some(0), "{}", text(&ours.stderr));
    running.signal("TERM");
}

/// Another user of this machine.
pub(crate) struct Other;

impl Other {
    pub(crate) fn find() -> Option<Self> {
        let me = navicert_testkit::Program::new("id").arguments(["-u"]).run().unwrap();
        let other_user = navicert_testkit::Program::new("setpriv")
            .arguments(["--reuid=nobody", "--clear-groups", "true"])
            .run();
        if text(&me.stdout).trim() == "0" && other_user.is_ok_and(|outcome| outcome.code() == Some(0)) {
            return Some(Other);
        }
        report::skipped("root", "only root can run a program as another user");
        None
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> navicert_testkit::Program {
        navicert_testkit::Program::new("setpriv")
            .arguments(["--reuid=nobody", "--clear-groups", "--"])
            .arguments(arguments)
            .directory(std::path::Path::new("/"))
    }

    /// Gives the directory to the other user.
    pub(crate) fn own(&self, setup: &Setup) {
        let chown =
            navicert_testkit::Program::new("chown").arguments(["-R", "nobody"]).arguments([setup.dir.path()]);
        assert_eq!(chown.run().unwrap().code(), Some(0));
    }

    /// navicert as the other user, by a copy it can reach.
    fn run(&self, setup: &Setup, arguments: &[&str]) -> navicert_testkit::cli::program::Outcome {
        self.navicert(setup, arguments)
            .variable("XDG_RUNTIME_DIR", setup.dir.path().join("runtime"))
            .run()
            .unwrap()
    }

    /// The same, without a runtime directory.
    pub(crate) fn navicert(&self, setup: &Setup, arguments: &[&str]) -> navicert_testkit::Program {
        let copy = setup.dir.path().join("navicert");
        if !copy.exists() {
            copy_executable(env!("CARGO_BIN_EXE_navicert"), &copy).unwrap();
            super::setup::set_mode(&copy, 0o755);
        }
        self.command(&[&[copy.to_str().unwrap()], arguments].concat())
            .own_environment()
            .variable("PATH", "/usr/bin:/bin")
            .variable("HOME", setup.dir.path())
            .variable("KUBECONFIG", setup.dir.path().join("config"))
    }
}

/// The command that navicert runs: its child that is not the guard.
fn child_of(pid: u32) -> Process {
    let is_guard = |child: &Process| contains(&child.arguments().unwrap_or_default(), b"gateway-guard");
    Process(pid).children().into_iter().find(|child| !is_guard(child)).unwrap()
}
