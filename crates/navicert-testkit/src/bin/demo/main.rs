//! `make demo`: shows in a minute what navicert does. It needs no cluster and no configuration, and removes its temporary
//! directory at the end. Each scene runs the real binary and shows its output.
//!
//! The demo has a stand-in for each third-party program that is not installed (kubectl, SoftHSM, skopeo) and names it at the
//! start. `demo --embedded` uses only stand-ins, as on a machine where nothing is installed.

/// `println!` that returns an error instead of panicking when standard output is closed, as in `demo | head`.
macro_rules! show {
    () => { crate::print_line(format_args!("")) };
    ($($text:tt)+) => { crate::print_line(format_args!($($text)+)) };
}

mod client;
mod gateway;
mod image;
mod key;
mod kubectl;
mod proxy;
mod token;

use std::fmt;
use std::io::{self, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use navicert_testkit::cli::program::Outcome;
use navicert_testkit::cli::sibling;
use navicert_testkit::{Program, SoftHsm};

/// `PATH` of the programs that the demo runs, after the demo's own directory.
const PROGRAM_DIRS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

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
    match run_scenes(arguments.iter().any(|argument| argument == "--embedded")) {
        // As in `navicert … | head`, a reader that has seen enough is no failure.
        Ok(()) | Err(DemoError::OutputClosed) => ExitCode::SUCCESS,
        Err(DemoError::Failed(problem)) => {
            let _ = show!("\nthe demo failed: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Why the demo ends early.
enum DemoError {
    /// The reader of standard output closed it.
    OutputClosed,
    Failed(String),
}

impl From<String> for DemoError {
    fn from(problem: String) -> Self {
        DemoError::Failed(problem)
    }
}

impl From<&str> for DemoError {
    fn from(problem: &str) -> Self {
        DemoError::Failed(problem.to_owned())
    }
}

/// What `show!` calls.
fn print_line(line: fmt::Arguments<'_>) -> Result<(), DemoError> {
    writeln!(io::stdout(), "{line}").map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => DemoError::OutputClosed,
        _ => DemoError::Failed(format!("failed to write to standard output: {error}")),
    })
}

fn run_scenes(embedded: bool) -> Result<(), DemoError> {
    show!("navicert: every Kubernetes credential, on every side\n")?;
    let demo = Demo::new(Tools::find(embedded))?;
    demo.name_stand_ins()?;
    show!("$ export KUBECONFIG={KUBECONFIG}\n")?;

    demo.scene(
        "Two kubeconfig files, one view. The first file that defines a name wins, and secrets stay hidden.",
    )?;
    demo.run(&["kubeconfig", "view"], 0)?;

    demo.scene("Is this context usable? Everything that is wrong, where it is, and what to do about it.")?;
    demo.run(&["kubeconfig", "check", "--context", "lab"], 3)?;

    demo.scene("The same question for a machine.")?;
    demo.run(&["kubeconfig", "check", "--context", "prod", "-o", "json"], 0)?;

    demo.scene("A rule for tokens, before it meets one: the trap, and then the value of every part.")?;
    demo.run(&["cel", "check", "claims.groups.exists(g, g == 'admin')"], 1)?;
    let rule = "dyn(claims.groups).exists(g, g == 'admin')";
    demo.run(&["cel", "eval", "--claims", "claims.json", "--trace", rule], 0)?;

    token::run(&demo)?;
    client::run(&demo)?;
    gateway::run(&demo)?;
    key::run(&demo)?;
    proxy::run(&demo)?;
    image::run(&demo)?;

    show!("End of the demo. `navicert --help` lists the commands, docs/ explains them.")
}

/// Third-party programs that the demo uses if they are installed.
struct Tools {
    /// Directory of Debian's kubectl, where `make tools` unpacks it.
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
            skopeo: PROGRAM_DIRS.iter().any(|dir| Path::new(dir).join("skopeo").is_file()),
        }
    }
}

/// The temporary directory with the demo's files, and the programs it runs.
struct Demo {
    dir: tempfile::TempDir,
    navicert: PathBuf,
    tools: Tools,
    bold: &'static str,
    plain: &'static str,
}

impl Demo {
    fn new(tools: Tools) -> Result<Self, String> {
        let dir = tempfile::tempdir()
            .map_err(|error| format!("failed to create a temporary directory: {error}"))?;
        let programs = dir.path().join("bin");
        std::fs::create_dir(&programs)
            .map_err(|error| format!("failed to create {}: {error}", programs.display()))?;
        if tools.kubectl.is_none() {
            let own =
                std::env::current_exe().map_err(|error| format!("failed to find this program: {error}"))?;
            link(&own, &programs.join("kubectl"))?;
        }
        for (name, text) in [("work.yaml", WORK), ("lab.yaml", LAB), ("claims.json", CLAIMS)] {
            write(&dir.path().join(name), text)?;
        }
        let (bold, plain) = if io::stdout().is_terminal() { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
        Ok(Demo { dir, navicert: sibling::NAVICERT.find()?, tools, bold, plain })
    }

    /// Names the stand-ins that are used, in one line each.
    fn name_stand_ins(&self) -> Result<(), DemoError> {
        let stand_ins = [
            (self.tools.kubectl.is_some(), "kubectl: a stand-in inside the demo sends its requests"),
            (self.tools.softhsm, "SoftHSM: a software signer stands in, with its key in a file"),
            (self.tools.skopeo, "skopeo: a stand-in inside the demo pulls the image"),
        ];
        let missing: Vec<&str> =
            stand_ins.iter().filter(|(is_installed, _)| !is_installed).map(|(_, text)| *text).collect();
        for text in &missing {
            show!("without {text}")?;
        }
        if missing.is_empty() { Ok(()) } else { show!() }
    }

    /// Replaces a file in one step, as editors do, so that a program that watches it never reads a partial file.
    fn replace(&self, name: &str, text: &str) -> Result<(), String> {
        let new = self.dir.path().join(format!("{name}.new"));
        write(&new, text)?;
        std::fs::rename(new, self.dir.path().join(name))
            .map_err(|error| format!("failed to replace {name}: {error}"))
    }

    fn scene(&self, title: &str) -> Result<(), DemoError> {
        show!("{}# {title}{}", self.bold, self.plain)
    }

    /// Runs navicert, shows its output, and checks its exit code.
    fn run(&self, arguments: &[&str], expected: i32) -> Result<(), DemoError> {
        self.run_with(KUBECONFIG, arguments, expected)
    }

    /// The same with another kubeconfig.
    fn run_with(&self, kubeconfig: &str, arguments: &[&str], expected: i32) -> Result<(), DemoError> {
        let quoted = arguments.iter().map(|word| match (word.contains(' '), word.contains('$')) {
            (_, true) => format!("'{word}'"),
            (true, false) => format!("\"{word}\""),
            (false, false) => (*word).to_owned(),
        });
        show!("$ navicert {}", quoted.collect::<Vec<_>>().join(" "))?;
        self.show_with(kubeconfig, &Program::new(&self.navicert).arguments(arguments), expected)
    }

    /// Shows a command line and the output of the program.
    fn show(&self, line: &str, program: &Program, expected: i32) -> Result<(), DemoError> {
        show!("$ {line}")?;
        self.show_output(program, expected)
    }

    /// Runs a program in the demo's directory with the demo's environment, and shows its output.
    fn show_output(&self, program: &Program, expected: i32) -> Result<(), DemoError> {
        self.show_with(KUBECONFIG, program, expected)
    }

    fn show_with(&self, kubeconfig: &str, program: &Program, expected: i32) -> Result<(), DemoError> {
        let outcome = self.finish(kubeconfig, &program.clone().merged())?;
        let printed = String::from_utf8_lossy(&outcome.stdout);
        if !printed.is_empty() {
            show!("{printed}")?;
        }
        match outcome.code() {
            Some(code) if code == expected => Ok(()),
            code => Err(format!("`{program}` ended with exit code {code:?}, expected {expected}").into()),
        }
    }

    /// Runs a program until it exits, without showing its output.
    fn finish(&self, kubeconfig: &str, program: &Program) -> Result<Outcome, String> {
        let own = self.dir.path().join("bin");
        let tools = self.tools.kubectl.as_deref().unwrap_or(&own);
        let path = format!("{}:{}:{}", own.display(), tools.display(), PROGRAM_DIRS.join(":"));
        program
            .clone()
            .own_environment()
            .variable("PATH", path)
            .variable("HOME", self.dir.path())
            .variable("KUBECONFIG", kubeconfig)
            .variable("NAVICERT_IMAGE_CONFIG", "providers.yaml")
            .variable("NAVICERT_IMAGE_BIN_DIR", "bin")
            .variable(if self.bold.is_empty() { "NO_COLOR" } else { "CLICOLOR_FORCE" }, "1")
            .directory(self.dir.path())
            .run()
            .map_err(|error| format!("failed to run `{program}`: {error}"))
    }
}

fn link(program: &Path, link: &Path) -> Result<(), String> {
    std::os::unix::fs::symlink(program, link)
        .map_err(|error| format!("failed to link {}: {error}", program.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("failed to write {}: {error}", path.display()))
}
