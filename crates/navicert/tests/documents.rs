//! Documentation tests: named paths and linked pages exist, and READMEs show real output and list every verb.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::path::{Path, PathBuf};

use navicert_testkit::Program;
use navicert_testkit::cli::transcript::{TestContext, check_file};

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
        vec!["README.md".into(), "ARCHITECTURE.md".into(), "CONTRIBUTING.md".into(), "SECURITY.md".into()];
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

/// Every claim of the threat model names at least one test, as `file::test`, and each of them exists and is run by `make test`.
#[test]
fn every_claim_of_the_threat_model_names_tests_that_exist() {
    let text = page("docs/threat-model.md");
    let claims: Vec<&str> =
        text.split("\n- **").skip(1).map(|item| item.split("\n\n").next().unwrap()).collect();
    assert!(claims.len() >= 30, "only {} claims were found", claims.len());
    for (index, claim) in claims.iter().enumerate() {
        let number = format!("TM{}", index + 1);
        assert!(
            claim.starts_with(&format!("{number}** ")),
            "claims are numbered in order: {number}, {claim}"
        );
        let named: Vec<(&str, &str)> = claim.split('`').filter_map(|text| text.split_once("::")).collect();
        assert!(!named.is_empty(), "{number} names no test");
        for (file, test) in named {
            assert!(is_test(&page(file), test), "{number} names {file}::{test}, which is no test");
            assert!(is_compiled(Path::new(file)), "{number} names {file}, which is part of no crate");
        }
    }
    let outside =
        text.matches("::").count() - claims.iter().map(|claim| claim.matches("::").count()).sum::<usize>();
    assert_eq!(outside, 1, "tests are named in claims only, apart from the explanation of `file::test`");
}

/// Whether a Rust file has a function with this name and attributes that make it a test which is run.
fn is_test(source: &str, name: &str) -> bool {
    let mut attributes: Vec<&str> = Vec::new();
    for line in source.lines().map(str::trim_start) {
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        if line.starts_with("#[") {
            attributes.push(line);
        } else if function.is_some_and(|function| function.split('(').next() == Some(name)) {
            let has = |prefix: &str| attributes.iter().any(|attribute| attribute.starts_with(prefix));
            return (has("#[test]") || has("#[tokio::test")) && !has("#[ignore") && !has("#[cfg(feature");
        } else if !line.starts_with("//") {
            attributes.clear();
        }
    }
    false
}

#[test]
fn functions_that_are_not_run_are_no_tests() {
    let source = "#[test]\nfn one() {}\nfn two() {}\n#[tokio::test]\n// S1\nasync fn three() {}\n\
                  #[test]\n#[ignore = \"slow\"]\nfn four() {}\n#[cfg(feature = \"interop\")]\n#[test]\nfn five() {}\n";
    let found = ["one", "two", "three", "four", "five", "six"].map(|name| is_test(source, name));
    assert_eq!(found, [true, false, true, false, false, false]);
}

/// Whether a file is the root of a crate or of a test, or a module of a file that is. Tests that need a feature do not count:
/// `make test` does not run them.
fn is_compiled(file: &Path) -> bool {
    let dir = file.parent().unwrap();
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let (stem, folder) = (name(file), name(dir));
    let declares = |parent: &Path, module: &str| {
        let source = std::fs::read_to_string(workspace().join(parent)).unwrap_or_default();
        let is_declared = source.lines().any(|line| {
            let line = ["pub(crate) ", "pub(super) ", "pub "]
                .iter()
                .find_map(|visibility| line.trim_start().strip_prefix(visibility))
                .unwrap_or(line.trim_start());
            line == format!("mod {module};")
        });
        is_declared && is_compiled(parent)
    };
    match (folder.as_str(), stem.as_str()) {
        ("src", "lib" | "main") => true,
        ("tests", _) if workspace().join(dir).with_file_name("Cargo.toml").exists() => {
            let manifest = page(&dir.with_file_name("Cargo.toml").display().to_string());
            let section =
                manifest.split("[[test]]").find(|part| part.contains(&format!("name = \"{stem}\"")));
            section.is_none_or(|section| !section.contains("required-features"))
        }
        ("src", _) => ["lib.rs", "main.rs"].iter().any(|root| declares(&dir.join(root), &stem)),
        // The root of a test in a folder, or a module that has a folder.
        (_, "main") => name(dir.parent().unwrap()) == "tests",
        (_, "mod") => {
            let above = dir.parent().unwrap();
            let parents = ["mod.rs", "lib.rs", "main.rs"].map(|parent| above.join(parent));
            let sibling = above.with_extension("rs");
            parents.iter().chain([&sibling]).any(|parent| declares(parent, &folder))
        }
        _ => {
            let parents = [dir.join("mod.rs"), dir.join("main.rs"), dir.with_extension("rs")];
            parents.iter().any(|parent| declares(parent, &stem))
        }
    }
}

#[test]
fn files_of_no_crate_are_not_compiled() {
    for (file, expected) in [
        ("crates/navicert/tests/documents.rs", true),
        ("crates/navicert/tests/serve_proxy/floods.rs", true),
        ("crates/navicert/tests/doctor/main.rs", true),
        ("crates/navicert-server/src/proxy/rbac.rs", true),
        ("crates/navicert-server/src/proxy/identity_headers/tests.rs", true),
        ("crates/navicert-server/src/confinement/mod.rs", true),
        ("crates/navicert-server/src/proxy/unknown.rs", false),
        ("crates/navicert/tests/doctor/unknown.rs", false),
        ("crates/navicert/tests/interop_proxy.rs", false),
    ] {
        assert_eq!(is_compiled(Path::new(file)), expected, "{file}");
    }
}

#[test]
fn the_readme_shows_what_the_program_prints() {
    // `doctor` finds an invalid kubeconfig, `authn explain` a token that is rejected.
    check_readme("README.md", &["[exit 3]\n", "[exit 1]\n"]);
    // `cel check` finds an invalid expression.
    check_readme("crates/navicert/README.md", &["[exit 1]\n"]);
}

/// READMEs show no exit codes; transcripts have them. Every command they show finds something wrong.
fn check_readme(name: &str, exits: &[&str]) {
    let mut transcript = String::new();
    let mut in_console = false;
    let mut exits = exits.iter();
    for line in page(name).lines() {
        if in_console && line == "```" {
            transcript.push_str(exits.next().unwrap());
        }
        in_console = line.starts_with("```console") || (in_console && line != "```");
        transcript.push_str(line);
        transcript.push('\n');
    }
    assert_eq!(exits.next(), None, "{name} has fewer commands");
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
