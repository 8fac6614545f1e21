//! Generates docs/reference/: the verbs from the program's own help, the configuration from the JSON Schemas.

use std::fmt::Write as _;

use navicert_testkit::Program;
use navicert_testkit::cli::transcript::check_generated;
use serde_json::Value;

use super::contents::with_contents;
use super::{read, workspace};

const SCHEMAS: [(&str, &str); 3] = [
    ("navicert-configuration.json", "Read by every verb with `--navicert-config`, and by the servers."),
    ("authentication-test.json", "A suite for `navicert authn test`."),
    (
        "revocation-list.json",
        "Named by `revocationList` of a NavicertConfiguration; reloaded when it changes.",
    ),
];

#[test]
fn reference_of_verbs_is_current() {
    let mut page = String::from(
        "# Verbs\n\nEvery verb with its options, as `navicert help VERB` prints it. A test generates this page from the program.\n\n",
    );
    let mut sections = String::new();
    describe(&[], &mut page, &mut sections);
    page.push_str(&sections);
    check_generated(&workspace().join("docs/reference/verbs.md"), &page);
}

#[test]
fn reference_of_configuration_is_current() {
    let mut page = String::from(
        "# Configuration\n\nThe fields of navicert's own files, generated from their JSON Schemas by a test. kube-apiserver's \
         AuthenticationConfiguration is described in [configurations and tokens](../authentication.md), the kubelet's \
         CredentialProviderConfig in [image credentials](../images.md).\n",
    );
    for (file, used) in SCHEMAS {
        let schema: Value = serde_json::from_str(&read(&format!("docs/schemas/{file}"))).unwrap();
        let title = text(&schema, "title");
        let _ = write!(
            page,
            "\n## {title}\n\n{}. {used} Schema: [{file}](../schemas/{file}).\n\n",
            text(&schema, "description")
        );
        page.push_str("| field | value | default | meaning |\n| --- | --- | --- | --- |\n");
        fields(&schema, &schema, "", &mut page);
    }
    check_generated(&workspace().join("docs/reference/configuration.md"), &with_contents(&page));
}

const PROVIDERS: [(&str, &str); 9] = [
    ("okta", "Okta"),
    ("entra-id", "Microsoft Entra ID"),
    ("google", "Google"),
    ("keycloak", "Keycloak"),
    ("dex", "Dex"),
    ("auth0", "Auth0"),
    ("github-actions", "GitHub Actions"),
    ("gitlab-ci", "GitLab CI/CD"),
    ("spiffe", "SPIFFE"),
];

#[test]
fn configurations_of_providers_are_the_examples() {
    let mut page = String::from(
        "# Provider by provider\n\nComplete AuthenticationConfigurations, each with a suite in \
         [examples/authentication](../examples/authentication/README.md). Replace the names with your own, then run \
         `navicert authn check` and `navicert authn test`. A test generates this page from the examples and checks every one of them.\n",
    );
    for (name, title) in PROVIDERS {
        let file = format!("examples/authentication/{name}.yaml");
        let _ = write!(page, "\n## {title}\n\n```yaml\n{}```\n", read(&file));
    }
    check_generated(&workspace().join("docs/providers.md"), &with_contents(&page));
    let complete = format!("```yaml\n{}```", read("examples/authentication/keycloak.yaml"));
    assert!(read("docs/authentication.md").contains(&complete), "docs/authentication.md shows another file");
}

/// The help of a verb and of every verb below it: a line of contents each, and a section each.
fn describe(path: &[String], contents: &mut String, sections: &mut String) {
    let arguments = path.iter().map(String::as_str).chain(["--help"]);
    let outcome =
        Program::new(env!("CARGO_BIN_EXE_navicert")).arguments(arguments).own_environment().run().unwrap();
    let help = String::from_utf8(outcome.stdout).unwrap();
    let name = ["navicert".to_owned()].iter().chain(path).cloned().collect::<Vec<_>>().join(" ");
    assert!(outcome.status.success() && !help.contains("```"), "{name}");
    let summary = help.lines().next().unwrap();
    let anchor = name.replace(' ', "-");
    let _ = writeln!(contents, "{}- [`{name}`](#{anchor}): {}", "  ".repeat(path.len()), escape(summary));
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    let _ = write!(sections, "\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n"));
    for verb in verbs(&help) {
        describe(&[path, &[verb]].concat(), contents, sections);
    }
}

/// The verbs in the list of a help text.
fn verbs(help: &str) -> Vec<String> {
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let list = list.split("\n\n").next().unwrap();
    let named = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    named.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

fn fields(root: &Value, schema: &Value, prefix: &str, page: &mut String) {
    let schema = resolve(root, schema);
    let Some(properties) = schema["properties"].as_object() else { return };
    for (name, property) in properties {
        let resolved = resolve(root, property);
        let path = format!("{prefix}{name}");
        let meaning = match text(property, "description") {
            own if own.is_empty() => text(resolved, "description"),
            own => own,
        };
        let default = match property.get("default").or(resolved.get("default")) {
            Some(Value::String(word)) => format!("`{word}`"),
            Some(value) => format!("`{value}`"),
            None => String::new(),
        };
        let _ = writeln!(page, "| `{path}` | {} | {default} | {} |", kind(root, property), escape(&meaning));
        fields(root, property, &format!("{path}."), page);
        if resolved["type"] == "array" {
            fields(root, &resolved["items"], &format!("{path}[]."), page);
        }
    }
}

/// What a property may be, in a word or the list of its values.
fn kind(root: &Value, property: &Value) -> String {
    let named = property["$ref"].as_str().and_then(|name| name.rsplit('/').next());
    if named == Some("duration") {
        return "duration".to_owned();
    }
    let resolved = resolve(root, property);
    if let Some(values) = resolved["enum"].as_array() {
        let word = |value: &Value| format!("`{}`", value.as_str().map_or(value.to_string(), str::to_owned));
        return values.iter().map(word).collect::<Vec<_>>().join(", ");
    }
    if let Some(value) = resolved.get("const") {
        return format!("`{}`", value.as_str().unwrap_or_default());
    }
    match resolved["type"].as_str() {
        Some("array") => format!("list of {}", kind(root, &resolved["items"])),
        Some(word) => word.to_owned(),
        None => "any".to_owned(),
    }
}

fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(name) => root.pointer(name.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

fn text(schema: &Value, field: &str) -> String {
    schema[field].as_str().unwrap_or_default().to_owned()
}

/// For a cell of a table: no bars, and nothing that is taken for HTML.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}
