//! The authentication examples are valid for kube-apiserver and navicert, have no warnings, and their suites cover every
//! rule; the deployment has the limits and roles that are documented.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests, which run the program itself"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use navicert_types::tree::{Syntax, parse};

fn examples() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/authentication");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

fn is_suite(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".test.yaml")
}

fn navicert(arguments: &[&str], file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_navicert")).arg("authn").args(arguments).arg(file).output().unwrap()
}

#[test]
fn every_example_is_valid_without_warnings() {
    let configurations: Vec<PathBuf> = examples().into_iter().filter(|path| !is_suite(path)).collect();
    assert_eq!(configurations.len(), 9);
    for path in configurations {
        for profile in ["kube", "hardened"] {
            let output = navicert(&["check", "--deny-lints", "--profile", profile], &path);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && told.is_empty(), "{}, {profile}: {told}", path.display());
        }
        let suite = path.with_extension("test.yaml");
        assert!(suite.exists(), "{}", suite.display());
    }
}

#[test]
fn every_example_passes_its_suite_with_full_coverage() {
    let suites: Vec<PathBuf> = examples().into_iter().filter(|path| is_suite(path)).collect();
    assert_eq!(suites.len(), 9);
    for path in suites {
        for profile in ["kube", "hardened"] {
            let output = navicert(&["test", "--require-coverage", "--profile", profile], &path);
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{}, {profile}: {told}", path.display());
        }
    }
}

/// The patch repeats the arguments of the Deployment, because a list is replaced as a whole.
#[test]
fn the_pod_certificate_patch_changes_only_the_tls_files() {
    let arguments = |file: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/deploy").join(file);
        let text = std::fs::read_to_string(path).unwrap();
        let list = text.split_once("args:\n").unwrap().1.lines().map(str::trim);
        let list =
            list.take_while(|line| line.starts_with(['-', '#'])).filter_map(|line| line.strip_prefix("- "));
        let (tls, other): (Vec<_>, Vec<_>) =
            list.map(str::to_owned).partition(|line| line.starts_with("--tls-"));
        (tls, other)
    };
    let (bundle, patched) = arguments("pod-certificate.yaml");
    let (_, original) = arguments("deployment.yaml");
    assert_eq!(patched, original);
    let file = "/etc/navicert/tls/bundle.pem";
    assert_eq!(bundle, [format!("--tls-cert-file={file}"), format!("--tls-private-key-file={file}")]);
}

#[test]
fn the_limits_of_the_deployment_fit_its_memory_as_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let manifest = read("examples/deploy/deployment.yaml");
    let (_, limits) = manifest.split_once("limits:\n").unwrap();
    let memory = limits.trim_start().strip_prefix("memory: ").unwrap().split_once("Mi\n").unwrap().0;
    assert!(
        read("docs/serve.md").contains(&format!("\n| {memory} MiB |")),
        "{memory} MiB is a row of the table"
    );
    let page = read("docs/serve.md");
    let table = page.split_once("| memory | `connections` | `requests` | `unfinishedBytes` |\n").unwrap().1;
    let rows: Vec<&str> = table.lines().skip(1).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 3);
    for row in rows {
        let mebibytes: u64 = row.trim_start_matches("| ").split_once(" MiB").unwrap().0.parse().unwrap();
        let limits = navicert_server::ServerLimits::for_proxy().fit_to_memory(Some(mebibytes << 20));
        let expected = format!(
            "| {mebibytes} MiB | {} | {} | {} MiB |",
            limits.connections,
            limits.requests,
            limits.unfinished_bytes >> 20
        );
        assert_eq!(row, expected);
    }
}

/// The objects of a YAML file as JSON, without their labels.
fn objects(text: &str) -> Vec<serde_json::Value> {
    let documents = text.split("---\n").map(|document| {
        let tree = parse(document.as_bytes(), Syntax::Yaml).unwrap();
        let mut object: serde_json::Value = serde_json::from_str(&tree.to_json()).unwrap();
        object.pointer_mut("/metadata").unwrap().as_object_mut().unwrap().remove("labels");
        object
    });
    documents.collect()
}

// S270: the roles of the deployment are exactly those that its configuration needs.
#[test]
fn the_roles_of_the_deployment_are_those_that_print_rbac_prints() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/deploy");
    let read = |name: &str| std::fs::read_to_string(deploy.join(name)).unwrap();
    for (file, flags) in
        [("impersonation.yaml", &[][..]), ("impersonation-constrained.yaml", &["--constrained"])]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_navicert"))
            .args(["serve", "proxy", "--authentication-config", "authentication-config.yaml"])
            .args(["--navicert-config", "navicert.yaml", "--print-rbac"])
            .args(flags)
            .current_dir(&deploy)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed = objects(&String::from_utf8(output.stdout).unwrap());
        assert_eq!(printed.len(), 2, "a role and its binding");
        assert_eq!(objects(&read(file)), printed, "{file}");
    }
}
