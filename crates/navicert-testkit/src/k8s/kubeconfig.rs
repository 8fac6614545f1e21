//! Kubeconfigs for tests: one cluster, one user or several, and every field that a test cares about.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::pki::ca::Ca;

/// A kubeconfig under construction: context `x` with cluster `c` and user `u`, which has no credential yet.
///
/// ```
/// use navicert_testkit::{Ca, Kubeconfig};
///
/// let dir = tempfile::tempdir().unwrap();
/// let ca = Ca::new("root");
/// let path = Kubeconfig::new("https://127.0.0.1:6443").ca(&ca).token("a-token").write(dir.path().join("config"));
/// assert!(std::fs::read_to_string(path).unwrap().contains("a-token"));
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is written before `write`"]
pub struct Kubeconfig {
    context_name: String,
    cluster_name: String,
    user_name: String,
    namespace: Option<String>,
    cluster: Map<String, Value>,
    user: Value,
    more_users: Vec<(String, Value)>,
}

impl Kubeconfig {
    /// A kubeconfig for the server with this URL.
    pub fn new(server: impl Into<String>) -> Self {
        let mut cluster = Map::new();
        cluster.insert("server".to_owned(), Value::String(server.into()));
        Kubeconfig {
            context_name: "x".to_owned(),
            cluster_name: "c".to_owned(),
            user_name: "u".to_owned(),
            namespace: None,
            cluster,
            user: json!({}),
            more_users: Vec::new(),
        }
    }

    /// Trusts this CA; the certificate is part of the kubeconfig.
    pub fn ca(self, ca: &Ca) -> Self {
        self.cluster_field("certificate-authority-data", STANDARD.encode(ca.pem()))
    }

    /// Trusts the CA in this file.
    pub fn ca_file(self, path: impl AsRef<Path>) -> Self {
        self.cluster_field("certificate-authority", text(path.as_ref()))
    }

    /// Sets any field of the cluster, such as `proxy-url`.
    pub fn cluster_field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.cluster.insert(name.to_owned(), value.into());
        self
    }

    /// The user's fields, instead of those set so far.
    pub fn user(mut self, user: Value) -> Self {
        self.user = user;
        self
    }

    /// A user with this bearer token.
    pub fn token(self, token: &str) -> Self {
        self.user(json!({"token": token}))
    }

    /// A user with a certificate and a key in these files.
    pub fn certificate(self, certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        self.user(json!({"client-certificate": text(certificate.as_ref()), "client-key": text(key.as_ref())}))
    }

    /// A user with this exec credential plugin, which never prompts.
    pub fn exec(self, command: impl AsRef<Path>) -> Self {
        self.user(exec_user(command))
    }

    /// The names of context, cluster and user, where a test shows them.
    pub fn names(mut self, context: &str, cluster: &str, user: &str) -> Self {
        (self.context_name, self.cluster_name, self.user_name) =
            (context.to_owned(), cluster.to_owned(), user.to_owned());
        self
    }

    /// The namespace of the first context.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// One more user, with a context of the same name for the same cluster.
    pub fn also(mut self, name: &str, user: Value) -> Self {
        self.more_users.push((name.to_owned(), user));
        self
    }

    /// Writes the file and returns its path.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, path: impl Into<PathBuf>) -> PathBuf {
        let path = path.into();
        fs::write(&path, self.to_string())
            .unwrap_or_else(|error| panic!("failed to write `{}`: {error}", path.display()));
        path
    }
}

/// JSON, which is YAML as well.
impl fmt::Display for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = json!({"cluster": self.cluster_name, "user": self.user_name});
        if let Some(namespace) = &self.namespace {
            first["namespace"] = json!(namespace);
        }
        let mut contexts = vec![json!({"name": self.context_name, "context": first})];
        let mut users = vec![json!({"name": self.user_name, "user": self.user})];
        for (name, user) in &self.more_users {
            contexts.push(json!({"name": name, "context": {"cluster": self.cluster_name, "user": name}}));
            users.push(json!({"name": name, "user": user}));
        }
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": self.context_name,
            "contexts": contexts,
            "clusters": [{"name": self.cluster_name, "cluster": self.cluster}],
            "users": users,
        });
        config.fmt(f)
    }
}

/// The fields of a user with this exec credential plugin, which never prompts.
pub fn exec_user(command: impl AsRef<Path>) -> Value {
    json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": text(command.as_ref()),
    }})
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_else(|| panic!("`{}` is not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &Kubeconfig) -> navicert_types::kubeconfig::Kubeconfig {
        navicert_types::kubeconfig::decode(config.to_string().as_bytes()).expect("a kubeconfig")
    }

    #[test]
    fn users_have_a_context_each_for_the_one_cluster() {
        let config = Kubeconfig::new("https://127.0.0.1:1").names("prod", "east", "ann").namespace("web");
        let config = read(&config.token("t").also("bob", exec_user("/bin/plugin")));
        assert_eq!(config.current_context, "prod");
        let contexts: Vec<_> = config
            .contexts
            .iter()
            .map(|entry| (entry.name.as_str(), entry.context.cluster.as_str(), entry.context.user.as_str()))
            .collect();
        assert_eq!(contexts, [("prod", "east", "ann"), ("bob", "east", "bob")]);
    }
}
