//! Whole runs of `navicert`: one that only starts and ends, and a diagnosis of a context that works.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::rc::Rc;

use navicert_testkit::{Answer, ApiServer, Ca, Kubeconfig};
use serde_json::json;

use crate::needs::{self, Need};
use crate::race::{Contest, Fault, Race};

pub(super) fn version() -> Race {
    let what = "client: navicert --version, process included / a static Rust program that prints a line";
    let prepare = || {
        let dir = Rc::new(tempfile::tempdir()?);
        let bare = bare_program(dir.path())?;
        let ours = contestant(needs::built("navicert")?, &["--version"], "navicert ", &dir);
        Ok(Contest::time(ours, contestant(bare, &[], "bare ", &dir)))
    };
    Race::new(what, 2.0, prepare).needs(&[Need::Built("navicert"), Need::Installed("rustc")])
}

pub(super) fn doctor() -> Race {
    let what = "client: navicert doctor of a context that works / navicert whoami";
    let prepare = || {
        let cluster = Rc::new(Cluster::start()?);
        let navicert = needs::built("navicert")?;
        let doctor = contestant(navicert.clone(), &["doctor"], "authenticated as `ann`", &cluster);
        Ok(Contest::time(doctor, contestant(navicert, &["whoami"], "username  ann", &cluster)))
    };
    Race::new(what, 1.5, prepare).needs(&[Need::Built("navicert")])
}

/// Runs a program whose output has to contain `expected`; `setup` lives as long as the contestant.
fn contestant<S: Setup>(
    program: PathBuf,
    arguments: &'static [&'static str],
    expected: &'static str,
    setup: &Rc<S>,
) -> impl FnMut() -> Result<(), Fault> + use<S> {
    let setup = Rc::clone(setup);
    move || {
        #[expect(
            clippy::disallowed_methods,
            reason = "the race is about whole programs, with nothing of ours around them"
        )]
        let mut command = std::process::Command::new(&program);
        let home = setup.home();
        command.args(arguments).env_clear().env("HOME", home).env("KUBECONFIG", home.join("config"));
        let outcome = command.stdin(Stdio::null()).output()?;
        let printed = String::from_utf8_lossy(&outcome.stdout);
        let is_right = outcome.status.success() && printed.contains(expected);
        if is_right { Ok(()) } else { Err(format!("{}: {printed}", outcome.status).into()) }
    }
}

/// What a contestant needs while it runs.
trait Setup: 'static {
    fn home(&self) -> &Path;
}

impl Setup for tempfile::TempDir {
    fn home(&self) -> &Path {
        self.path()
    }
}

/// The least that a program can do and still print its name.
fn bare_program(dir: &Path) -> Result<PathBuf, Fault> {
    let (source, program) = (dir.join("bare.rs"), dir.join("bare"));
    fs::write(&source, "fn main() {\n    println!(\"bare 0.1.0\");\n}\n")?;
    #[expect(clippy::disallowed_methods, reason = "a compiler, before anything is measured")]
    let mut compiler = std::process::Command::new(needs::installed("rustc")?);
    compiler.args(["-O", "-C", "target-feature=+crt-static", "-o"]);
    let status = compiler.arg(&program).arg(&source).status()?;
    if status.success() { Ok(program) } else { Err(format!("failed to compile bare.rs: {status}").into()) }
}

/// An API server on loopback, and a directory with the kubeconfig of one of its users.
struct Cluster {
    _api: ApiServer,
    dir: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Result<Self, Fault> {
        let ca = Ca::new("bench");
        let api = ApiServer::start(&ca);
        api.accept_token("a-token-of-some-length", "ann", &["developers"]);
        // Everybody may ask for the version, as in most clusters.
        api.answer("/version", Answer::json(&json!({"major": "1", "minor": "34", "gitVersion": "v1.34.0"})));
        let dir = tempfile::tempdir()?;
        Kubeconfig::new(api.url()).ca(&ca).token("a-token-of-some-length").write(dir.path().join("config"));
        Ok(Cluster { _api: api, dir })
    }
}

impl Setup for Cluster {
    fn home(&self) -> &Path {
        self.dir.path()
    }
}
