//! A kubeconfig for a test server, and the options that read it without the environment of this process.

use std::fs;
use std::path::{Path, PathBuf};

use navicert_client::ConfigOptions;
pub(crate) use navicert_testkit::k8s::kubeconfig::exec_user as exec;
use navicert_testkit::{ApiServer, Ca};
use serde_json::{Value, json};

/// Writes a kubeconfig without a current context: context, cluster namespace and user entry by name.
pub(crate) fn kubeconfig(dir: &Path, api: &ApiServer, ca: &Ca, users: &[(&str, Value)]) -> PathBuf {
    fs::write(dir.join("ca.crt"), ca.pem()).unwrap();
    let context = |name: &str| json!({"name": name, "context": {"cluster": "c", "user": name, "namespace": format!("ns-{name}")}});
    let config = json!({
        "contexts": users.iter().map(|(name, _)| context(name)).collect::<Vec<_>>(),
        "clusters": [{"name": "c", "cluster": {"server": api.url(), "certificate-authority": "ca.crt"}}],
        "users": users.iter().map(|(name, user)| json!({"name": name, "user": user})).collect::<Vec<_>>(),
    });
    let path = dir.join("config");
    fs::write(&path, config.to_string()).unwrap();
    path
}

/// Options of this kubeconfig, with an environment that only names the programs' directories.
pub(crate) fn options(path: &Path) -> ConfigOptions {
    ConfigOptions::new([("PATH", "/usr/bin:/bin")].into_iter().collect(), "/").kubeconfig(path)
}
