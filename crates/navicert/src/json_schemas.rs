//! Generates docs/schemas/output and docs/reference/json-output.md from the types of the reports, and compares.
//! `NAVICERT_TRANSCRIPTS=overwrite` writes them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Command;
use navicert_authn::report as authn;
use navicert_cel::kubernetes::report as cel;
use navicert_client::report as client;
use navicert_client::report::exec_batch;
use navicert_client::report::kubeconfig_batch::ViewReport;
use navicert_image::report as image;
use navicert_image::report::batch as image_batch;
use navicert_server::report as server;
use navicert_signer::report as signer;
use navicert_testkit::cli::transcript::check_generated;
use navicert_types::report::{BatchResponse, ErrorReport};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::args;
use crate::command::help::{Topic, TopicList};
use crate::command::login::json_reports as login;
use crate::command::tls_verify::TlsVerifyReport;
use crate::command::version::VersionReport;

/// What a verb prints as JSON.
struct Output {
    /// The verbs, as on the command line.
    verbs: &'static [&'static str],
    form: Form,
    /// The name of the schema, without `.json`.
    schema: &'static str,
    generate: fn() -> Schema,
}

/// When a verb prints it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// With `-o json`.
    Result,
    /// With `-o json`, once when it has started.
    Started,
    /// With `--jsonl`, once per line.
    Line,
}

/// A kubeconfig, which Kubernetes defines; only its outline is described.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "described, not built")]
struct KubeconfigView {
    /// `v1`.
    #[schemars(rename = "apiVersion")]
    api_version: String,
    /// `Config`.
    kind: String,
    /// The clusters, each with its `name`; `null` if there is none.
    clusters: Option<Vec<Value>>,
    /// The users, each with its `name`; `null` if there is none. Secrets are redacted without `--raw`.
    users: Option<Vec<Value>>,
    /// The contexts, each with its `name`; `null` if there is none.
    contexts: Option<Vec<Value>>,
    /// The name of the current context.
    #[schemars(rename = "current-context")]
    current_context: String,
}

/// The answer of a credential plugin, which Kubernetes defines.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "described, not built")]
struct ExecCredentialAnswer {
    /// `client.authentication.k8s.io/v1`, or the version that the client asked for.
    #[schemars(rename = "apiVersion")]
    api_version: String,
    /// `ExecCredential`.
    kind: String,
    /// The credential.
    status: ExecCredentialStatus,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "described, not built")]
struct ExecCredentialStatus {
    /// The token.
    token: String,
    /// When to get another one.
    expiration_timestamp: String,
    /// The client certificate of `--with-client-certificate`.
    #[schemars(skip_serializing_if = "Option::is_none")]
    client_certificate_data: Option<String>,
    /// Its key.
    #[schemars(skip_serializing_if = "Option::is_none")]
    client_key_data: Option<String>,
}

/// A kubeconfig may have further fields, such as extensions.
fn kubeconfig_view() -> Schema {
    let mut schema = schema::<KubeconfigView>();
    schema.insert("additionalProperties".to_owned(), Value::Bool(true));
    schema
}

fn schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

const fn result(verbs: &'static [&'static str], schema: &'static str, generate: fn() -> Schema) -> Output {
    Output { verbs, form: Form::Result, schema, generate }
}

const fn line(verbs: &'static [&'static str], schema: &'static str, generate: fn() -> Schema) -> Output {
    Output { verbs, form: Form::Line, schema, generate }
}

const OUTPUTS: &[Output] = &[
    result(&["authn check"], "authn-check", schema::<authn::CheckReport>),
    line(&["authn check"], "authn-check-jsonl", schema::<BatchResponse<authn::ConfigCheckResult>>),
    result(&["authn diff"], "authn-diff", schema::<authn::DiffReport>),
    result(&["authn eval"], "authn-eval", schema::<authn::OutcomeReport>),
    line(&["authn eval"], "authn-eval-jsonl", schema::<BatchResponse<authn::OutcomeReport>>),
    result(&["authn explain"], "authn-explain", schema::<authn::ExplainReport>),
    result(&["authn migrate"], "authn-migrate", schema::<authn::MigrateReport>),
    result(&["authn test"], "authn-test", schema::<authn::TestReport>),
    result(&["cel check"], "cel-check", schema::<cel::CompileReport>),
    result(&["cel eval"], "cel-eval", schema::<cel::EvalReport>),
    line(&["cel eval"], "cel-eval-jsonl", schema::<BatchResponse<cel::BatchEvalReport>>),
    result(&["doctor"], "doctor", schema::<client::DoctorSummary<'static>>),
    result(&["exec-plugin check"], "exec-plugin-check", schema::<client::ConformanceSummary>),
    result(&["exec-plugin keep --clear"], "exec-plugin-keep", schema::<client::ClearedAnswersReport>),
    line(
        &["exec-plugin decode"],
        "exec-plugin-decode-jsonl",
        schema::<BatchResponse<exec_batch::DecodeReport>>,
    ),
    line(
        &["exec-plugin info"],
        "exec-plugin-info-jsonl",
        schema::<BatchResponse<exec_batch::ExecInfoReport>>,
    ),
    result(&["exec-plugin pin"], "exec-plugin-pin", schema::<client::PinReport>),
    Output {
        verbs: &["gateway"],
        form: Form::Started,
        schema: "gateway",
        generate: schema::<server::GatewayReport>,
    },
    result(&["help"], "help", schema::<Topic>),
    result(&["help topics"], "help-topics", schema::<TopicList>),
    result(&["image auth-file"], "image-auth-file", schema::<image::AuthFileReport>),
    result(&["image check"], "image-check", schema::<image::CheckReport>),
    line(&["image check"], "image-check-jsonl", schema::<BatchResponse<image_batch::CheckResult>>),
    result(&["image explain"], "image-explain", schema::<image::ExplainReport>),
    result(&["image get"], "image-get", schema::<image::GetReport>),
    result(&["image invalidate"], "image-invalidate", schema::<image::InvalidateReport>),
    result(&["image keyring"], "image-keyring", schema::<image::KeyringReport>),
    line(&["image keyring"], "image-keyring-jsonl", schema::<BatchResponse<image_batch::KeyringResult>>),
    result(&["image match"], "image-match", schema::<image::MatchReport>),
    line(&["image match"], "image-match-jsonl", schema::<BatchResponse<image_batch::MatchResult>>),
    result(&["image plugin-check"], "image-plugin-check", schema::<image::ConformanceReport>),
    result(&["image response"], "image-response", schema::<image::ResponseReport>),
    line(&["image response"], "image-response-jsonl", schema::<BatchResponse<image_batch::ResponseResult>>),
    result(&["kubeconfig check"], "kubeconfig-check", schema::<client::KubeconfigSummary>),
    result(&["kubeconfig view"], "kubeconfig-view", kubeconfig_view),
    line(&["kubeconfig view"], "kubeconfig-view-jsonl", schema::<BatchResponse<ViewReport>>),
    line(&["request-info"], "request-info-jsonl", schema::<BatchResponse<server::RequestInfoReport>>),
    result(
        &["serve --check", "serve webhook --check", "serve proxy --check"],
        "serve-check",
        schema::<server::ServeCheckReport>,
    ),
    Output {
        verbs: &["serve webhook", "serve proxy"],
        form: Form::Started,
        schema: "serve",
        generate: schema::<server::ServerStarted>,
    },
    result(&["login", "login get-token"], "login", schema::<ExecCredentialAnswer>),
    result(&["login clean"], "login-clean", schema::<login::CleanReport>),
    result(&["login setup"], "login-setup", schema::<login::SetupJson>),
    result(&["logout"], "logout", schema::<login::LogoutReport>),
    result(&["signer check"], "signer-check", schema::<signer::CheckReport>),
    result(&["signer list"], "signer-list", schema::<signer::ListReport>),
    result(&["signer request"], "signer-request", schema::<signer::RequestReport>),
    result(&["signer setup"], "signer-setup", schema::<client::SignerSetupReport>),
    result(&["status"], "status", schema::<login::StatusReport>),
    line(&["tls-verify"], "tls-verify-jsonl", schema::<BatchResponse<TlsVerifyReport>>),
    result(&["version"], "version", schema::<VersionReport>),
    result(&["whoami"], "whoami", schema::<client::WhoamiReport>),
];

/// Verbs that print no JSON besides an error: a command's own output, scripts, manual pages, metrics, one line of text.
const WITHOUT_JSON: &[&str] = &[
    "complete-names",
    "completions",
    "gateway-guard",
    "image metrics",
    "image serve",
    "man",
    "run",
    "signer serve",
];

/// Verbs of tests, which help does not list.
const HIDDEN: &[&str] = &["request-info", "tls-verify"];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A schema as its file: with a title that names the command line.
fn written(title: &str, mut schema: Schema) -> String {
    schema.insert("title".to_owned(), Value::String(title.to_owned()));
    format!("{:#}\n", schema.to_value())
}

impl Output {
    fn title(&self) -> String {
        let flag = if self.form == Form::Line { "--jsonl" } else { "-o json" };
        let verbs: Vec<String> = self.verbs.iter().map(|verb| format!("navicert {verb} {flag}")).collect();
        verbs.join(", ")
    }
}

#[test]
fn schemas_of_outputs_are_current() {
    let directory = workspace().join("docs/schemas/output");
    let mut names: BTreeSet<String> = BTreeSet::from(["error.json".to_owned()]);
    check_generated(
        &directory.join("error.json"),
        &written("navicert … -o json, after a failure", schema::<ErrorReport>()),
    );
    for output in OUTPUTS {
        let name = format!("{}.json", output.schema);
        check_generated(&directory.join(&name), &written(&output.title(), (output.generate)()));
        assert!(names.insert(name), "two schemas are named {}", output.schema);
    }
    let found: BTreeSet<String> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, names, "a schema of no output");
}

#[test]
fn every_verb_has_a_schema_or_prints_no_json() {
    let mut definition = args::definition();
    definition.build();
    let mut found = Vec::new();
    leaves(&definition, "", &mut found);
    assert!(found.len() > 30, "{found:?}");
    for (verb, has_batch) in &found {
        let has = |form: Form| {
            let is_of_verb = |name: &&'static str| name.split(" --").next() == Some(verb.as_str());
            OUTPUTS.iter().any(|output| output.form == form && output.verbs.iter().any(is_of_verb))
        };
        assert_eq!(*has_batch, has(Form::Line), "{verb} --jsonl");
        let is_batch_only = has(Form::Line) && (HIDDEN.contains(&verb.as_str()) || is_batch_only(verb));
        let has_result = has(Form::Result) || has(Form::Started) || is_batch_only;
        assert_ne!(has_result, WITHOUT_JSON.contains(&verb.as_str()), "{verb} -o json");
    }
    for verb in WITHOUT_JSON {
        assert!(found.iter().any(|(known, _)| known == verb), "{verb} is not a verb");
    }
}

/// Verbs whose only form is a batch.
fn is_batch_only(verb: &str) -> bool {
    matches!(verb, "exec-plugin decode" | "exec-plugin info")
}

/// The verbs without subcommands, and `serve`, each with whether it has a batch form.
fn leaves(command: &Command, path: &str, found: &mut Vec<(String, bool)>) {
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help" || path.is_empty()) {
        let path =
            if path.is_empty() { verb.get_name().to_owned() } else { format!("{path} {}", verb.get_name()) };
        if verb.has_subcommands() && verb.get_name() != "serve" {
            leaves(verb, &path, found);
            continue;
        }
        if verb.has_subcommands() {
            leaves(verb, &path, found);
        }
        let has_batch = verb.get_arguments().any(|argument| argument.get_id() == "jsonl");
        found.push((path, has_batch));
    }
}

#[test]
fn reference_of_json_output_is_current() {
    let mut page = String::from(INTRODUCTION);
    for output in OUTPUTS.iter().filter(|output| !output.verbs.iter().any(|verb| HIDDEN.contains(verb))) {
        let verbs: Vec<String> = output.verbs.iter().map(|verb| format!("`{verb}`")).collect();
        let printed = match output.form {
            Form::Result => "`-o json`: the result",
            Form::Started => "`-o json`: once, when it listens",
            Form::Line => "`--jsonl`: one line per input line",
        };
        let name = output.schema;
        let _ = writeln!(
            page,
            "| {} | {printed} | [{name}.json](../schemas/output/{name}.json) |",
            verbs.join(", ")
        );
    }
    let others: Vec<String> = WITHOUT_JSON
        .iter()
        .filter(|verb| !["complete-names", "gateway-guard"].contains(verb))
        .map(|verb| format!("`{verb}`"))
        .collect();
    let _ = write!(
        page,
        "\nThe other verbs ({}) print text; with `-o json` only their errors are JSON.\n",
        others.join(", ")
    );
    check_generated(&workspace().join("docs/reference/json-output.md"), &page);
}

const INTRODUCTION: &str = "\
# JSON output

Every verb that prints a result prints it as JSON with `-o json`. Each result has a JSON Schema (draft 2020-12), generated from
the types of the libraries; tests compare the schemas with the types, and what the program prints with the schemas. A test
generates this page.

```console skip=\"needs a cluster and jq\"
$ navicert doctor -o json | jq -r .toDo
```

## Stability

Within a minor series (0.2.x, 0.3.x):

- A field is never removed or renamed, and its type and meaning stay. New fields may be added anywhere: ignore the ones that
  you do not know.
- A list of possible values may grow: new kinds of failure, new steps of `doctor`, new rules. Have a default case.
- Texts for people (`message`, `text`, `hint`, `toDo`, `reason`, …) may be reworded. Decide by `class`, `code`, `rule`, `step`
  and `verdict`, and by the [exit code](../exit-codes.md).
- The order of fields and the white space have no meaning.

Anything else changes only with a new minor version, and the changelog says so.

## Failures

If a verb fails before it has a result, it prints [error.json](../schemas/output/error.json) on standard output, besides the
message on standard error:

```json
{
  \"error\": {
    \"class\": \"invalid-input\",
    \"exitCode\": 3,
    \"message\": \"failed to read `config`: No such file or directory (os error 2)\"
  }
}
```

A verb that has a result prints it even if the result is bad news (`\"valid\": false`, `\"healthy\": false`) and exits with a
code other than 0. So read `.error` first.

In a batch (`--jsonl`), every input line has one result line with the same `id`. A line that is not an input of the verb is
answered with `{\"id\": …, \"fault\": \"…\"}`.

## Schemas

| verb | prints with | schema |
| --- | --- | --- |
";
