//! One line of `exec-plugin decode|info --jsonl` and its result: what a client makes of plugin output, and what a plugin
//! receives. For plugin authors, and for tests that compare clients.

use std::path::PathBuf;
use std::sync::Arc;

use navicert_plugin::Environment;
use navicert_types::error_chain;
use navicert_types::exec_credential::ExecVersion;
use navicert_types::kubeconfig::Cluster;
use navicert_types::report::{ReportedSecret, string_member};
use navicert_types::tree::{Syntax, parse};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::config::{ConfigErrorStage, ConfigOptions};
use crate::exec::interactive::{self, StdinUse, Terminal};
use crate::exec::{ExecError, response};
use crate::kubeconfig::{KubeconfigSources, MemoryFileSystem};

/// Directory of the line's kubeconfig in the in-memory file system.
const ROOT: &str = "/$DIR";

/// What a client makes of plugin output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum DecodeReport {
    /// The output is a credential.
    Accepted {
        /// `true`.
        ok: bool,
        /// Whether it has a certificate and its key.
        #[serde(rename = "hasCert")]
        has_cert: bool,
        /// The token. It is not redacted: the input line contains it.
        #[serde(skip_serializing_if = "Option::is_none")]
        token: Option<ReportedSecret>,
        /// When the credential expires (RFC 3339).
        #[serde(skip_serializing_if = "Option::is_none")]
        expires: Option<String>,
    },
    /// The output is rejected.
    Rejected {
        /// `false`.
        ok: bool,
        /// Why.
        error: String,
    },
}

/// What a plugin receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExecInfoReport {
    /// The exact text of `KUBERNETES_EXEC_INFO`; `null` if a client would not run the plugin.
    pub info: Option<String>,
    /// Why a client would not run the plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Decodes plugin output as a client does: `{"apiVersion", "stdout", "exit"}`.
///
/// # Errors
/// The line is not an input of this kind.
pub fn decode_line(request: &Value) -> Result<DecodeReport, String> {
    let (api_version, stdout) = (string_member(request, "apiVersion")?, string_member(request, "stdout")?);
    let exit = request.get("exit").map_or(Some(0), Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let exit = exit.ok_or("`exit` must be an exit code")?;
    let rejected =
        |error: &dyn std::error::Error| Ok(DecodeReport::Rejected { ok: false, error: error_chain(error) });
    let Some(version) = ExecVersion::from_api_version(api_version) else {
        return rejected(&ExecError::InvalidVersion(api_version.to_owned()));
    };
    if exit != 0 {
        return rejected(&ExecError::Failed { command: "plugin".to_owned(), code: exit, message: None });
    }
    match response::read(stdout.as_bytes(), version) {
        Ok(output) => Ok(DecodeReport::Accepted {
            ok: true,
            has_cert: output.identity.is_some(),
            token: (!output.token.is_empty()).then(|| ReportedSecret::new(&output.token, true)),
            expires: output.expires.map(|expires| expires.to_string()),
        }),
        Err(error) => rejected(&error),
    }
}

/// The exec info of a user and cluster, which the line describes by the fields of a kubeconfig. Standard input is treated as not
/// being a terminal.
///
/// # Errors
/// The line is not an input of this kind.
pub fn info_line(request: &Value) -> Result<ExecInfoReport, String> {
    // As YAML: kubeconfigs may hold characters that YAML accepts only in escaped form.
    let config =
        parse(config(request)?.to_string().as_bytes(), Syntax::Json).map_err(|error| error.to_string())?;
    let config = config.to_json();
    Ok(match exec_info(&config) {
        Ok(info) => ExecInfoReport { info, error: None },
        Err(error) => ExecInfoReport { info: None, error: Some(error) },
    })
}

/// The kubeconfig that the line describes; parsing it applies the defaults.
fn config(request: &Value) -> Result<Value, String> {
    let mut cluster = Map::new();
    cluster.insert("server".to_owned(), json!(string_member(request, "server")?));
    for (from, to) in [
        ("tlsServerName", "tls-server-name"),
        ("insecure", "insecure-skip-tls-verify"),
        ("caData", "certificate-authority-data"),
        ("proxyUrl", "proxy-url"),
        ("disableCompression", "disable-compression"),
    ] {
        if let Some(value) = request.get(from) {
            cluster.insert(to.to_owned(), value.clone());
        }
    }
    if let Some(value) = request.get("clusterConfig") {
        let extension = json!({"name": Cluster::EXEC_EXTENSION, "extension": value});
        cluster.insert("extensions".to_owned(), json!([extension]));
    }
    let exec = json!({
        "command": "plugin",
        "apiVersion": string_member(request, "apiVersion")?,
        "interactiveMode": request.get("interactiveMode"),
        "provideClusterInfo": request.get("provideClusterInfo"),
    });
    Ok(json!({
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": {"exec": exec}}],
    }))
}

/// The exec info a client would pass, `None` if the client would not run the plugin.
fn exec_info(config: &str) -> Result<Option<String>, String> {
    let files = MemoryFileSystem::new(ROOT, [(PathBuf::from("config"), config.as_bytes().to_vec())]);
    let options = ConfigOptions::new(Environment::empty(), ROOT)
        .sources(KubeconfigSources::list([PathBuf::from("config")]))
        .files(Arc::new(files));
    let merged = options.load().map_err(|errors| error_chain(&errors))?;
    let report = options.report(&merged);
    // Clients run the plugin before they connect, so an address that cannot be reached is no error here.
    let error = report.errors().iter().find(|error| error.stage() <= ConfigErrorStage::Build);
    if let Some(error) = error {
        return Err(error_chain(error));
    }
    let Some(plugin) = report.exec_plugin() else { return Ok(None) };
    let interactive = interactive::decide(plugin.interactive_mode(), &NoTerminal, &StdinUse::Free)
        .map_err(|error| format!("exec plugin cannot support interactive mode: {error}"))?;
    let request = plugin.exec_info(interactive).map_err(|error| error_chain(&error))?;
    Ok(Some(request.expose().clone()))
}

/// A batch has no terminal, even if the standard input of this process is one.
#[derive(Debug)]
struct NoTerminal;

impl Terminal for NoTerminal {
    fn stdin_is_terminal(&self) -> bool {
        false
    }

    fn has_controlling_terminal(&self) -> bool {
        false
    }
}
