//! What a client waits for before every request of a command: a cached `navicert login`, and a kept answer of another plugin.
//! Whole processes, from start to end.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use navicert_testkit::LoginProvider;
use navicert_testkit::services::login_provider::CLIENT;
use navicert_types::{Clock as _, SystemClock};
use tempfile::TempDir;

use crate::needs::{self, Need};
use crate::race::{Contest, Fault, Race, Shared};

const INFO: &str = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false}}"#;
const PASSWORD: &str = "a-password";

pub(crate) fn races() -> Vec<Race> {
    let setup = Shared::new(Setup::new);
    let (first, second, third) = (setup.clone(), setup.clone(), setup);
    let navicert = Need::Built("navicert");
    vec![
        Race::new("login: cached call, process included / kubelogin", 0.6, move || {
            let setup = first.get()?;
            setup.log_in(Program::Kubelogin)?;
            Ok(Contest::time(setup.contestant(Program::Login), setup.contestant(Program::Kubelogin)))
        })
        .needs(&[navicert, Need::Installed("kubelogin")]),
        Race::new("login: cached call, process included / navicert --version", 1.3, move || {
            let setup = second.get()?;
            Ok(Contest::time(setup.contestant(Program::Login), setup.contestant(Program::Version)))
        })
        .needs(&[navicert]),
        Race::new("exec-plugin: kept answer, process included / cached navicert login", 1.3, move || {
            let setup = third.get()?;
            Ok(Contest::time(setup.contestant(Program::Keep), setup.contestant(Program::Login)))
        })
        .needs(&[navicert]),
    ]
}

/// What is run.
#[derive(Clone, Copy)]
enum Program {
    Login,
    Kubelogin,
    Version,
    Keep,
}

/// A provider, a home with a session of each program, and a plugin whose answer is kept.
struct Setup {
    provider: LoginProvider,
    dir: TempDir,
}

impl Setup {
    fn new() -> Result<Self, Fault> {
        let dir = tempfile::tempdir()?;
        let provider = LoginProvider::start(dir.path());
        fs::write(dir.path().join("password"), PASSWORD)?;
        let run = dir.path().join("run");
        fs::create_dir(&run)?;
        fs::set_permissions(&run, fs::Permissions::from_mode(0o700))?;
        let setup = Setup { provider, dir };
        setup.log_in(Program::Login)?;
        setup.write_plugin()?;
        setup.run(Program::Keep)?;
        // Later runs must not need the plugin.
        fs::write(setup.dir.path().join("answer"), "")?;
        Ok(setup)
    }

    /// Gets a session with a password, once.
    fn log_in(&self, program: Program) -> Result<(), Fault> {
        let mut command = self.command(program)?;
        match program {
            Program::Kubelogin => command.arg(format!("--password={PASSWORD}")).arg("--grant-type=password"),
            _ => command.arg(format!("--password-file={}", self.path("password").display())),
        };
        answered(program, &mut command)
    }

    /// A plugin that prints a credential of the size that clouds give.
    fn write_plugin(&self) -> Result<(), Fault> {
        let expires = SystemClock.now().checked_add(std::time::Duration::from_secs(24 * 3600))?;
        let expires = expires.strftime("%Y-%m-%dT%H:%M:%SZ");
        let answer = format!(
            r#"{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"expirationTimestamp":"{expires}","token":"{}"}}}}"#,
            "t".repeat(1200)
        );
        fs::write(self.path("answer"), answer)?;
        let plugin = self.path("plugin");
        fs::write(&plugin, format!("#!/bin/sh\nexec cat '{}'\n", self.path("answer").display()))?;
        Ok(fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755))?)
    }

    fn contestant(self: &Rc<Self>, program: Program) -> impl FnMut() -> Result<(), Fault> + use<> {
        let setup = Rc::clone(self);
        move || setup.run(program)
    }

    fn run(&self, program: Program) -> Result<(), Fault> {
        answered(program, &mut self.command(program)?)
    }

    fn command(&self, program: Program) -> Result<Command, Fault> {
        let path = match program {
            Program::Kubelogin => needs::installed("kubelogin")?,
            _ => needs::built("navicert")?,
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the race is about whole programs, with nothing of ours around them"
        )]
        let mut command = Command::new(path);
        command.env_clear().env("HOME", self.dir.path()).env("XDG_RUNTIME_DIR", self.path("run"));
        match program {
            Program::Version => command.arg("--version"),
            Program::Login => {
                command.env("KUBERNETES_EXEC_INFO", INFO).arg("login").args(self.selection("ours"))
            }
            Program::Kubelogin => {
                command.env("KUBERNETES_EXEC_INFO", INFO).arg("get-token").args(self.selection("theirs"))
            }
            // Without the variable: this process is the client of every call, and a client that asks twice was refused.
            Program::Keep => command.args(["exec-plugin", "keep", "--"]).arg(self.path("plugin")),
        };
        Ok(command)
    }

    fn selection(&self, cache: &str) -> [String; 5] {
        [
            format!("--oidc-issuer-url={}", self.provider.issuer.issuer_url()),
            format!("--oidc-client-id={CLIENT}"),
            format!("--certificate-authority={}", self.provider.ca_file.display()),
            format!("--token-cache-dir={}", self.path(cache).display()),
            "--username=ann".to_owned(),
        ]
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::join(self.dir.path(), name)
    }
}

/// Ends the process that keeps the answer.
impl Drop for Setup {
    fn drop(&mut self) {
        if let Ok(path) = needs::built("navicert") {
            #[expect(clippy::disallowed_methods, reason = "after everything is measured")]
            let mut clear = Command::new(path);
            clear.args(["exec-plugin", "keep", "--clear"]).env("XDG_RUNTIME_DIR", self.path("run"));
            let _ = clear.stdout(Stdio::null()).status();
        }
    }
}

/// Runs a program, which has to print a credential, or its version.
fn answered(program: Program, command: &mut Command) -> Result<(), Fault> {
    let outcome = command.stdin(Stdio::null()).output()?;
    let expected: &[u8] = if matches!(program, Program::Version) { b"navicert " } else { b"\"token\":" };
    let printed = outcome.stdout.windows(expected.len()).any(|window| window == expected);
    if outcome.status.success() && printed {
        return Ok(());
    }
    Err(format!("{}: {}", outcome.status, String::from_utf8_lossy(&outcome.stderr)).into())
}
