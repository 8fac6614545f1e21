//! The command line on a terminal and in a script: help, version, completion, colours, long lists of errors, and errors as
//! JSON.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests; a broken set-up should stop the test")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use navicert_testkit::Program;
use navicert_testkit::cli::program::Outcome;
use serde_json::Value;

const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");

/// Runs navicert in an empty environment.
fn navicert(dir: &Path, arguments: &[&str]) -> Outcome {
    command(dir, arguments).run().unwrap()
}

fn command(dir: &Path, arguments: &[&str]) -> Program {
    Program::new(NAVICERT)
        .arguments(arguments)
        .directory(dir)
        .own_environment()
        .variable("HOME", dir)
        .variable("PATH", "/usr/bin:/bin")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn help_and_version_are_verbs_too() {
    let dir = tempfile::tempdir().unwrap();
    for (verb, option) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "serve"], &["serve", "--help"]),
        (&["help", "authn", "explain"], &["authn", "explain", "--help"]),
        (&["version"], &["--version"]),
        // With another flag, the command line's definition prints it.
        (&["--version"], &["-o", "text", "--version"]),
        (&["-V"], &["-o", "text", "-V"]),
    ] {
        let (verb, option) = (navicert(dir.path(), verb), navicert(dir.path(), option));
        assert_eq!((verb.code(), text(&verb.stdout)), (Some(0), text(&option.stdout)));
        assert!(!verb.stdout.is_empty());
    }
    let unknown = navicert(dir.path(), &["help", "doctr"]);
    assert_eq!(unknown.code(), Some(2));
    assert!(
        text(&unknown.stderr).contains("a similar subcommand exists: 'doctor'"),
        "{}",
        text(&unknown.stderr)
    );
    let version: Value =
        serde_json::from_slice(&navicert(dir.path(), &["version", "-o", "json"]).stdout).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert!(version["commit"].is_string());
    let target = version["target"].as_str().unwrap();
    assert!(target.starts_with(std::env::consts::ARCH) && target.contains(std::env::consts::OS), "{target}");
    assert!(version["features"].is_array());
    let line = text(&navicert(dir.path(), &["--version"]).stdout);
    let commit = version["commit"].as_str().unwrap();
    let expected = format!("navicert {} ({commit}, {target}, features: ", env!("CARGO_PKG_VERSION"));
    assert!(line.starts_with(&expected), "{line}");
}

#[test]
fn serve_without_a_server_names_the_servers() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [&["serve"][..], &["serve", "--authentication-config", "auth.yaml"]] {
        let outcome = navicert(dir.path(), arguments);
        let told = text(&outcome.stderr);
        assert_eq!(outcome.code(), Some(2), "{told}");
        assert!(told.contains("webhook") && told.contains("proxy"), "{told}");
    }
}

#[test]
fn every_failure_with_json_output_is_json_on_standard_output() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("broken.yaml"), "clusters: {\n").unwrap();
    fs::write(dir.path().join("types.yaml"), "clusters: 1\ncontexts: 2\n").unwrap();
    let broken = ["--kubeconfig", "broken.yaml"];
    let rows: Vec<(Vec<&str>, &str)> = vec![
        ([&["kubeconfig", "view"][..], &broken].concat(), "invalid-input"),
        ([&["kubeconfig", "check"][..], &broken].concat(), "invalid-input"),
        (vec!["kubeconfig", "view", "--kubeconfig", "types.yaml"], "invalid-input"),
        ([&["whoami"][..], &broken].concat(), "invalid-input"),
        ([&["run"][..], &broken, &["--", "true"]].concat(), "invalid-input"),
        ([&["gateway"][..], &broken].concat(), "invalid-input"),
        (vec!["authn", "check", "missing.yaml"], "invalid-input"),
        (vec!["authn", "eval", "--config", "missing.yaml"], "invalid-input"),
        (vec!["authn", "explain", "--config", "missing.yaml"], "invalid-input"),
        (vec!["authn", "test", "missing.yaml"], "invalid-input"),
        (vec!["authn", "migrate", "missing.yaml"], "invalid-input"),
        (vec!["cel", "eval", "1", "--claims", "missing.json"], "invalid-input"),
        (vec!["image", "get", "registry.example/app"], "invalid-input"),
        (vec!["image", "check", "--config", "missing.yaml"], "invalid-input"),
        (vec!["image", "get", "registry.example/App"], "usage"),
        (vec!["image", "invalidate", "a.io/b", "--socket", "missing.sock"], "unreachable"),
        (vec!["serve", "--check", "--authentication-config", "missing.yaml"], "invalid-input"),
        (vec!["serve", "--authentication-config", "auth.yaml"], "usage"),
        (vec!["exec-plugin", "check", "--typo", "sh"], "usage"),
        (vec!["kubeconfig"], "usage"),
        (vec!["typo"], "usage"),
    ];
    for (arguments, class) in rows {
        // Before the verb, so that a `--` does not hide it.
        let outcome = navicert(dir.path(), &[&["-o", "json"][..], &arguments].concat());
        let printed: Value = serde_json::from_slice(&outcome.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", text(&outcome.stdout)));
        let error = &printed["error"];
        assert_eq!(error["class"], class, "{arguments:?}: {printed}");
        assert_eq!(error["exitCode"].as_i64(), outcome.code().map(i64::from), "{arguments:?}");
        assert!(error["message"].as_str().is_some_and(|message| message.len() > 10), "{printed}");
        assert!(!outcome.stderr.is_empty(), "{arguments:?}: people read standard error");
        assert!(
            navicert(dir.path(), &arguments).stdout.is_empty(),
            "{arguments:?}: JSON only where requested"
        );
    }
    let types = navicert(dir.path(), &["-o", "json", "kubeconfig", "view", "--kubeconfig", "types.yaml"]);
    let types: Value = serde_json::from_slice(&types.stdout).unwrap();
    assert_eq!(types["error"]["details"].as_array().unwrap().len(), 2, "{types}");
}

#[test]
fn result_that_says_no_is_not_an_error_object() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in
        [&["-o", "json", "cel", "eval", "1 / 0"][..], &["-o", "json", "image", "match", "a.io", "b.io/c"]]
    {
        let outcome = navicert(dir.path(), arguments);
        let printed: Value = serde_json::from_slice(&outcome.stdout).unwrap();
        assert_eq!(outcome.code(), Some(1));
        assert!(!printed["error"].is_object(), "{printed}");
    }
}

#[test]
fn of_many_equal_errors_only_the_first_are_printed() {
    let dir = tempfile::tempdir().unwrap();
    let mut config =
        "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n".to_owned();
    for number in 0..500 {
        writeln!(
            config,
            "- {{name: p{number}, matchImages: [a.io], defaultCacheDuration: {number}1, typo: 1}}"
        )
        .unwrap();
    }
    fs::write(dir.path().join("config.yaml"), config).unwrap();
    let kubeconfig: String = (0..1000).map(|number| format!("- {{name: {number}}}\n")).collect();
    fs::write(dir.path().join("kubeconfig"), format!("users:\n{kubeconfig}")).unwrap();
    for (arguments, more) in [
        (&["image", "check", "--config", "config.yaml"][..], "and 980 more errors"),
        (&["image", "get", "a.io/b", "--config", "config.yaml"], "and 980 more errors"),
        (&["kubeconfig", "view", "--kubeconfig", "kubeconfig"], "and 980 more errors"),
    ] {
        let outcome = navicert(dir.path(), arguments);
        let told = text(&outcome.stderr);
        assert_ne!(outcome.code(), Some(0));
        assert_eq!(told.lines().filter(|line| line.starts_with("error:")).count(), 20, "{told}");
        assert_eq!(told.lines().last(), Some(more), "{told}");
    }
}

#[test]
fn verdicts_are_coloured_only_where_colours_are_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["exec-plugin", "check", "--api-version", "v1", "/no/such/plugin"];
    let printed = |variables: &[(&str, &str)]| {
        let command = variables
            .iter()
            .fold(command(dir.path(), &arguments), |command, (name, value)| command.variable(name, value));
        text(&command.run().unwrap().stdout)
    };
    assert!(!printed(&[]).contains('\u{1b}'), "a pipe is not coloured");
    let coloured = printed(&[("CLICOLOR_FORCE", "1")]);
    assert!(coloured.contains("\u{1b}[1;31mFAIL\u{1b}[0m  v1"), "{coloured}");
    assert!(coloured.contains("\u{1b}[2mSKIP\u{1b}[0m  3 more"), "{coloured}");
    assert!(!printed(&[("NO_COLOR", "1")]).contains('\u{1b}'));
}

/// A directory with a kubeconfig at its default place, another one, and the completion script.
fn completion_set_up() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let config = |names: &[&str]| {
        let entries = |name: &str, inner: &str| {
            let entries = names.iter().map(|one| format!("- {{name: '{name}{one}', {inner}: {{}}}}\n"));
            entries.collect::<String>()
        };
        let (contexts, clusters, users) =
            (entries("", "context"), entries("k-", "cluster"), entries("u-", "user"));
        format!("contexts:\n{contexts}clusters:\n{clusters}users:\n{users}")
    };
    fs::create_dir(dir.path().join(".kube")).unwrap();
    let names = ["prod", "preview", "staging", "arn:aws:eks:eu-west-1:1:cluster/x", "two words"];
    fs::write(dir.path().join(".kube/config"), config(&names)).unwrap();
    fs::write(dir.path().join("other.yaml"), config(&["elsewhere"])).unwrap();
    fs::write(dir.path().join("navicert.bash"), navicert(dir.path(), &["completions", "bash"]).stdout)
        .unwrap();
    dir
}

/// The candidates of bash for these words, the last of which is being typed.
fn candidates(dir: &Path, words: &[&str]) -> Vec<String> {
    let (last, before) = (words.last().unwrap(), words.iter().rev().nth(1).unwrap());
    let quoted = |word: &&str| format!("'{word}'");
    let script = format!(
        "source ./navicert.bash; COMP_WORDS=({}); COMP_CWORD={}; _navicert '{NAVICERT}' '{last}' '{before}' 2>/dev/null; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        [&[NAVICERT][..], words].concat().iter().map(quoted).collect::<Vec<_>>().join(" "),
        words.len(),
    );
    let outcome = Program::new("bash")
        .arguments(["--norc", "-c", &script])
        .directory(dir)
        .own_environment()
        .variable("HOME", dir)
        .variable("PATH", "/usr/bin:/bin")
        .run()
        .unwrap();
    text(&outcome.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_contexts_clusters_and_users() {
    let dir = completion_set_up();
    for (words, expected) in [
        (&["doctor", "--context", "pr"][..], &["prod", "preview"][..]),
        (&["whoami", "--context", "st"], &["staging"]),
        (&["image", "get", "a.io/b", "--context", "pro"], &["prod"]),
        (&["serve", "proxy", "--context", "prev"], &["preview"]),
        (&["whoami", "--kubeconfig", "other.yaml", "--context", ""], &["elsewhere"]),
        (&["whoami", "--kubeconfig", "~/other.yaml", "--context", ""], &["elsewhere"]),
        (&["whoami", "--cluster", "k-pr"], &["k-prod", "k-preview"]),
        (&["whoami", "--user", "u-s"], &["u-staging"]),
        (&["whoami", "--context", "two"], &["two\\ words"]),
        // bash splits words at colons and completes only what follows the last of them.
        (&["whoami", "--context", "arn", ":", "aws", ":", "e"], &["eks:eu-west-1:1:cluster/x"]),
        (&["whoami", "--context", "arn", ":"], &["aws:eks:eu-west-1:1:cluster/x"]),
        // Without splitting, as kubectl passes words on.
        (&["whoami", "--context", "arn:aws"], &["arn:aws:eks:eu-west-1:1:cluster/x"]),
        (&["whoami", "--context", "nothing"], &[""]),
        // A file, although the option has the same name.
        (&["cel", "eval", "--user", "oth"], &["other.yaml"]),
        (&["kubeconfig", "vi"], &["view"]),
    ] {
        let mut found = candidates(dir.path(), words);
        let mut expected: Vec<String> = expected.iter().map(|name| (*name).to_owned()).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{words:?}");
    }
}

#[test]
fn completion_of_a_broken_kubeconfig_prints_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("broken.yaml"), "contexts: {\n").unwrap();
    for words in [&["--kubeconfig", "broken.yaml"][..], &["--kubeconfig", "missing.yaml"], &[]] {
        let outcome = navicert(dir.path(), &[&["complete-names", "contexts", "--"][..], words].concat());
        assert_eq!(
            (outcome.code(), text(&outcome.stdout), text(&outcome.stderr)),
            (Some(0), String::new(), String::new())
        );
    }
}
