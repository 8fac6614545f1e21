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

use navicert_testkit::Kubeconfig;
use navicert_testkit::cli::FAKE_PLUGIN;
use serde_json::{Value, json};

/// A temporary directory with a kubeconfig that uses the fake plugin.
struct TestDirectory(tempfile::TempDir);

impl TestDirectory {
    fn new(mode: &str, variables: &[(&str, &str)]) -> Self {
        let test_dir = TestDirectory(tempfile::tempdir().unwrap());
        kubeconfig().user(plugin_user(mode, variables)).write(test_dir.config());
        test_dir
    }

    /// Two users with one plugin each.
    fn with_two_users(mode: &str, variables: &[(&str, &str)]) -> Self {
        let test_dir = TestDirectory(tempfile::tempdir().unwrap());
        let user = |name| plugin_user(mode, &[variables, &[("WHO", name)]].concat());
        kubeconfig().user(user("ann")).also("bob", user("bob")).write(test_dir.config());
        test_dir
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn config(&self) -> PathBuf {
        self.path().join("config")
    }
}

fn kubeconfig() -> Kubeconfig {
    Kubeconfig::new("https://127.0.0.1:6443")
}

/// A user with the fake plugin, which gets these variables.
fn plugin_user(mode: &str, variables: &[(&str, &str)]) -> Value {
    let variables: Vec<_> =
        variables.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": mode,
        "command": FAKE_PLUGIN, "env": variables,
    }})
}

fn output(status: &str) -> String {
    format!("{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{{{status}}}}}")
}
