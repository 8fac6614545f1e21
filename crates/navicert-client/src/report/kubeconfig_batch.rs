//! One line of `kubeconfig view --jsonl` and its result (docs/kubeconfig.md).
//!
//! The files of a line are read from memory; results show their directory as `$DIR`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use navicert_plugin::Environment;
use navicert_types::error_chain;
use navicert_types::kubeconfig::Kubeconfig;
use navicert_types::tree::Node;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::config::{ConfigError, ConfigErrorStage, ConfigOptions, ConfigReport};
use crate::kubeconfig::{KubeconfigSources, MemoryFileSystem, Overrides};

/// Directory of the files in memory: absolute, so that relative paths resolve.
const ROOT: &str = "/$DIR";

/// What kubectl makes of the files of one line. Secrets are shown: the input line contains them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ViewReport {
    /// Whether the files can be loaded.
    pub loads: bool,
    /// Whether the selected context is valid.
    pub valid: bool,
    /// Why the files cannot be loaded or the context is not valid.
    pub errors: Vec<String>,
    /// The merged kubeconfig, if the files can be loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<Value>,
    /// The merged kubeconfig with its secrets redacted, if the files can be loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redacted: Option<Value>,
    /// The merged kubeconfig with absolute paths, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Value>,
    /// The client that kubectl would create, if the context is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ViewedClient>,
}

/// The client that kubectl would create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ViewedClient {
    /// The server URL.
    pub server: Option<String>,
    /// The kinds of credential that it would send.
    pub auth: Vec<&'static str>,
    /// Why it cannot be created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_error: Option<String>,
}

/// Evaluates one line: `{"files", "kubeconfig", "context", "overrides"}`. `redact` returns the tree to show of a kubeconfig.
///
/// # Errors
/// The line is not an input of this kind.
pub fn view_line(request: &Value, redact: impl FnOnce(&Kubeconfig) -> Node) -> Result<ViewReport, String> {
    Ok(BatchLine::read(request)?.evaluate(redact))
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

    fn evaluate(self, redact: impl FnOnce(&Kubeconfig) -> Node) -> ViewReport {
        let options = ConfigOptions::new(Environment::empty(), ROOT)
            .sources(self.sources)
            .overrides(self.overrides)
            .files(Arc::new(self.files));
        let merged = match options.load() {
            Ok(merged) => merged,
            Err(errors) => return ViewReport { errors: texts(errors.iter()), ..ViewReport::default() },
        };
        let (shown, resolved) = (merged.config.expose_tree(), merged.resolved().expose_tree());
        let report = options.report(&merged);
        let at = |stage| texts(report.errors().iter().filter(|error| error.stage() == stage));
        let errors = at(ConfigErrorStage::Validate);
        ViewReport {
            loads: true,
            valid: errors.is_empty(),
            merged: Some(to_json(&shown)),
            redacted: Some(to_json(&redact(&merged.config))),
            resolved: (resolved != shown).then(|| to_json(&resolved)),
            client: errors.is_empty().then(|| ViewedClient::new(&report, &at(ConfigErrorStage::Build))),
            errors,
        }
    }
}

impl ViewedClient {
    fn new(report: &ConfigReport, build_errors: &[String]) -> Self {
        ViewedClient {
            server: report.server(),
            auth: report.credential_kinds(),
            build_error: (!build_errors.is_empty()).then(|| build_errors.join(", ")),
        }
    }
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
