//! Exec plugins as real processes, and what client-go was recorded to do.
#![cfg(unix)]
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests; a broken set-up should stop the test"
)]

mod flow;
mod processes;
mod terminals;

use std::fs;
use std::path::{Path, PathBuf};

const PLUGIN: &str = env!("CARGO_BIN_EXE_navicert-fake-exec-plugin");

/// A folder with a kubeconfig whose user has the fake plugin.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(mode: &str, variables: &[(&str, &str)]) -> Self {
        let folder = Folder(tempfile::tempdir().unwrap());
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| serde_json::json!({"name": name, "value": value})).collect();
        let config = serde_json::json!({
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
            "users": [{"name": "u", "user": {"exec": {
                "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": mode,
                "command": PLUGIN, "env": variables,
            }}}],
        });
        fs::write(folder.config(), config.to_string()).unwrap();
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn config(&self) -> PathBuf {
        self.path().join("config")
    }
}

fn output(status: &str) -> String {
    format!("{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{{{status}}}}}")
}
