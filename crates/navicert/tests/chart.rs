//! The Helm chart in charts/navicert without Helm: its generated files have the content of their sources, and what it renders (charts/golden) has the
//! roles, configurations and arguments that the program accepts. `make test-chart` renders and installs it.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test's helpers fail by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

use navicert_testkit::cli::program::Outcome;
use navicert_testkit::{Ca, Program};
use navicert_types::tree::{Syntax, parse};
use serde_json::{Map, Value, json};

const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = workspace().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml(text: &str) -> Value {
    let tree = parse(text.as_bytes(), Syntax::Yaml).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    serde_json::from_str(&tree.to_json()).unwrap()
}

fn schema() -> Value {
    serde_json::from_str(&read("charts/navicert/values.schema.json")).unwrap()
}

// --- what is written by scripts/generate-chart -------------------------------------------------------------------------

/// Calls `visit` with the path, the schema and the default of every value that is no group of values.
fn visit_values(path: &str, schema: &Value, defaults: &Value, visit: &mut impl FnMut(&str, &Value, &Value)) {
    assert!(!schema["description"].as_str().unwrap().is_empty(), "{path} has no description");
    let Some(properties) = schema["properties"].as_object() else {
        return visit(path, schema, defaults);
    };
    assert_eq!(schema["additionalProperties"], json!(false), "{path} takes unknown keys");
    let names = |object: &Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
    let defaults = defaults.as_object().unwrap_or_else(|| panic!("values.yaml: {path} is no mapping"));
    let (mut known, mut given) = (names(properties), names(defaults));
    known.sort();
    given.sort();
    assert_eq!(known, given, "{path}: keys of the schema and of values.yaml");
    for (name, property) in properties {
        let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        visit_values(&inner, property, &defaults[name], visit);
    }
}

#[test]
fn schema_and_table_cover_every_value_with_its_default() {
    let (schema, values) = (schema(), yaml(&read("charts/navicert/values.yaml")));
    let readme = read("charts/navicert/README.md");
    let mut count = 0;
    visit_values("", &schema, &values, &mut |path, property, default| {
        count += 1;
        assert_eq!(&property["default"], default, "{path}: default of the schema and of values.yaml");
        let typed = ["type", "enum", "$ref"].iter().any(|key| property.get(key).is_some());
        assert!(typed, "{path} has no type");
        let row = readme.lines().find(|line| line.starts_with(&format!("| `{path}` | ")));
        let row = row.unwrap_or_else(|| panic!("README.md has no row for {path}"));
        assert!(row.contains(property["description"].as_str().unwrap()), "{row}");
    });
    assert!(count > 80, "only {count} values were found");
    let rows = readme.lines().filter(|line| line.starts_with("| `")).count();
    let mut groups = 0;
    count_groups(&schema, &mut groups);
    assert_eq!(rows, count + groups - 1, "rows of README.md, for values and groups of values");
}

fn count_groups(schema: &Value, groups: &mut usize) {
    if let Some(properties) = schema["properties"].as_object() {
        *groups += 1;
        properties.values().for_each(|property| count_groups(property, groups));
    }
}

#[test]
fn every_reference_of_the_schema_leads_to_a_definition() {
    let schema = schema();
    let (mut pending, mut count) = (vec![&schema], 0);
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => {
                if let Some(target) = members.get("$ref").and_then(Value::as_str) {
                    count += 1;
                    let pointer = target.strip_prefix('#').unwrap();
                    assert!(schema.pointer(pointer).is_some(), "no {target}");
                }
                // An object that lists its properties refuses all others.
                if members.contains_key("properties") && members["type"] == "object" {
                    assert_eq!(members.get("additionalProperties"), Some(&json!(false)), "{value}");
                }
                pending.extend(members.values());
            }
            _ => {}
        }
    }
    assert!(count > 30, "only {count} references were found");
}

#[test]
fn schema_holds_the_schemas_of_both_configurations() {
    let schema = schema();
    for (file, name) in
        [("navicert-configuration.json", "navicertConfiguration"), ("revocation-list.json", "revocationList")]
    {
        let source = read(Path::new("docs/schemas").join(file));
        let moved = source.replace("\"#/$defs/", &format!("\"#/$defs/{name}/$defs/"));
        let mut expected: Value = serde_json::from_str(&moved).unwrap();
        expected.as_object_mut().unwrap().remove("$schema");
        assert_eq!(schema["$defs"][name], expected, "run `make deploy-example`");
    }
}

#[test]
fn alerts_and_dashboard_are_those_of_packaging() {
    for file in ["alerts.yaml", "dashboard.json"] {
        let copy = read(Path::new("charts/navicert/files").join(file));
        assert_eq!(
            copy,
            read(Path::new("packaging/monitoring").join(file)),
            "{file}: run `make deploy-example`"
        );
    }
    let golden = Golden::read("proxy-full");
    let alerts = yaml(&read("packaging/monitoring/alerts.yaml"));
    assert_eq!(golden.object("PrometheusRule", "navicert-proxy")["spec"], alerts);
    let dashboard = &golden.object("ConfigMap", "navicert-proxy-dashboard")["data"]["navicert.json"];
    let dashboard: Value = serde_json::from_str(dashboard.as_str().unwrap()).unwrap();
    let source: Value = serde_json::from_str(&read("packaging/monitoring/dashboard.json")).unwrap();
    assert_eq!(dashboard, source);
}

#[test]
fn chart_has_the_version_of_the_workspace() {
    let chart = yaml(&read("charts/navicert/Chart.yaml"));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!((&chart["version"], &chart["appVersion"]), (&json!(version), &json!(version)));
}

// --- what the chart renders --------------------------------------------------------------------------------------------

/// A file of charts/golden: what `helm template navicert --namespace navicert` renders.
struct Golden {
    name: String,
    text: String,
    objects: Vec<Value>,
}

impl Golden {
    fn read(name: &str) -> Self {
        let text = read(format!("charts/golden/{name}.yaml"));
        let documents = text.split("---\n").filter(|text| !text.trim().is_empty());
        let objects = documents.map(yaml).collect();
        Golden { name: name.to_owned(), text, objects }
    }

    fn all() -> Vec<Self> {
        let mut names: Vec<String> = fs::read_dir(workspace().join("charts/navicert/ci"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .map(|file| file.strip_suffix("-values.yaml").unwrap().to_owned())
            .collect();
        names.sort();
        assert!(names.len() >= 10, "{names:?}");
        names.iter().map(|name| Golden::read(name)).collect()
    }

    fn find(&self, kind: &str) -> Option<&Value> {
        self.objects.iter().find(|object| object["kind"] == kind)
    }

    fn object(&self, kind: &str, name: &str) -> &Value {
        let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        self.objects.iter().find(is_it).unwrap_or_else(|| panic!("{}: no {kind} {name}", self.name))
    }

    /// The value of this case that its file in charts/navicert/ci sets.
    fn value(&self, pointer: &str) -> Option<Value> {
        yaml(&read(format!("charts/navicert/ci/{}-values.yaml", self.name))).pointer(pointer).cloned()
    }

    /// The data of the ConfigMap that a volume of the pod mounts, if the chart renders it.
    fn mounted(&self, volume: &str) -> Option<&Map<String, Value>> {
        let pod = &self.find("Deployment").unwrap()["spec"]["template"]["spec"];
        let volumes = pod["volumes"].as_array().unwrap();
        let name = &volumes.iter().find(|one| one["name"] == volume)?["configMap"]["name"];
        let is_it = |object: &&Value| object["kind"] == "ConfigMap" && &object["metadata"]["name"] == name;
        self.objects.iter().find(is_it)?["data"].as_object()
    }

    fn container(&self) -> &Value {
        &self.find("Deployment").unwrap()["spec"]["template"]["spec"]["containers"][0]
    }

    /// The objects of one template as text, without empty lines, comments and Helm's labels.
    fn template(&self, name: &str) -> String {
        let source = format!("# Source: navicert/templates/{name}\n");
        let documents = self.text.split("---\n").filter(|text| text.starts_with(&source));
        documents.map(without_comments).collect::<Vec<_>>().join("---\n")
    }
}

fn without_comments(text: &str) -> String {
    let is_kept = |line: &&str| {
        let line = line.trim_start();
        let helm = ["helm.sh/chart: ", "app.kubernetes.io/managed-by: "];
        !line.is_empty() && !line.starts_with('#') && !helm.iter().any(|label| line.starts_with(label))
    };
    text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
}

/// A pod's file system below a temporary directory: the files of the ConfigMaps, and what Secrets and the kubelet would add.
struct PodFiles {
    dir: tempfile::TempDir,
}

impl PodFiles {
    fn new(golden: &Golden) -> Self {
        let files = PodFiles { dir: tempfile::tempdir().unwrap() };
        for volume in ["authentication", "revocations"] {
            for (name, content) in golden.mounted(volume).into_iter().flatten() {
                files.write(&format!("{volume}/{name}"), &files.moved(content.as_str().unwrap()));
            }
        }
        let ca = Ca::new("root");
        let identity = ca.server().issue();
        files.write("tls/tls.crt", &identity.chain_pem());
        files.write("tls/tls.key", &identity.key_pem());
        files.write("tls/bundle.pem", &format!("{}{}", identity.key_pem(), identity.chain_pem()));
        files.write("client-ca/ca.crt", &ca.pem());
        files.write("bearer-token/token", "0123456789abcdef");
        files.write("issuers/other.crt", &ca.pem());
        let upstream = json!({
            "current-context": "upstream",
            "contexts": [{"name": "upstream", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", "certificate-authority": "../client-ca/ca.crt"}}],
            "users": [{"name": "u", "user": {"token": "canary"}}],
        });
        files.write("kubeconfig/kubeconfig", &upstream.to_string());
        files
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// A text that names files of the pod.
    fn moved(&self, text: &str) -> String {
        text.replace("/etc/navicert/", &format!("{}/", self.dir.path().display()))
    }

    fn navicert(&self, arguments: &[String]) -> Outcome {
        Program::new(NAVICERT).arguments(arguments).directory(self.dir.path()).run().unwrap()
    }
}

fn printed(outcome: &Outcome) -> String {
    assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    String::from_utf8(outcome.stdout.clone()).unwrap()
}

// S270: the role of every rendered proxy is exactly the one that its configuration needs.
#[test]
fn roles_are_those_that_print_rbac_prints() {
    let mut compared = Vec::new();
    for golden in Golden::all() {
        if golden.mounted("authentication").is_none() || golden.container()["name"] != "proxy" {
            let rules = golden.find("ClusterRole").map(|role| role["rules"].clone());
            assert_eq!(rules, golden.value("/rbac/rules"), "{}: only the given rules", golden.name);
            continue;
        }
        let files = PodFiles::new(&golden);
        let account = golden.find("ServiceAccount").unwrap()["metadata"]["name"].as_str().unwrap();
        let mut arguments: Vec<String> = ["serve", "proxy", "--print-rbac"].map(str::to_owned).into();
        arguments.push(
            files.moved("--authentication-config=/etc/navicert/authentication/authentication-config.yaml"),
        );
        arguments.push(files.moved("--navicert-config=/etc/navicert/authentication/navicert.yaml"));
        arguments.push(format!("--rbac-subject=system:serviceaccount:navicert:{account}"));
        if golden.value("/rbac/impersonation") == Some(json!("constrained")) {
            arguments.push("--constrained".to_owned());
        }
        let text = printed(&files.navicert(&arguments));
        let Some((role, binding)) = text.split_once("---\n") else {
            assert!(text.starts_with("# No role: "), "{text}");
            assert!(golden.find("ClusterRole").is_none(), "{}: a front proxy needs no role", golden.name);
            continue;
        };
        let (role, binding) = (yaml(role), yaml(binding));
        assert_eq!(golden.object("ClusterRole", "navicert-proxy")["rules"], role["rules"], "{}", golden.name);
        let rendered = golden.object("ClusterRoleBinding", "navicert-proxy");
        for field in ["roleRef", "subjects"] {
            assert_eq!(rendered[field], binding[field], "{}", golden.name);
        }
        compared.push(golden.name);
    }
    assert_eq!(compared, ["example", "proxy-constrained", "proxy-full", "proxy-minimal"]);
}

#[test]
fn configurations_and_arguments_pass_the_programs_checks() {
    let mut checked = Vec::new();
    for golden in Golden::all() {
        if golden.mounted("authentication").is_none() {
            continue;
        }
        let files = PodFiles::new(&golden);
        let path = files.moved("/etc/navicert/authentication/authentication-config.yaml");
        printed(&files.navicert(&["authn".to_owned(), "check".to_owned(), path]));

        let arguments = golden.container()["args"].as_array().unwrap();
        let mut arguments: Vec<String> =
            arguments.iter().map(|argument| files.moved(argument.as_str().unwrap())).collect();
        // In a cluster the proxy's credential is its service account's.
        if golden.container()["name"] == "proxy"
            && !arguments.iter().any(|one| one.starts_with("--kubeconfig="))
        {
            arguments.push(files.moved("--kubeconfig=/etc/navicert/kubeconfig/kubeconfig"));
        }
        arguments.push("--check".to_owned());
        let text = printed(&files.navicert(&arguments));
        assert!(text.starts_with("ok: "), "{}: {text}", golden.name);
        checked.push(golden.name);
    }
    assert_eq!(checked.len(), Golden::all().len() - 1, "all but `existing`: {checked:?}");
}

/// A volume that is mounted and missing, or the other way round, is found by the kubelet only.
#[test]
fn every_volume_is_mounted_and_every_file_is_below_a_mount() {
    for golden in Golden::all() {
        let pod = &golden.find("Deployment").unwrap()["spec"]["template"]["spec"];
        let names = |list: &Value| {
            let mut names: Vec<String> =
                list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
            names.sort();
            names
        };
        let mounts = &golden.container()["volumeMounts"];
        assert_eq!(names(&pod["volumes"]), names(mounts), "{}", golden.name);
        for argument in golden.container()["args"].as_array().unwrap() {
            let Some((_, path)) = argument.as_str().unwrap().split_once("=/") else { continue };
            let is_below = |mount: &Value| {
                format!("/{path}").starts_with(&format!("{}/", mount["mountPath"].as_str().unwrap()))
            };
            assert!(mounts.as_array().unwrap().iter().any(is_below), "{}: {argument}", golden.name);
        }
    }
}

#[test]
fn every_pod_runs_without_privileges() {
    for golden in Golden::all() {
        let pod = &golden.find("Deployment").unwrap()["spec"]["template"]["spec"];
        let context = &pod["securityContext"];
        assert_eq!((&context["runAsNonRoot"], &context["runAsUser"]), (&json!(true), &json!(65532)));
        assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault");
        let expected = json!({
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        });
        assert_eq!(golden.container()["securityContext"], expected, "{}", golden.name);
        let is_proxy = golden.container()["name"] == "proxy";
        let has_kubeconfig = golden.value("/proxy/kubeconfig/secretName").is_some();
        assert_eq!(
            pod["automountServiceAccountToken"],
            json!(is_proxy && !has_kubeconfig),
            "{}",
            golden.name
        );
    }
}

/// Settings that are read at the start restart the pods, all others do not.
#[test]
fn only_settings_that_need_a_restart_are_in_the_checksum() {
    for golden in Golden::all() {
        let checksum = &golden.find("Deployment").unwrap()["spec"]["template"]["metadata"]["annotations"]["checksum/restart-settings"];
        let pointers = [
            "/navicertConfiguration/servers",
            "/navicertConfiguration/egress",
            "/authenticationConfiguration/anonymous",
        ];
        let needs = pointers.iter().any(|pointer| golden.value(pointer).is_some());
        assert_eq!(checksum.is_string(), needs, "{}", golden.name);
    }
}

#[test]
fn example_manifests_are_the_rendered_ones() {
    let golden = Golden::read("example");
    let example = |file: &str| without_comments(&read(Path::new("examples/deploy").join(file)));
    for file in [
        "service-account.yaml",
        "impersonation.yaml",
        "deployment.yaml",
        "service.yaml",
        "disruption-budget.yaml",
        "autoscaler.yaml",
        "network-policy.yaml",
    ] {
        let rendered = golden.template(file);
        assert!(rendered.starts_with("apiVersion: "), "{file} is not rendered");
        assert_eq!(example(file), rendered, "{file}: run `make deploy-example`");
    }
    for (volume, file) in [
        ("authentication", "authentication-config.yaml"),
        ("authentication", "navicert.yaml"),
        ("revocations", "revocations.yaml"),
    ] {
        let data = golden.mounted(volume).unwrap()[file].as_str().unwrap();
        assert_eq!(example(file), data, "{file}: run `make deploy-example`");
    }
    // The generator of the ConfigMaps has the names and keys that the Deployment mounts.
    let kustomization = yaml(&read("examples/deploy/kustomization.yaml"));
    let generated: Vec<Value> = kustomization["configMapGenerator"].as_array().unwrap().clone();
    let expected = json!([
        {"name": "navicert-proxy-configuration", "files": ["authentication-config.yaml", "navicert.yaml"]},
        {"name": "navicert-proxy-revocations", "files": ["revocations.yaml"]},
    ]);
    assert_eq!(Value::from(generated), expected);
    assert!(
        golden.find("ConfigMap").is_some_and(|map| map["metadata"]["name"] == "navicert-proxy-configuration")
    );
}
