//! `make demo`: what navicert does, told in a minute. Everything is made here, in a temporary folder; no cluster is needed,
//! nothing is configured, nothing stays behind. Each scene runs the real binary and shows what it prints.
//!
//! `demo --software-signer` tells the scene about keys alone, as it is told where SoftHSM is not installed.

#![expect(clippy::print_stdout, reason = "telling the story is all this program does")]

#[path = "demo/client.rs"]
mod client;
#[path = "demo/gateway.rs"]
mod gateway;
#[path = "demo/image.rs"]
mod image;
#[path = "demo/key.rs"]
mod key;
#[path = "demo/proxy.rs"]
mod proxy;
#[path = "demo/token.rs"]
mod token;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use navicert_testkit::Program;

const KUBECONFIG: &str = "work.yaml:lab.yaml";

const WORK: &str = "\
apiVersion: v1
kind: Config
clusters:
- name: prod
  cluster:
    server: https://prod.example:6443
users:
- name: ann
  user:
    token: ey.this-is-a-secret
contexts:
- name: prod
  context:
    cluster: prod
    user: ann
current-context: prod
";

const LAB: &str = "\
apiVersion: v1
kind: Config
clusters:
- name: lab
  cluster:
    server: https://127.0.0.1:6443
    proxy_url: http://127.0.0.1:3128
users:
- name: plug
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: cloud-login
contexts:
- name: lab
  context:
    cluster: lab
    user: plug
";

const CLAIMS: &str = r#"{"sub": "ann", "groups": ["dev", "admin"]}"#;

fn main() -> ExitCode {
    match tell() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            println!("\nthe demo stops here: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn tell() -> Result<(), String> {
    let stage = Stage::set()?;
    if std::env::args().any(|argument| argument == "--software-signer") {
        return key::tell(&stage, false);
    }
    println!("navicert: every Kubernetes credential, on every side\n\n$ export KUBECONFIG={KUBECONFIG}\n");

    stage.scene(
        "Two kubeconfig files, one view. The first file that defines a name wins, and secrets stay hidden.",
    );
    stage.run(&["kubeconfig", "view"], 0)?;

    stage.scene("Is this context usable? Everything that is wrong, where it is, and what to do about it.");
    stage.run(&["kubeconfig", "check", "--context", "lab"], 1)?;

    stage.scene("The same question for a machine.");
    stage.run(&["kubeconfig", "check", "--context", "prod", "-o", "json"], 0)?;

    stage.scene("A rule for tokens, before it meets one: the trap, and then the value of every part.");
    stage.run(&["cel", "check", "claims.groups.exists(g, g == 'admin')"], 1)?;
    let rule = "dyn(claims.groups).exists(g, g == 'admin')";
    stage.run(&["cel", "eval", "--claims", "claims.json", "--trace", rule], 0)?;

    token::tell(&stage)?;
    client::tell(&stage)?;
    gateway::tell(&stage)?;
    key::tell(&stage, true)?;
    proxy::tell(&stage)?;
    image::tell(&stage)?;

    println!("That is all so far. `navicert --help` lists the verbs, docs/ explains them.");
    Ok(())
}

/// Debian's kubectl, where `make tools` puts it.
fn kubectl() -> Option<PathBuf> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/usr/bin");
    tools.join("kubectl").is_file().then_some(tools)
}

/// A temporary folder with the story's files, and the binary.
struct Stage {
    folder: tempfile::TempDir,
    navicert: PathBuf,
    bold: &'static str,
    plain: &'static str,
}

impl Stage {
    fn set() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
        for (name, text) in [("work.yaml", WORK), ("lab.yaml", LAB), ("claims.json", CLAIMS)] {
            write(&folder.path().join(name), text)?;
        }
        let (bold, plain) =
            if std::io::stdout().is_terminal() { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
        Ok(Stage { folder, navicert: beside("navicert")?, bold, plain })
    }

    /// Replaces a file in one step, as editors do: nobody who watches it sees half of it.
    fn replace(&self, name: &str, text: &str) -> Result<(), String> {
        let new = self.folder.path().join(format!("{name}.new"));
        write(&new, text)?;
        std::fs::rename(new, self.folder.path().join(name))
            .map_err(|error| format!("cannot replace {name}: {error}"))
    }

    fn scene(&self, title: &str) {
        println!("{}# {title}{}", self.bold, self.plain);
    }

    /// Runs navicert, shows what it prints, and checks that it exits as the story says.
    fn run(&self, arguments: &[&str], expected: i32) -> Result<(), String> {
        self.run_with(KUBECONFIG, arguments, expected)
    }

    /// The same with another kubeconfig.
    fn run_with(&self, kubeconfig: &str, arguments: &[&str], expected: i32) -> Result<(), String> {
        let quoted = arguments.iter().map(|word| match (word.contains(' '), word.contains('$')) {
            (_, true) => format!("'{word}'"),
            (true, false) => format!("\"{word}\""),
            (false, false) => (*word).to_owned(),
        });
        println!("$ navicert {}", quoted.collect::<Vec<_>>().join(" "));
        self.show_with(kubeconfig, &Program::new(&self.navicert).arguments(arguments), expected)
    }

    /// Shows a command line, and what this program prints.
    fn show(&self, line: &str, program: &Program, expected: i32) -> Result<(), String> {
        println!("$ {line}");
        self.show_output(program, expected)
    }

    /// Runs a program in the story's folder with the story's environment.
    fn show_output(&self, program: &Program, expected: i32) -> Result<(), String> {
        self.show_with(KUBECONFIG, program, expected)
    }

    fn show_with(&self, kubeconfig: &str, program: &Program, expected: i32) -> Result<(), String> {
        let own = self.folder.path().join("bin");
        let tools = kubectl().unwrap_or_default();
        let path = format!("{}:{}:/usr/local/bin:/usr/bin:/bin", own.display(), tools.display());
        let outcome = program
            .clone()
            .own_environment()
            .variable("PATH", path)
            .variable("HOME", self.folder.path())
            .variable("KUBECONFIG", kubeconfig)
            .variable("NAVICERT_IMAGE_CONFIG", "providers.yaml")
            .variable("NAVICERT_IMAGE_BIN_DIR", "bin")
            .variable(if self.bold.is_empty() { "NO_COLOR" } else { "CLICOLOR_FORCE" }, "1")
            .directory(self.folder.path())
            .merged()
            .run()
            .map_err(|error| format!("cannot run `{program}`: {error}"))?;
        let printed = String::from_utf8_lossy(&outcome.stdout);
        if !printed.is_empty() {
            println!("{printed}");
        }
        match outcome.code() {
            Some(code) if code == expected => Ok(()),
            code => Err(format!("exit code {code:?} where the story has {expected}")),
        }
    }
}

/// A binary that lies beside this one: `make demo` builds them all.
fn beside(name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find myself: {error}"))?;
    let binary = own.with_file_name(name);
    if binary.is_file() {
        Ok(binary)
    } else {
        Err(format!("{} is not there; run `make demo`, which builds it", binary.display()))
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
