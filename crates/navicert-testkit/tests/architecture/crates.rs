//! What ARCHITECTURE.md says about crates, compared with their manifests and sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use navicert_testkit::Program;
use serde_json::Value;

use super::page;
use super::source::Sources;

/// A package of the workspace.
pub(crate) struct Package {
    /// Names of its normal and build dependencies.
    dependencies: BTreeSet<String>,
    development: BTreeSet<String>,
    /// Root files of its library and binaries.
    pub(crate) roots: Vec<PathBuf>,
}

/// The packages by name, as Cargo knows them.
pub(crate) fn packages() -> BTreeMap<String, Package> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"];
    let manifest = super::workspace().join("Cargo.toml");
    let cargo = Program::new(env!("CARGO"))
        .arguments(arguments)
        .arguments(["--manifest-path".as_ref(), manifest.as_os_str()]);
    let outcome = cargo.run().unwrap();
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stderr));
    let metadata: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages.map(|package| (text(&package["name"]), read_package(package))).collect()
}

fn read_package(package: &Value) -> Package {
    let list = |name: &str| package[name].as_array().unwrap().iter();
    let dependencies = |is_development: bool| {
        list("dependencies")
            .filter(move |dependency| (dependency["kind"] == "dev") == is_development)
            .map(|dependency| text(&dependency["name"]))
            .collect()
    };
    let is_product = |target: &&Value| ["lib", "bin"].iter().any(|kind| text(&target["kind"][0]) == *kind);
    Package {
        dependencies: dependencies(false),
        development: dependencies(true),
        roots: list("targets").filter(is_product).map(|target| text(&target["src_path"]).into()).collect(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// A row of the table: crate, the workspace's crates that it depends on, and what it must not do.
struct Row {
    name: String,
    dependencies: BTreeSet<String>,
    rules: Vec<String>,
}

fn rows() -> Vec<Row> {
    let architecture = page("ARCHITECTURE.md");
    let quoted =
        |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(ToOwned::to_owned).collect() };
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, _, dependencies, rules, _] = cells.as_slice() else {
            panic!("not four columns: {line}")
        };
        let rules = rules.split(", ").map(ToOwned::to_owned).collect();
        Row { name: quoted(name).remove(0), dependencies: quoted(dependencies).into_iter().collect(), rules }
    };
    architecture.lines().filter(|line| line.starts_with("| `navicert")).map(row).collect()
}

const NETWORK: &[&str] = &[
    "socket2",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::ToSocketAddrs",
    "std::net::UdpSocket",
    "tokio::net",
];
const UNIX_SOCKETS: &[&str] = &["std::os::unix::net"];
const LISTENERS: &[&str] = &[
    "std::net::TcpListener",
    "std::os::unix::net::UnixListener",
    "tokio::net::TcpListener",
    "tokio::net::UnixListener",
];
const OTHER_IO: &[&str] = &[
    "std::env",
    "std::fs",
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
    "std::process",
    "rustix",
    "tokio",
];
const HTTP: &[&str] = &["http", "httparse", "hyper", "hyper-util"];
const CLOUDS: &[&str] = &["aws-credential-types", "aws-sigv4"];
const VERIFIERS: &[&str] = &[
    "aws_lc_rs::hmac",
    "aws_lc_rs::signature::ParsedPublicKey",
    "aws_lc_rs::signature::UnparsedPublicKey",
    "aws_lc_rs::signature::VerificationAlgorithm",
    "jsonwebtoken",
];
const PROGRAMS: &[&str] = &["std::process::Command", "tokio::process"];

/// Rules of the table that only a reader can check.
const FOR_READERS: &[&str] = &["decide who a token belongs to", "hold logic"];

/// Why a package breaks a rule; empty if it does not.
fn violations(rule: &str, name: &str, packages: &BTreeMap<String, Package>) -> Vec<String> {
    let package = &packages[name];
    let depends = |on: &[&str]| -> Vec<String> {
        let dependencies = on.iter().filter(|dependency| package.dependencies.contains(**dependency));
        dependencies.map(|dependency| format!("depends on {dependency}")).collect()
    };
    let names = |prefixes: &[&str]| -> Vec<String> {
        package.roots.iter().flat_map(|root| Sources::read(root).naming(prefixes)).collect()
    };
    let dependents = |is_allowed: &dyn Fn(&str, &Package) -> bool| -> Vec<String> {
        let dependents = packages.iter().filter(|(other, package)| !is_allowed(other, package));
        dependents.map(|(other, _)| format!("{other} depends on it")).collect()
    };
    match rule {
        "do I/O" => names(&[NETWORK, UNIX_SOCKETS, OTHER_IO].concat()),
        "open a socket" => names(&[NETWORK, UNIX_SOCKETS].concat()),
        "listen" => names(LISTENERS),
        "depend on the workspace" => {
            let workspace = package.dependencies.iter().filter(|name| packages.contains_key(*name));
            workspace.map(|name| format!("depends on {name}")).collect()
        }
        "know Kubernetes objects" => depends(&["k8s-openapi", "kube", "navicert-types"]),
        "know what is sent" => depends(&[HTTP, &["rustls", "serde", "serde_json"]].concat()),
        "know what the program is for" => names(&[
            "navicert_types::exec_credential",
            "navicert_types::external_signer",
            "navicert_types::image_credential",
            "navicert_types::kubeconfig",
        ]),
        "speak HTTP" => depends(HTTP),
        "get a credential itself" => depends(&["navicert-plugin", "navicert-signer"]),
        "call a cloud" => [depends(&[HTTP, CLOUDS, &["rustls", "tokio"]].concat()), names(NETWORK)].concat(),
        "be a dependency" => {
            dependents(&|_, other| !other.dependencies.contains(name) && !other.development.contains(name))
        }
        "be on a server's path" => {
            dependents(&|other, package| !package.dependencies.contains(name) || other == "navicert")
        }
        "verify a token with code of its own" => names(VERIFIERS),
        "be part of a program" => dependents(&|other, package| {
            !package.dependencies.contains(name)
                || ["navicert-bench", "navicert-conformance"].contains(&other)
        }),
        _ if FOR_READERS.contains(&rule) => Vec::new(),
        _ => vec!["the rule has no check in crates/navicert-testkit/tests/architecture".to_owned()],
    }
}

#[test]
fn crates_depend_on_what_the_table_says() {
    let (packages, rows) = (packages(), rows());
    let listed: BTreeSet<&String> = rows.iter().map(|row| &row.name).collect();
    assert_eq!(listed, packages.keys().collect(), "the table lists every crate");
    for row in &rows {
        let package = &packages[&row.name];
        let actual: BTreeSet<String> =
            package.dependencies.iter().filter(|name| packages.contains_key(*name)).cloned().collect();
        assert_eq!(row.dependencies, actual, "{} in ARCHITECTURE.md, and its manifest", row.name);
    }
}

/// Every crate depends on crates below it, and a crate stands below another one if it is listed before it.
#[test]
fn no_dependency_points_up() {
    let rows = rows();
    for (index, row) in rows.iter().enumerate() {
        let below: BTreeSet<&String> = rows[..index].iter().map(|row| &row.name).collect();
        let up: Vec<_> = row.dependencies.iter().filter(|name| !below.contains(name)).collect();
        assert!(up.is_empty(), "{} depends on {up:?}, listed after it", row.name);
    }
}

#[test]
fn no_crate_does_what_the_table_forbids() {
    let packages = packages();
    let mut checked = 0;
    for row in rows() {
        for rule in &row.rules {
            let violations = violations(rule, &row.name, &packages);
            assert!(violations.is_empty(), "{} must not {rule}: {violations:#?}", row.name);
            checked += 1;
        }
    }
    assert!(checked >= 20, "{checked} rules");
}

/// "The only crate that …" of the table.
#[test]
fn only_one_crate_has_certain_dependencies() {
    for (dependency, owner) in [
        ("cryptoki", "navicert-signer"),
        ("kube", "navicert-kube"),
        ("aws-sigv4", "navicert-registries"),
        ("aws-credential-types", "navicert-registries"),
        ("landlock", "navicert-server"),
    ] {
        let all = packages();
        let owners: Vec<&String> = all
            .iter()
            .filter(|(_, package)| package.dependencies.contains(dependency))
            .map(|(name, _)| name)
            .collect();
        assert_eq!(owners, [owner], "{dependency}");
    }
}

#[test]
fn only_navicert_plugin_starts_programs() {
    let for_tests = ["navicert-bench", "navicert-conformance", "navicert-testkit"];
    for (name, package) in packages() {
        // Programs that tests run, built with a feature that no program has.
        let product = package.roots.iter().filter(|root| !root.ends_with("navicert-confined-probe.rs"));
        let starting: Vec<String> = product.flat_map(|root| Sources::read(root).naming(PROGRAMS)).collect();
        let may = name == "navicert-plugin" || for_tests.contains(&name.as_str());
        assert_eq!(starting.is_empty(), !may || name == "navicert-conformance", "{name}: {starting:#?}");
    }
}
