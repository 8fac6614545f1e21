//! Documentation tests: named paths and linked pages exist, and README.md shows real output and lists every verb.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::path::{Path, PathBuf};

use navicert_testkit::Program;
use navicert_testkit::transcript::{TestContext, check_file};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(workspace().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_file_named_in_architecture_exists() {
    let architecture = page("ARCHITECTURE.md");
    let named: Vec<&str> = architecture.split('`').filter(|text| text.starts_with("crates/")).collect();
    assert!(named.len() >= 10, "the walks name only {} files", named.len());
    let gone: Vec<&&str> = named.iter().filter(|path| !workspace().join(path).exists()).collect();
    assert!(gone.is_empty(), "ARCHITECTURE.md names files that are gone: {gone:?}");
}

#[test]
fn every_crate_is_in_the_table() {
    let architecture = page("ARCHITECTURE.md");
    for entry in std::fs::read_dir(workspace().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(architecture.contains(&format!("| `{name}`")), "ARCHITECTURE.md does not list {name}");
    }
}

#[test]
fn every_page_that_is_linked_to_exists() {
    let mut pages: Vec<PathBuf> =
        vec!["README.md".into(), "ARCHITECTURE.md".into(), "CONTRIBUTING.md".into()];
    for entry in std::fs::read_dir(workspace().join("docs")).unwrap() {
        pages.push(Path::new("docs").join(entry.unwrap().file_name()));
    }
    for name in pages.iter().filter(|name| name.extension().is_some_and(|extension| extension == "md")) {
        let text = page(&name.display().to_string());
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let dir = name.parent().unwrap_or(Path::new(""));
            assert!(workspace().join(dir).join(target).exists(), "{} links to {target}", name.display());
        }
    }
}

/// README.md shows no exit codes; transcripts have them. Every command it shows finds something wrong.
#[test]
fn the_readme_shows_what_the_program_prints() {
    let mut transcript = String::new();
    let mut in_console = false;
    // `doctor` finds an invalid kubeconfig, `authn explain` a token that is rejected.
    let mut exits = ["[exit 3]\n", "[exit 1]\n"].into_iter();
    for line in page("README.md").lines() {
        if in_console && line == "```" {
            transcript.push_str(exits.next().unwrap());
        }
        in_console = line == "```console" || (in_console && line != "```");
        transcript.push_str(line);
        transcript.push('\n');
    }
    assert_eq!(exits.next(), None, "`doctor` and `authn explain`");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("README.md");
    std::fs::write(&path, transcript).unwrap();
    let context = TestContext::new().program("navicert", env!("CARGO_BIN_EXE_navicert"));
    copy_examples(&context.directory().join("examples"));
    check_file(&path, context);
}

/// What README.md says happens after its reader has corrected the example.
#[test]
fn readme_examples_can_be_fixed_as_described() {
    let context = TestContext::new().program("navicert", env!("CARGO_BIN_EXE_navicert"));
    let examples = context.directory().join("examples");
    copy_examples(&examples);
    let correct = |file: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(examples.join(file)).unwrap();
        assert!(text.contains(from), "{file}");
        std::fs::write(examples.join(file), text.replace(from, to)).unwrap();
    };
    let printed = |line: &str| String::from_utf8_lossy(&context.run(line).stdout).into_owned();
    correct("kubeconfig/old-plugin-version.yaml", "k8s.io/v1alpha1", "k8s.io/v1beta1");
    // In place of a name that a resolver would be asked for: a label of 64 characters has no address.
    let unknown = format!("{}.example:443\n    tls-server-name: eks.example", "n".repeat(64));
    correct("kubeconfig/old-plugin-version.yaml", "eks.example:443", &unknown);
    let told = printed("navicert doctor --kubeconfig examples/kubeconfig/old-plugin-version.yaml");
    assert!(told.contains("PASS  user ") && told.contains("FAIL  dns "), "{told}");
    correct("token/authentication.yaml", "[kubernetes]", "[Kubernetes]");
    let told = printed(
        "navicert authn explain --config examples/token/authentication.yaml --jwks examples/token/jwks.json --token-file examples/token/token.jwt",
    );
    assert!(told.contains("authenticated as `oidc:ann@example.com`"), "{told}");
}

fn copy_examples(to: &Path) {
    for name in ["kubeconfig", "token"] {
        std::fs::create_dir_all(to.join(name)).unwrap();
        for entry in std::fs::read_dir(workspace().join("examples").join(name)).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), to.join(name).join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn the_readme_lists_every_verb() {
    let help = Program::new(env!("CARGO_BIN_EXE_navicert")).arguments(["-h"]).run().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let verbs: Vec<&str> = commands
        .lines()
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(verbs.len() >= 13, "{verbs:?}");
    let readme = page("README.md");
    let (_, table) = readme.split_once("## Verbs").unwrap();
    for verb in verbs {
        let listed = ["`navicert {} ", "`navicert {}`", "`{}`"]
            .iter()
            .any(|form| table.contains(&form.replace("{}", verb)));
        assert!(listed, "README.md does not list `navicert {verb}`");
    }
}
