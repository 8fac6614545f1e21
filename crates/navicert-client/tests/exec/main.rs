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
        folder.write(&[(mode, variables)]);
        folder
    }

    /// Two users, each with a plugin of its own.
    fn of_two(mode: &str, variables: &[(&str, &str)]) -> Self {
        let folder = Folder(tempfile::tempdir().unwrap());
        let user = |name: &str| {
            let all = variables.iter().copied().chain([("WHO", name)]);
            all.map(|(name, value)| serde_json::json!({"name": name, "value": value})).collect()
        };
        folder.write(&[(mode, user("ann")), (mode, user("bob"))]);
        folder
    }

    fn write(&self, users: &[(&str, Vec<serde_json::Value>)]) {
        let name = |index: usize| format!("user-{index}");
        let contexts: Vec<_> = (0..users.len())
            .map(|index| serde_json::json!({"name": name(index), "context": {"cluster": "c", "user": name(index)}}))
            .collect();
        let users: Vec<_> = users
            .iter()
            .enumerate()
            .map(|(index, (mode, variables))| {
                serde_json::json!({"name": name(index), "user": {"exec": {
                    "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": mode,
                    "command": PLUGIN, "env": variables,
                }}})
            })
            .collect();
        let config = serde_json::json!({
            "current-context": name(0),
            "contexts": contexts,
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
            "users": users,
        });
        fs::write(self.config(), config.to_string()).unwrap();
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
