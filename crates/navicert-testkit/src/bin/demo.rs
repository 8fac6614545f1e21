//! `make demo`: what navicert does, shown in a minute. Everything is made here, in a temporary folder; no cluster is needed,
//! nothing is configured, nothing stays behind. Each scene runs the real binary and shows what it prints.
//!
//! Programs of others that are missing have a stand-in inside the demo, named at the start. `demo --embedded` uses the
//! stand-ins alone, as on a machine where nothing is installed.

#![expect(clippy::print_stdout, reason = "this program prints a demonstration")]

#[path = "demo/client.rs"]
mod client;
#[path = "demo/gateway.rs"]
mod gateway;
#[path = "demo/image.rs"]
mod image;
#[path = "demo/key.rs"]
mod key;
#[path = "demo/kubectl.rs"]
mod kubectl;
#[path = "demo/proxy.rs"]
mod proxy;
#[path = "demo/token.rs"]
mod token;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use navicert_testkit::program::Outcome;
use navicert_testkit::{Program, SoftHsm};

/// Where programs of the demo look for other programs, after the demo's own folder.
const PROGRAM_FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

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
    let mut words = std::env::args();
    let name = words.next().unwrap_or_default();
    let arguments: Vec<String> = words.collect();
    if Path::new(&name).file_name().is_some_and(|name| name == "kubectl") {
        return kubectl::run(&arguments);
    }
    match print_text(arguments.iter().any(|argument| argument == "--embedded")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            println!("\nthe demo failed: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn print_text(embedded: bool) -> Result<(), String> {
    println!("navicert: every Kubernetes credential, on every side\n");
    let demo = Demo::set(Tools::find(embedded))?;
    demo.name_stand_ins();
    println!("$ export KUBECONFIG={KUBECONFIG}\n");

    demo.scene(
        "Two kubeconfig files, one view. The first file that defines a name wins, and secrets stay hidden.",
    );
    demo.run(&["kubeconfig", "view"], 0)?;

    demo.scene("Is this context usable? Everything that is wrong, where it is, and what to do about it.");
    demo.run(&["kubeconfig", "check", "--context", "lab"], 1)?;

    demo.scene("The same question for a machine.");
    demo.run(&["kubeconfig", "check", "--context", "prod", "-o", "json"], 0)?;

    demo.scene("A rule for tokens, before it meets one: the trap, and then the value of every part.");
    demo.run(&["cel", "check", "claims.groups.exists(g, g == 'admin')"], 1)?;
    let rule = "dyn(claims.groups).exists(g, g == 'admin')";
    demo.run(&["cel", "eval", "--claims", "claims.json", "--trace", rule], 0)?;

    token::tell(&demo)?;
    client::tell(&demo)?;
    gateway::tell(&demo)?;
    key::tell(&demo)?;
    proxy::tell(&demo)?;
    image::tell(&demo)?;

    println!("End of the demo. `navicert --help` lists the commands, docs/ explains them.");
    Ok(())
}

/// The programs of others that the demo uses where they are installed.
struct Tools {
    /// The folder with Debian's kubectl, where `make tools` unpacks it.
    kubectl: Option<PathBuf>,
    softhsm: bool,
    skopeo: bool,
}

impl Tools {
    fn find(embedded: bool) -> Self {
        if embedded {
            return Tools { kubectl: None, softhsm: false, skopeo: false };
        }
        let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/usr/bin");
        let runs = |program: &str| Program::new(program).arguments(["--help"]).run().is_ok();
        Tools {
            kubectl: unpacked.join("kubectl").is_file().then_some(unpacked),
            // The test kit finds these two along `PATH`.
            softhsm: SoftHsm::is_installed() && runs("softhsm2-util") && runs("pkcs11-tool"),
            skopeo: PROGRAM_FOLDERS.iter().any(|folder| Path::new(folder).join("skopeo").is_file()),
        }
    }
}

/// A temporary folder with the demo's files, and the programs it runs.
struct Demo {
    folder: tempfile::TempDir,
    navicert: PathBuf,
    tools: Tools,
    bold: &'static str,
    plain: &'static str,
}

impl Demo {
    fn set(tools: Tools) -> Result<Self, String> {
        let folder =
            tempfile::tempdir().map_err(|error| format!("failed to make a temporary folder: {error}"))?;
        let programs = folder.path().join("bin");
        std::fs::create_dir(&programs)
            .map_err(|error| format!("failed to make {}: {error}", programs.display()))?;
        if tools.kubectl.is_none() {
            link(&own_program()?, &programs.join("kubectl"))?;
        }
        for (name, text) in [("work.yaml", WORK), ("lab.yaml", LAB), ("claims.json", CLAIMS)] {
            write(&folder.path().join(name), text)?;
        }
        let (bold, plain) =
            if std::io::stdout().is_terminal() { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
        Ok(Demo { folder, navicert: beside("navicert")?, tools, bold, plain })
    }

    /// Says which stand-ins are used, in one line each.
    fn name_stand_ins(&self) {
        let stand_ins = [
            (self.tools.kubectl.is_some(), "kubectl: a stand-in inside the demo sends its requests"),
            (self.tools.softhsm, "SoftHSM: a software signer stands in, with its key in a file"),
            (self.tools.skopeo, "skopeo: a stand-in inside the demo pulls the image"),
        ];
        let missing: Vec<&str> =
            stand_ins.iter().filter(|(is_installed, _)| !is_installed).map(|(_, text)| *text).collect();
        for text in &missing {
            println!("without {text}");
        }
        if !missing.is_empty() {
            println!();
        }
    }

    /// Replaces a file in one step, as editors do, so that a program that watches it never reads half of it.
    fn replace(&self, name: &str, text: &str) -> Result<(), String> {
        let new = self.folder.path().join(format!("{name}.new"));
        write(&new, text)?;
        std::fs::rename(new, self.folder.path().join(name))
            .map_err(|error| format!("failed to replace {name}: {error}"))
    }

    fn scene(&self, title: &str) {
        println!("{}# {title}{}", self.bold, self.plain);
    }

    /// Runs navicert, shows what it prints, and checks its exit code.
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

    /// Runs a program in the demo's folder with the demo's environment.
    fn show_output(&self, program: &Program, expected: i32) -> Result<(), String> {
        self.show_with(KUBECONFIG, program, expected)
    }

    fn show_with(&self, kubeconfig: &str, program: &Program, expected: i32) -> Result<(), String> {
        let outcome = self.finish(kubeconfig, &program.clone().merged())?;
        let printed = String::from_utf8_lossy(&outcome.stdout);
        if !printed.is_empty() {
            println!("{printed}");
        }
        match outcome.code() {
            Some(code) if code == expected => Ok(()),
            code => Err(format!("`{program}` ended with exit code {code:?}, expected {expected}")),
        }
    }

    /// Runs a program to its end and shows nothing of it.
    fn finish(&self, kubeconfig: &str, program: &Program) -> Result<Outcome, String> {
        let own = self.folder.path().join("bin");
        let tools = self.tools.kubectl.as_deref().unwrap_or(&own);
        let path = format!("{}:{}:{}", own.display(), tools.display(), PROGRAM_FOLDERS.join(":"));
        program
            .clone()
            .own_environment()
            .variable("PATH", path)
            .variable("HOME", self.folder.path())
            .variable("KUBECONFIG", kubeconfig)
            .variable("NAVICERT_IMAGE_CONFIG", "providers.yaml")
            .variable("NAVICERT_IMAGE_BIN_DIR", "bin")
            .variable(if self.bold.is_empty() { "NO_COLOR" } else { "CLICOLOR_FORCE" }, "1")
            .directory(self.folder.path())
            .run()
            .map_err(|error| format!("failed to run `{program}`: {error}"))
    }
}

/// A binary in the folder of this one: `make demo` builds them all.
fn beside(name: &str) -> Result<PathBuf, String> {
    let binary = own_program()?.with_file_name(name);
    if binary.is_file() {
        Ok(binary)
    } else {
        Err(format!("missing {}; `make demo` builds it", binary.display()))
    }
}

fn own_program() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| format!("failed to find this program: {error}"))
}

fn link(program: &Path, link: &Path) -> Result<(), String> {
    std::os::unix::fs::symlink(program, link)
        .map_err(|error| format!("failed to link {}: {error}", program.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("failed to write {}: {error}", path.display()))
}
