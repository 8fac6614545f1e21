//! `navicert kubeconfig view --jsonl`: one input line, one result line (docs/kubeconfig.md).
//!
//! The files of a line are read from memory; results show their directory as `$DIR`.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::path::PathBuf;
use std::sync::Arc;

use navicert_client::config::{ConfigErrorStage, ConfigReport};
use navicert_client::kubeconfig::{KubeconfigSources, MemoryFileSystem, Overrides};
use navicert_client::{ConfigError, ConfigOptions};
use navicert_plugin::Environment;
use navicert_types::error_chain;
use navicert_types::tree::Node;
use serde_json::{Map, Value, json};

use super::view;
use crate::args::Profile;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Directory of the files in memory: absolute, so that relative paths resolve.
const ROOT: &str = "/$DIR";

/// Prints one result for every line of standard input.
pub(super) fn run(profile: Option<Profile>, output: &mut Output) -> Result<Exit, Failure> {
    let profile = profile.unwrap_or(Profile::Kube);
    for line in io::stdin().lock().split(b'\n') {
        let line =
            line.map_err(|error| Failure::bad_input(format!("failed to read standard input: {error}")))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        output.line(&process_line(&line, profile))?;
    }
    Ok(Exit::Done)
}

fn process_line(line: &[u8], profile: Profile) -> Value {
    let request: Value = match serde_json::from_slice(line) {
        Ok(request) => request,
        // serde_json's message may quote the line, which may hold secrets.
        Err(error) => {
            return json!({"id": null, "fault": format!("invalid JSON at column {}", error.column())});
        }
    };
    let id = request.get("id").cloned().unwrap_or_default();
    let mut response = match BatchLine::read(&request) {
        Ok(line) => line.evaluate(profile),
        Err(fault) => json!({ "fault": fault }),
    };
    if let Some(members) = response.as_object_mut() {
        members.insert("id".to_owned(), id);
    }
    response
}

struct BatchLine {
    files: MemoryFileSystem,
    sources: KubeconfigSources,
    overrides: Overrides,
}

impl BatchLine {
    fn read(request: &Value) -> Result<Self, String> {
        let files = request.get("files").and_then(Value::as_object).ok_or("`files` must be an object")?;
        let files = files.iter().map(|(name, text)| {
            let text = text.as_str().ok_or_else(|| format!("`files.{name}` must be a string"))?;
            Ok((PathBuf::from(name), text.as_bytes().to_vec()))
        });
        let files = MemoryFileSystem::new(ROOT, files.collect::<Result<Vec<_>, String>>()?);
        let listed = strings(request.get("kubeconfig"), "kubeconfig")?;
        let sources = KubeconfigSources::list(listed.into_iter().map(PathBuf::from));
        let mut overrides = overrides(request.get("overrides"))?;
        if let Some(context) = text(request.get("context"), "context")? {
            overrides.context = context;
        }
        Ok(BatchLine { files, sources, overrides })
    }

    fn evaluate(self, profile: Profile) -> Value {
        let options = ConfigOptions::new(Environment::empty(), ROOT)
            .sources(self.sources)
            .overrides(self.overrides)
            .files(Arc::new(self.files));
        let merged = match options.load() {
            Ok(merged) => merged,
            Err(errors) => return json!({"loads": false, "valid": false, "errors": texts(errors.iter())}),
        };
        let (shown, resolved) = (merged.config.expose_tree(), merged.resolved().expose_tree());
        let mut response = json!({
            "loads": true,
            "merged": to_json(&shown),
            "redacted": to_json(&view::redacted(&merged.config, Some(profile))),
        });
        let Some(members) = response.as_object_mut() else { return response };
        if resolved != shown {
            members.insert("resolved".to_owned(), to_json(&resolved));
        }
        let report = options.report(&merged);
        let at = |stage| texts(report.errors().iter().filter(|error| error.stage() == stage));
        let errors = at(ConfigErrorStage::Validate);
        if errors.is_empty() {
            let build_errors = at(ConfigErrorStage::Build);
            members.insert("client".to_owned(), client(&report, &build_errors));
        }
        members.insert("valid".to_owned(), json!(errors.is_empty()));
        members.insert("errors".to_owned(), json!(errors));
        response
    }
}

/// The client that kubectl would create, or why it could not.
fn client(report: &ConfigReport, build_errors: &[String]) -> Value {
    let mut client = json!({"server": report.server(), "auth": report.credential_kinds()});
    if let (false, Some(members)) = (build_errors.is_empty(), client.as_object_mut()) {
        members.insert("build_error".to_owned(), json!(build_errors.join(", ")));
    }
    client
}

/// Reads overrides by flag name.
// C146
fn overrides(given: Option<&Value>) -> Result<Overrides, String> {
    let mut overrides = Overrides::default();
    let empty = Map::new();
    let given = match given {
        None | Some(Value::Null) => &empty,
        Some(given) => given.as_object().ok_or("`overrides` must be an object")?,
    };
    for (name, value) in given {
        let text = || text(Some(value), name).map(Option::unwrap_or_default);
        let flag = || value.as_bool().ok_or_else(|| format!("`overrides.{name}` must be true or false"));
        match name.as_str() {
            "context" => overrides.context = text()?,
            "cluster" => overrides.cluster = text()?,
            "user" => overrides.user = text()?,
            "namespace" => overrides.namespace = text()?,
            "server" => overrides.server = text()?,
            "tls-server-name" => overrides.tls_server_name = text()?,
            "insecure-skip-tls-verify" => overrides.insecure_skip_tls_verify = flag()?,
            "certificate-authority" => overrides.certificate_authority = text()?,
            "proxy-url" => overrides.proxy_url = text()?,
            "disable-compression" => overrides.disable_compression = flag()?,
            "client-certificate" => overrides.client_certificate = text()?,
            "client-key" => overrides.client_key = text()?,
            "token" => overrides.token = text()?.into(),
            "username" => overrides.username = text()?,
            "password" => overrides.password = text()?.into(),
            "as" => overrides.impersonate = text()?,
            "as-uid" => overrides.impersonate_uid = text()?,
            "as-group" => overrides.impersonate_groups = strings(Some(value), name)?,
            "as-user-extra" => overrides.impersonate_user_extra = extra(value)?,
            // Accepted and ignored: no request is sent here.
            "request-timeout" => {}
            _ => return Err(format!("unknown flag `overrides.{name}`")),
        }
    }
    Ok(overrides)
}

/// Either `["key=value", …]` as on a command line, or `{"key": ["value", …]}`.
fn extra(value: &Value) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    if let Some(members) = value.as_object() {
        for (key, values) in members {
            extra.insert(key.clone(), strings(Some(values), "as-user-extra")?);
        }
        return Ok(extra);
    }
    for pair in strings(Some(value), "as-user-extra")? {
        let (key, value) = pair.split_once('=').ok_or("`overrides.as-user-extra` must be key=value")?;
        extra.entry(key.to_owned()).or_default().push(value.to_owned());
    }
    Ok(extra)
}

fn text(value: Option<&Value>, name: &str) -> Result<Option<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{name}` must be a string")),
    }
}

/// A list of strings, or a single string.
fn strings(value: Option<&Value>, name: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("`{name}` must be a list of strings");
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        Some(value) => {
            let items = value.as_array().ok_or_else(wrong)?.iter();
            items.map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
    }
}

fn texts<'a>(errors: impl Iterator<Item = &'a ConfigError>) -> Vec<String> {
    errors.map(|error| error_chain(error).replace(ROOT, "$DIR")).collect()
}

fn to_json(tree: &Node) -> Value {
    serde_json::from_str(&tree.to_json().replace(ROOT, "$DIR")).unwrap_or_default()
}
