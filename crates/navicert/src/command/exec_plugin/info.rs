//! `navicert exec-plugin info --jsonl`: what a plugin would be told, to the byte, for a user and a cluster as a
//! kubeconfig has them. Standard input counts as no terminal.

use std::path::{Path, PathBuf};

use navicert_client::exec::Plugin;
use navicert_client::exec::interactive::{self, Stdin, Terminal};
use navicert_client::kubeconfig::{self, MemoryFolder, Overrides, Sources};
use navicert_types::kubeconfig::Cluster;
use serde_json::{Map, Value, json};

use super::lines::text;

/// The folder of the question's kubeconfig; no folder of that name is on a disk.
const ROOT: &str = "/$DIR";

/// Answers one question.
pub(super) fn answer(question: &Value) -> Result<Value, String> {
    let config = spelled_out(&config(question)?.to_string());
    Ok(match told(&config) {
        Ok(info) => json!({ "info": info }),
        Err(error) => json!({"info": null, "error": error}),
    })
}

/// The kubeconfig that the question describes: reading it back is what applies its defaults.
fn config(question: &Value) -> Result<Value, String> {
    let mut cluster = Map::new();
    cluster.insert("server".to_owned(), json!(text(question, "server")?));
    for (from, to) in [
        ("tlsServerName", "tls-server-name"),
        ("insecure", "insecure-skip-tls-verify"),
        ("caData", "certificate-authority-data"),
        ("proxyUrl", "proxy-url"),
        ("disableCompression", "disable-compression"),
    ] {
        if let Some(value) = question.get(from) {
            cluster.insert(to.to_owned(), value.clone());
        }
    }
    if let Some(value) = question.get("clusterConfig") {
        let extension = json!({"name": Cluster::EXEC_EXTENSION, "extension": value});
        cluster.insert("extensions".to_owned(), json!([extension]));
    }
    let exec = json!({
        "command": "plugin",
        "apiVersion": text(question, "apiVersion")?,
        "interactiveMode": question.get("interactiveMode"),
        "provideClusterInfo": question.get("provideClusterInfo"),
    });
    Ok(json!({
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": {"exec": exec}}],
    }))
}

/// The same JSON as YAML can read it: some characters may only be escaped there.
fn spelled_out(json: &str) -> String {
    let is_plain = |symbol: char| matches!(symbol, '\n' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..);
    let mut text = String::with_capacity(json.len());
    for symbol in json.chars() {
        if is_plain(symbol) {
            text.push(symbol);
        } else {
            text.push_str(&format!("\\u{:04x}", u32::from(symbol)));
        }
    }
    text
}

/// What a client would say, `None` if it would not ask the plugin.
fn told(config: &str) -> Result<Option<String>, String> {
    let files = MemoryFolder::new(ROOT, [(PathBuf::from("config"), config.as_bytes().to_vec())]);
    let sources = Sources::list([PathBuf::from("config")]);
    let (_, effective) = kubeconfig::select(&sources, &Overrides::default(), Path::new(ROOT), &files)
        .map_err(|error| error.to_string())?;
    if let Some(obstacle) = effective.obstacles(&files).first() {
        return Err(obstacle.to_string());
    }
    let Some(plugin) = Plugin::of(&effective, &files).map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let mode = effective.user.exec.as_ref().map(|exec| exec.interactive_mode.as_str()).unwrap_or_default();
    let interactive = interactive::decide(mode, &NoTerminal, &Stdin::Free)
        .map_err(|error| format!("exec plugin cannot support interactive mode: {error}"))?;
    let question = plugin.question(interactive).map_err(|error| error.to_string())?;
    Ok(Some(question.expose().clone()))
}

/// A batch has no terminal, whatever navicert itself has.
#[derive(Debug)]
struct NoTerminal;

impl Terminal for NoTerminal {
    fn stdin_is_terminal(&self) -> bool {
        false
    }

    fn is_controlling(&self) -> bool {
        false
    }
}
