//! Exec plugins as real processes, and recorded decisions of client-go.
#![cfg(unix)]
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "test helpers; a broken setup should stop the test"
)]

mod flow;
mod processes;
mod terminals;

use std::fs;
use std::path::{Path, PathBuf};

const PLUGIN: &str = env!("CARGO_BIN_EXE_navicert-fake-exec-plugin");

/// A temporary directory with a kubeconfig that uses the fake plugin.
struct TestDirectory(tempfile::TempDir);

impl TestDirectory {
    fn new(mode: &str, variables: &[(&str, &str)]) -> Self {
        let test_dir = TestDirectory(tempfile::tempdir().unwrap());
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| serde_json::json!({"name": name, "value": value})).collect();
        test_dir.write(&[(mode, variables)]);
        test_dir
    }

    /// Two users with one plugin each.
    fn with_two_users(mode: &str, variables: &[(&str, &str)]) -> Self {
        let test_dir = TestDirectory(tempfile::tempdir().unwrap());
        let user = |name: &str| {
            let all = variables.iter().copied().chain([("WHO", name)]);
            all.map(|(name, value)| serde_json::json!({"name": name, "value": value})).collect()
        };
        test_dir.write(&[(mode, user("ann")), (mode, user("bob"))]);
        test_dir
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
