//! `navicert exec-plugin info --jsonl`: the exact `KUBERNETES_EXEC_INFO` a plugin receives for a user and cluster of a
//! kubeconfig. Standard input is treated as not being a terminal.

use std::path::PathBuf;
use std::sync::Arc;

use navicert_client::ConfigOptions;
use navicert_client::config::ConfigErrorStage;
use navicert_client::exec::interactive::{self, StdinUse, Terminal};
use navicert_client::kubeconfig::{KubeconfigSources, MemoryFileSystem};
use navicert_plugin::Environment;
use navicert_types::error_chain;
use navicert_types::kubeconfig::Cluster;
use navicert_types::tree::{Syntax, parse};
use serde_json::{Map, Value, json};

use super::lines::text;

/// Directory of the line's kubeconfig in the in-memory file system.
const ROOT: &str = "/$DIR";

/// Processes one line.
pub(super) fn process(request: &Value) -> Result<Value, String> {
    // As YAML: kubeconfigs may hold characters that YAML accepts only in escaped form.
    let config =
        parse(config(request)?.to_string().as_bytes(), Syntax::Json).map_err(|error| error.to_string())?;
    let config = config.to_json();
    Ok(match exec_info(&config) {
        Ok(info) => json!({ "info": info }),
        Err(error) => json!({"info": null, "error": error}),
    })
}

/// The kubeconfig that the line describes; parsing it applies the defaults.
fn config(request: &Value) -> Result<Value, String> {
    let mut cluster = Map::new();
    cluster.insert("server".to_owned(), json!(text(request, "server")?));
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
        "apiVersion": text(request, "apiVersion")?,
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

/// A batch has no terminal, even if navicert's standard input is one.
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
