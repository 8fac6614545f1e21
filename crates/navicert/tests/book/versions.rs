//! Generates docs/kubernetes-versions.md from the facts that the code uses and the decisions recorded per version.

use std::fmt::Write as _;

use navicert_authn::KubeVersion;
use navicert_cel::kubernetes::language_rows;
use navicert_testkit::cli::transcript::check_generated;
use navicert_testkit::k8s::vectors::{self, VersionCounts};

use crate::contents::with_contents;
use crate::workspace;

const INTRODUCTION: &str = "\
# Kubernetes versions

Kubernetes changes how it decides on tokens between minor versions, mostly with its libraries and without a word in its release
notes. navicert decides like one version at a time: profile `kube` like its kube-apiserver, profile `hardened` like it and by
stricter rules. Select the version of your cluster; the default is the newest stable one.

```sh tested=crates/navicert/tests/transcripts/authn-versions.md
navicert authn eval --kube-version 1.36 --config auth.yaml --jwks jwks.json --token-file token.jwt
navicert serve webhook --kube-version 1.38 …
navicert authn diff --from 1.37 --to 1.38 auth.yaml
```

`--kube-version` is an option of `authn check`, `eval`, `explain`, `test`, of `cel check` and `eval`, and of `serve`. In a
NavicertConfiguration it is `kubeVersion: \"1.38\"`; the option takes precedence. `authn explain` names the versions that decide
otherwise on a token. [`authn diff`](authentication.md#compare-two-versions) shows what an upgrade changes for your own file.

Profile `hardened` rejects whatever the selected version rejects, with three exceptions that are rules of their own: it skips
unreadable keys (H21), refreshes keys by itself (H22), and has wider expressions. Its leeway for `nbf` is the smallest of all
versions (H12).

A test generates this page from the table in the code and from the recorded decisions.
";

/// The recorded kinds, with what they are about.
const KINDS: [&str; 13] = [
    "authn-config",
    "authn-token",
    "cel",
    "k8s/generated",
    "exec-flow",
    "exec-info",
    "exec-output",
    "image-config",
    "image-keyring",
    "image-match",
    "image-response",
    "kubeconfig",
    "request-info",
];

const OTHER_SIDES: &str = "\
## Image credential providers

| | 1.34 | 1.35 | 1.36 | 1.37 | 1.38 |
| --- | --- | --- | --- | --- | --- |
| decisions on configurations, matching, keyrings and responses | no change known | no change known | no change known | recorded | no change known |
| service account tokens (`tokenAttributes`) | beta, on | beta, on | beta, on | beta, on | beta, on |
| images already on the node are verified (`KubeletEnsureSecretPulledImages`) | alpha, off | beta, on | beta, on | beta, on | beta, on |

## Exec credential plugins

| | 1.34 | 1.35 | 1.36 | 1.37 | 1.38 |
| --- | --- | --- | --- | --- | --- |
| running a plugin, its input, its output, its cache | no change | no change | no change | recorded | no change |
| name of an allowlist entry in kuberc | `name` | `name` | `command` | `command` | `command` |

## Not followed

| what | Kubernetes | navicert, in every version |
| --- | --- | --- |
| `quantity.add` and `sub` of a quantity that is too large for 64 bits | until 1.36 change the receiver as well | never change it |
| whole quantities of 19 digits that fit into 64 bits, as text or as a sum | 1.38: `isInteger` is true, `asInteger` gives the number | as 1.37: `isInteger` is false, `asInteger` fails |
| request for the key set | 1.38 sends `Cache-Control: no-cache` | does not |
| limit of key set fetches | 1.38 has one, which never limits | profile `kube` has none, profile `hardened` limits |
";

#[test]
fn page_of_versions_is_current() {
    let mut page = INTRODUCTION.to_owned();
    page += "\n## Tokens and keys\n\n";
    page += &table(&KubeVersion::ALL.map(|version| version.facts().rows()));
    page += "\n## Expressions\n\n";
    let language = |version: KubeVersion| {
        let rows = language_rows(version.minor()).into_iter();
        rows.map(|(what, does)| (what, does.to_owned())).collect()
    };
    page += &table(&KubeVersion::ALL.map(language));
    page += "\n## Recorded decisions\n\n";
    page += &recorded();
    page += "\n";
    page += OTHER_SIDES;
    check_generated(&workspace().join("docs/kubernetes-versions.md"), &with_contents(&page));
}

/// One row per subject, one column per version; a cell that equals the one before is left out.
fn table(columns: &[Vec<(&'static str, String)>; KubeVersion::ALL.len()]) -> String {
    let mut text = header("");
    let subjects = columns.first().into_iter().flatten().map(|(what, _)| *what);
    for (row, what) in subjects.enumerate() {
        let cells = columns.iter().map(|column| column.get(row).map_or("", |(_, does)| does.as_str()));
        let mut before = None;
        let cells: Vec<&str> =
            cells.map(|cell| if before.replace(cell) == Some(cell) { "same" } else { cell }).collect();
        writeln!(text, "| {what} | {} |", cells.join(" | ").replace('\n', " ")).unwrap();
    }
    text
}

fn header(first: &str) -> String {
    let names: Vec<&str> = KubeVersion::ALL.iter().map(|version| version.name()).collect();
    format!("| {first} | {} |\n|{}\n", names.join(" | "), " --- |".repeat(names.len() + 1))
}

/// How many recorded decisions of a version differ from those of the newest stable one.
fn recorded() -> String {
    let mut text = "Each file of `conformance/vectors` is recorded from the code of every version; `make test`\n\
        compares all of them. The table has the number of questions, and how many answers differ from those of 1.37.\n\n"
        .to_owned();
    text += &header("questions");
    for kind in KINDS {
        let cell = |version: KubeVersion| match vectors::counts(version.name(), kind) {
            None => "not asked".to_owned(),
            Some(counts) if version == KubeVersion::default() => counts.asked.to_string(),
            Some(counts) if counts == VersionCounts { asked: counts.asked, ..VersionCounts::default() } => {
                format!("{}: no change", counts.asked)
            }
            Some(counts) => {
                let parts = [(counts.differ, "decisions"), (counts.cost, "costs"), (counts.text, "texts")];
                let parts = parts.iter().filter(|(count, _)| *count > 0);
                let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
                format!("{}: {}", counts.asked, parts.join(", "))
            }
        };
        let cells = KubeVersion::ALL.map(cell);
        writeln!(text, "| {kind} | {} |", cells.join(" | ")).unwrap();
    }
    text
}
