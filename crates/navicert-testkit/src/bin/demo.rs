//! `make demo`: what navicert does, told in a minute. Everything is made here, in a temporary folder; no cluster is needed,
//! nothing is configured, nothing stays behind. Each scene runs the real binary and shows what it prints.

#![expect(clippy::print_stdout, reason = "telling the story is all this program does")]

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use navicert_testkit::{ApiServer, Ca, Program};
use serde_json::json;

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
    println!(
        "navicert: every Kubernetes credential, on every side\n\n$ export KUBECONFIG=work.yaml:lab.yaml\n"
    );

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

    a_command_uses_a_key(&stage)?;

    println!("That is all so far. `navicert --help` lists the verbs, docs/ explains them.");
    Ok(())
}

/// kubectl, or where it is not installed a shell, works for ann with her certificate, and nobody can read her key.
fn a_command_uses_a_key(stage: &Stage) -> Result<(), String> {
    let ca = Ca::new("demo");
    let api = ApiServer::start(&ca);
    api.add_pod("web", false);
    let ann = ca.client("ann").organization("developers").issue().write_to(stage.folder.path(), "ann");
    write(&stage.folder.path().join("demo-ca.crt"), &ca.pem())?;
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "demo",
        "contexts": [{"name": "demo", "context": {"cluster": "demo", "user": "ann"}}],
        "clusters": [{"name": "demo", "cluster": {"server": api.url(), "certificate-authority": "demo-ca.crt"}}],
        "users": [{"name": "ann", "user": {"client-certificate": ann.certificate, "client-key": ann.key}}],
    });
    write(&stage.folder.path().join("demo.yaml"), &config.to_string())?;

    stage
        .scene("A command uses a key and never sees it: its kubeconfig leads to a gateway that has the key.");
    let shown = "grep -v -e token -e certificate $KUBECONFIG";
    stage.run_with("demo.yaml", &["run", "--", "sh", "-c", shown], 0)?;
    if kubectl().is_some() {
        stage.run_with("demo.yaml", &["run", "--", "kubectl", "get", "pods", "-o", "name"], 0)?;
        stage.scene("An agent may look, and change nothing.");
        stage.run_with("demo.yaml", &["run", "--read-only", "--", "kubectl", "delete", "pod", "web"], 1)?;
        let requests = api.requests();
        let by_ann = requests.iter().all(|request| {
            let client = request.client.as_ref().is_some_and(|client| client.common_name == "ann");
            client && request.header("authorization").is_none()
        });
        if !by_ann {
            return Err("a request came without ann's certificate".to_owned());
        }
        println!(
            "(the API server saw {} requests, all by ann's certificate, none with a token)\n",
            requests.len()
        );
    } else {
        println!("(kubectl is not in target/tools, so this scene is short; `make tools` installs it)\n");
    }
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
        Ok(Stage { folder, navicert: navicert()?, bold, plain })
    }

    fn scene(&self, title: &str) {
        println!("{}# {title}{}", self.bold, self.plain);
    }

    /// Runs navicert, shows what it prints, and checks that it exits as the story says.
    fn run(&self, arguments: &[&str], expected: i32) -> Result<(), String> {
        self.run_with("work.yaml:lab.yaml", arguments, expected)
    }

    fn run_with(&self, kubeconfig: &str, arguments: &[&str], expected: i32) -> Result<(), String> {
        let quoted = arguments.iter().map(|word| match (word.contains(' '), word.contains('$')) {
            (_, true) => format!("'{word}'"),
            (true, false) => format!("\"{word}\""),
            (false, false) => (*word).to_owned(),
        });
        println!("$ navicert {}", quoted.collect::<Vec<_>>().join(" "));
        let outcome = Program::new(&self.navicert)
            .arguments(arguments)
            .own_environment()
            .variable("KUBECONFIG", kubeconfig)
            .variable("PATH", format!("{}:/usr/bin:/bin", kubectl().unwrap_or_default().display()))
            .variable("HOME", self.folder.path())
            .variable(if self.bold.is_empty() { "NO_COLOR" } else { "CLICOLOR_FORCE" }, "1")
            .directory(self.folder.path())
            .merged()
            .run()
            .map_err(|error| format!("cannot run {}: {error}", self.navicert.display()))?;
        println!("{}", String::from_utf8_lossy(&outcome.stdout));
        match outcome.code() {
            Some(code) if code == expected => Ok(()),
            code => Err(format!("exit code {code:?} where the story has {expected}")),
        }
    }
}

/// The binary lies beside this one: `make demo` builds both.
fn navicert() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find myself: {error}"))?;
    let navicert = own.with_file_name("navicert");
    if navicert.is_file() {
        Ok(navicert)
    } else {
        Err(format!("{} is not there; run `make demo`, which builds it", navicert.display()))
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
