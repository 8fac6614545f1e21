//! `make install` and `make uninstall`: which files they make, that the installed programs find each other, and what they say
//! when they cannot work. The installer copies what was built, so that files with a program's name stand in for the programs
//! of other crates.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests; a broken set-up should stop the test")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use navicert_testkit::Program;
use navicert_testkit::cli::program::Outcome;
use navicert_testkit::cli::program::copy_executable;

/// Programs that are shipped, beside `navicert` itself.
const OTHERS: [&str; 6] = [
    "acr-credential-provider",
    "auth-provider-gcp",
    "docker-credential-navicert",
    "ecr-credential-provider",
    "navicert-image-provider",
    "navicert-signer-pkcs11",
];

/// Manual pages, without `.1`.
const PAGES: [&str; 55] = [
    "navicert",
    "navicert-authn",
    "navicert-authn-check",
    "navicert-authn-diff",
    "navicert-authn-eval",
    "navicert-authn-explain",
    "navicert-authn-migrate",
    "navicert-authn-test",
    "navicert-cel",
    "navicert-cel-check",
    "navicert-cel-eval",
    "navicert-completions",
    "navicert-doctor",
    "navicert-exec-plugin",
    "navicert-exec-plugin-check",
    "navicert-exec-plugin-decode",
    "navicert-exec-plugin-info",
    "navicert-exec-plugin-keep",
    "navicert-exec-plugin-pin",
    "navicert-gateway",
    "navicert-help",
    "navicert-image",
    "navicert-image-auth-file",
    "navicert-image-check",
    "navicert-image-explain",
    "navicert-image-get",
    "navicert-image-invalidate",
    "navicert-image-keyring",
    "navicert-image-match",
    "navicert-image-metrics",
    "navicert-image-plugin-check",
    "navicert-image-response",
    "navicert-image-serve",
    "navicert-kubeconfig",
    "navicert-kubeconfig-check",
    "navicert-kubeconfig-view",
    "navicert-login",
    "navicert-login-clean",
    "navicert-login-get-token",
    "navicert-login-setup",
    "navicert-logout",
    "navicert-man",
    "navicert-run",
    "navicert-serve",
    "navicert-serve-proxy",
    "navicert-serve-webhook",
    "navicert-signer",
    "navicert-signer-check",
    "navicert-signer-list",
    "navicert-signer-request",
    "navicert-signer-serve",
    "navicert-signer-setup",
    "navicert-status",
    "navicert-version",
    "navicert-whoami",
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A directory with built programs, a home, and a directory to install into.
struct Setup {
    dir: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let setup = Setup { dir: tempfile::tempdir().unwrap() };
        for name in ["built", "home"] {
            fs::create_dir(setup.path(name)).unwrap();
        }
        copy_executable(env!("CARGO_BIN_EXE_navicert"), setup.path("built/navicert")).unwrap();
        for name in OTHERS {
            fs::write(setup.path("built").join(name), name).unwrap();
        }
        setup
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `make TARGET`, with variables of make.
    fn make(&self, target: &str, variables: &[&str]) -> Outcome {
        Program::new("make")
            .arguments(["--no-print-directory", target])
            .arguments(variables)
            .directory(&workspace())
            .variable("NAVICERT_INSTALL_FROM", self.path("built"))
            .variable("HOME", self.path("home"))
            .variable("MAKEFLAGS", "")
            .merged()
            .run()
            .unwrap()
    }

    /// Runs an installed program with the installed programs in front of `PATH`.
    fn run(&self, bin: &Path, program: &str, arguments: &[&str]) -> Outcome {
        Program::new(bin.join(program))
            .arguments(arguments)
            .directory(&self.path("home"))
            .own_environment()
            .variable("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .variable("HOME", self.path("home"))
            .merged()
            .run()
            .unwrap()
    }
}

fn text(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}

fn succeed(outcome: &Outcome) -> String {
    assert_eq!(outcome.code(), Some(0), "{}", text(outcome));
    text(outcome)
}

/// Every file and link below a directory, relative to it.
fn files(dir: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![dir.to_owned()];
    while let Some(current) = open.pop() {
        for entry in fs::read_dir(&current).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(dir).unwrap().display().to_string());
            }
        }
    }
    found
}

fn expected() -> BTreeSet<String> {
    let programs = ["navicert", "kubectl-navicert", "kubectl_complete-navicert"].into_iter().chain(OTHERS);
    let completions = [
        "bash-completion/completions/navicert",
        "zsh/site-functions/_navicert",
        "fish/vendor_completions.d/navicert.fish",
    ];
    programs
        .map(|name| format!("bin/{name}"))
        .chain(PAGES.iter().map(|name| format!("share/man/man1/{name}.1")))
        .chain(completions.iter().map(|name| format!("share/{name}")))
        .collect()
}

#[test]
fn installs_exactly_these_files_and_removes_exactly_them() {
    let setup = Setup::new();
    let stage = format!("DESTDIR={}", setup.path("stage").display());
    let told = succeed(&setup.make("install", &[&stage, "PREFIX=/opt/navicert"]));
    assert!(told.starts_with("installed 7 programs and `kubectl navicert` in "), "{told}");
    let root = setup.path("stage/opt/navicert");
    assert_eq!(
        files(&setup.path("stage")),
        expected().iter().map(|name| format!("opt/navicert/{name}")).collect()
    );

    for name in OTHERS {
        assert_eq!(fs::read_to_string(root.join("bin").join(name)).unwrap(), name);
    }
    for name in expected() {
        let mode = fs::metadata(root.join(&name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if name.starts_with("bin/") { 0o755 } else { 0o644 }, "{name}");
    }
    assert_eq!(fs::read_link(root.join("bin/kubectl-navicert")).unwrap(), Path::new("navicert"));

    // Installed again over itself, and removed: what others put beside it stays.
    succeed(&setup.make("install", &[&stage, "PREFIX=/opt/navicert"]));
    for name in ["bin/kubectl-other", "share/man/man1/other.1"] {
        fs::write(root.join(name), "").unwrap();
    }
    let told = succeed(&setup.make("uninstall", &[&stage, "PREFIX=/opt/navicert"]));
    assert!(told.starts_with(&format!("removed {} files under ", expected().len())), "{told}");
    assert_eq!(files(&root), ["bin/kubectl-other", "share/man/man1/other.1"].map(str::to_owned).into());
    let again = setup.make("uninstall", &[&stage, "PREFIX=/opt/navicert"]);
    assert!(
        again.code() != Some(0) && text(&again).contains("nothing of navicert is installed"),
        "{}",
        text(&again)
    );
}

#[test]
fn ships_every_program_of_the_workspace_that_is_not_for_tests() {
    let mut programs = BTreeSet::new();
    for member in fs::read_dir(workspace().join("crates")).unwrap() {
        let member = member.unwrap().path();
        let Ok(bins) = fs::read_dir(member.join("src/bin")) else { continue };
        let manifest = fs::read_to_string(member.join("Cargo.toml")).unwrap();
        for path in bins.map(|entry| entry.unwrap().path()) {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let section = manifest.split("[[bin]]").find(|text| text.contains(&format!("name = \"{name}\"")));
            let for_tests = section.is_some_and(|text| text.contains("required-features = [\"test-util\"]"));
            if !for_tests && !member.ends_with("navicert-testkit") {
                programs.insert(name);
            }
        }
    }
    assert_eq!(programs, OTHERS.map(str::to_owned).into());
}

#[test]
fn works_from_a_home_folder_and_as_a_kubectl_plugin() {
    let setup = Setup::new();
    let told = succeed(&setup.make("install", &["PREFIX=~/.local"]));
    let bin = setup.path("home/.local/bin");
    assert!(told.contains(&format!("{} is not in PATH", bin.display())), "{told}");

    let help = succeed(&setup.run(&bin, "kubectl-navicert", &["--help"]));
    assert!(help.contains("\nUsage: kubectl navicert [OPTIONS] <COMMAND>\n"), "{help}");
    let refused = setup.run(&bin, "kubectl-navicert", &["doctor", "--unknown"]);
    assert_eq!(refused.code(), Some(2));
    assert!(
        text(&refused).contains("Usage: kubectl navicert doctor [OPTIONS] [CONTEXT]"),
        "{}",
        text(&refused)
    );
    let help = succeed(&setup.run(&bin, "navicert", &["--help"]));
    assert!(help.contains("\nUsage: navicert [OPTIONS] <COMMAND>\n"), "{help}");

    fs::create_dir(setup.path("home/.kube")).unwrap();
    let contexts = "contexts: [{name: 'arn:aws:eks:x', context: {}}, {name: other, context: {}}]\n";
    fs::write(setup.path("home/.kube/config"), contexts).unwrap();
    for (words, candidates) in [
        (&["doc"][..], "doctor\n:4\n"),
        (&["authn", "e"], "eval\nexplain\n:4\n"),
        (&["authn", "explain", "--config", ""], ":0\n"),
        (&["completions", "z"], "zsh\n:4\n"),
        (&["whoami", "--context", "arn:"], "arn:aws:eks:x\n:4\n"),
    ] {
        assert_eq!(succeed(&setup.run(&bin, "kubectl_complete-navicert", words)), candidates, "{words:?}");
    }
}

/// The kubeconfig of docs/hsm.md names the signer without a directory: it is found where `navicert` is installed.
#[test]
fn installed_navicert_finds_its_signer() {
    let setup = Setup::new();
    let signer = "#!/bin/sh\necho run >>\"$HOME/ran\"\nexit 1\n";
    fs::write(setup.path("built/navicert-signer-pkcs11"), signer).unwrap();
    succeed(&setup.make("install", &["PREFIX=~/.local"]));
    let kube = setup.path("home/.kube");
    fs::create_dir(&kube).unwrap();
    let config = "\
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]
contexts: [{name: x, context: {cluster: c, user: ann}}]
current-context: x
users:
- name: ann
  user:
    auth-provider:
      name: externalSigner
      config: {pathExec: navicert-signer-pkcs11, signerApiVersion: v1, uri: 'pkcs11:token=t?module-path=/usr/lib/m.so'}
";
    let kuberc = "\
apiVersion: kubectl.config.k8s.io/v1beta1
kind: Preference
credentialPluginPolicy: Allowlist
credentialPluginAllowlist: [{command: navicert-signer-pkcs11, pathLib: [/usr/lib/m.so]}]
";
    fs::write(kube.join("config"), config).unwrap();
    fs::write(kube.join("kuberc"), kuberc).unwrap();
    let outcome = setup.run(&setup.path("home/.local/bin"), "navicert", &["whoami"]);
    assert!(setup.path("home/ran").exists(), "the signer was not run: {}", text(&outcome));
}

#[test]
fn installer_errors_are_one_sentence() {
    let setup = Setup::new();
    let one_sentence = |outcome: &Outcome, sentence: &str| {
        let told = text(outcome);
        assert_ne!(outcome.code(), Some(0), "{told}");
        let said: Vec<&str> = told.lines().filter(|line| !line.starts_with("make")).collect();
        let [said] = said.as_slice() else { panic!("not one sentence: {told}") };
        assert!(said.starts_with("install: ") && said.contains(sentence), "{said}");
    };
    one_sentence(&setup.make("install", &["PREFIX=here"]), "PREFIX must be an absolute path, not `here`");
    fs::write(setup.path("file"), "").unwrap();
    let prefix = format!("PREFIX={}", setup.path("file").display());
    one_sentence(&setup.make("install", &[&prefix]), "file is not a folder");
    fs::remove_file(setup.path("built/auth-provider-gcp")).unwrap();
    let incomplete = setup.make("install", &["PREFIX=~/.local"]);
    one_sentence(&incomplete, "built/auth-provider-gcp: run `make release` first");
    assert!(!setup.path("home/.local").exists(), "nothing is copied before everything is known to be there");
}

/// Root may write everywhere, so that the test gives the right up.
#[test]
fn unwritable_directory_is_reported_before_the_build() {
    let setup = Setup::new();
    let closed = setup.path("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    let script = workspace().join("scripts/install");
    let is_root = Program::new("id").arguments(["-u"]).run().unwrap().stdout == b"0\n";
    let program = if is_root {
        Program::new("setpriv").arguments(["--bounding-set=-all", "--inh-caps=-all"]).arguments([&script])
    } else {
        Program::new(&script)
    };
    let outcome =
        program.arguments(["--check"]).variable("PREFIX", closed.join("prefix")).merged().run().unwrap();
    assert_eq!(outcome.code(), Some(1), "{}", text(&outcome));
    let sentence = format!(
        "install: {closed} is not writable: use `make install PREFIX=~/.local`, or `make release && sudo PREFIX={closed}/prefix scripts/install`\n",
        closed = closed.display()
    );
    assert_eq!(text(&outcome), sentence);
}
