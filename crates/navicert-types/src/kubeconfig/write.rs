//! Encodes the types as a tree in the shape Kubernetes writes: empty fields are omitted where Kubernetes omits them,
//! lists are sorted by name, bytes are base64.
// C108

use std::borrow::Cow;

use super::read::Named;
use super::{
    AuthInfo, AuthProviderConfig, Cluster, Context, ExecConfig, Kubeconfig, NamedAuthInfo, NamedCluster,
    NamedContext, NamedExtension,
};
use crate::decode::Base64;
use crate::redact::{self, DATA_OMITTED, REDACTED};
use crate::secret::Secret;
use crate::tree::{Mapping, Node, Value};

/// Trees to write with [`Node::to_json_pretty`] or [`Node::to_yaml`].
impl Kubeconfig {
    /// The redacted view. Masks what `kubectl config view` masks (tokens, passwords and data), and also values of exec
    /// `env`, `args` of flags that look secret, `auth-provider` settings, and user information in URLs. Unknown fields
    /// are omitted.
    pub fn redacted_tree(&self) -> Node {
        Writer { secrets: Secrets::Masked, keeps_unknown: false }.config(self)
    }

    /// Masks exactly what `kubectl config view` masks: tokens, passwords and data. For comparisons; secrets in exec
    /// `env`, `args`, `auth-provider` settings and URLs are exposed.
    pub fn redacted_tree_as_kubectl(&self) -> Node {
        Writer { secrets: Secrets::MaskedAsKubectl, keeps_unknown: false }.config(self)
    }

    /// The content as `kubectl config view --raw` shows it: every secret is exposed. Unknown fields are omitted.
    pub fn expose_tree(&self) -> Node {
        Writer { secrets: Secrets::Exposed, keeps_unknown: false }.config(self)
    }

    /// The content for writing the file back: every secret is exposed, unknown fields are kept.
    pub fn expose_tree_with_unknown_fields(&self) -> Node {
        Writer { secrets: Secrets::Exposed, keeps_unknown: true }.config(self)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Secrets {
    Exposed,
    Masked,
    MaskedAsKubectl,
}

#[derive(Clone, Copy)]
struct Writer {
    secrets: Secrets,
    keeps_unknown: bool,
}

impl Writer {
    fn config(self, config: &Kubeconfig) -> Node {
        let mut tree = Mapping::default();
        tree.push("kind", "Config");
        tree.push("apiVersion", "v1");
        let preferences = self.object(&config.preferences.other, |tree| {
            push_if(tree, "colors", config.preferences.colors);
            self.extensions(tree, &config.preferences.extensions);
        });
        if !preferences.is_empty() {
            tree.push("preferences", preferences);
        }
        tree.push(
            "clusters",
            named_list(&config.clusters, |entry: &NamedCluster| {
                self.named(&entry.name, "cluster", self.cluster(&entry.cluster), &entry.other)
            }),
        );
        tree.push(
            "users",
            named_list(&config.users, |entry: &NamedAuthInfo| {
                self.named(&entry.name, "user", self.user(&entry.user), &entry.other)
            }),
        );
        tree.push(
            "contexts",
            named_list(&config.contexts, |entry: &NamedContext| {
                self.named(&entry.name, "context", self.context(&entry.context), &entry.other)
            }),
        );
        tree.push("current-context", config.current_context.as_str());
        self.extensions(&mut tree, &config.extensions);
        self.unknown(&mut tree, &config.other);
        Node::new(tree)
    }

    fn cluster(self, cluster: &Cluster) -> Mapping {
        self.object(&cluster.other, |tree| {
            tree.push("server", self.url(&cluster.server).as_ref());
            push_text(tree, "tls-server-name", &cluster.tls_server_name);
            push_if(tree, "insecure-skip-tls-verify", cluster.insecure_skip_tls_verify);
            push_text(tree, "certificate-authority", &cluster.certificate_authority);
            self.data(tree, "certificate-authority-data", &cluster.certificate_authority_data);
            push_text(tree, "proxy-url", &self.url(&cluster.proxy_url));
            push_if(tree, "disable-compression", cluster.disable_compression);
            self.extensions(tree, &cluster.extensions);
        })
    }

    fn user(self, user: &AuthInfo) -> Mapping {
        self.object(&user.other, |tree| {
            push_text(tree, "client-certificate", &user.client_certificate);
            self.data(tree, "client-certificate-data", &user.client_certificate_data);
            push_text(tree, "client-key", &user.client_key);
            self.data(tree, "client-key-data", user.client_key_data.expose());
            push_text(tree, "token", self.secret(&user.token));
            push_text(tree, "tokenFile", &user.token_file);
            push_text(tree, "as", &user.impersonate);
            push_text(tree, "as-uid", &user.impersonate_uid);
            if !user.impersonate_groups.is_empty() {
                tree.push("as-groups", texts(&user.impersonate_groups));
            }
            if !user.impersonate_user_extra.is_empty() {
                let mut extra = Mapping::default();
                for (key, values) in &user.impersonate_user_extra {
                    extra.push(key, texts(values));
                }
                tree.push("as-user-extra", extra);
            }
            push_text(tree, "username", &user.username);
            push_text(tree, "password", self.secret(&user.password));
            if let Some(provider) = &user.auth_provider {
                tree.push("auth-provider", self.auth_provider(provider));
            }
            if let Some(exec) = &user.exec {
                tree.push("exec", self.exec(exec));
            }
            self.extensions(tree, &user.extensions);
        })
    }

    fn auth_provider(self, provider: &AuthProviderConfig) -> Mapping {
        self.object(&provider.other, |tree| {
            tree.push("name", provider.name.as_str());
            let mut config = Mapping::default();
            for (key, value) in &provider.config {
                let is_plain = NON_SECRET_PROVIDER_SETTINGS.contains(&key.as_str());
                config.push(key, if is_plain { value.expose().as_str() } else { self.setting(value) });
            }
            tree.push("config", if config.is_empty() { Value::Null } else { config.into() });
        })
    }

    fn exec(self, exec: &ExecConfig) -> Mapping {
        self.object(&exec.other, |tree| {
            tree.push("command", exec.command.as_str());
            let args = match self.secrets {
                Secrets::Masked => texts(&redact::arguments(&exec.args)),
                Secrets::Exposed | Secrets::MaskedAsKubectl => texts(&exec.args),
            };
            tree.push("args", null_if_empty(args));
            let env = exec.env.iter().map(|variable| {
                Node::new(self.object(&variable.other, |tree| {
                    tree.push("name", variable.name.as_str());
                    tree.push("value", self.setting(&variable.value));
                }))
            });
            tree.push("env", null_if_empty(env.collect()));
            push_text(tree, "apiVersion", &exec.api_version);
            push_text(tree, "installHint", &exec.install_hint);
            tree.push("provideClusterInfo", exec.provide_cluster_info);
            push_text(tree, "interactiveMode", exec.interactive_mode.as_str());
        })
    }

    fn context(self, context: &Context) -> Mapping {
        self.object(&context.other, |tree| {
            tree.push("cluster", context.cluster.as_str());
            tree.push("user", context.user.as_str());
            push_text(tree, "namespace", &context.namespace);
            self.extensions(tree, &context.extensions);
        })
    }

    fn extensions(self, tree: &mut Mapping, extensions: &[NamedExtension]) {
        if !extensions.is_empty() {
            tree.push(
                "extensions",
                named_list(extensions, |entry: &NamedExtension| {
                    self.object(&entry.other, |tree| {
                        tree.push("name", entry.name.as_str());
                        tree.push("extension", entry.extension.value.clone());
                    })
                }),
            );
        }
    }

    fn named(self, name: &str, field: &str, value: Mapping, other: &Mapping) -> Mapping {
        self.object(other, |tree| {
            tree.push("name", name);
            tree.push(field, value);
        })
    }

    fn object(self, other: &Mapping, write: impl FnOnce(&mut Mapping)) -> Mapping {
        let mut tree = Mapping::default();
        write(&mut tree);
        self.unknown(&mut tree, other);
        tree
    }

    fn unknown(self, tree: &mut Mapping, other: &Mapping) {
        if self.keeps_unknown {
            for entry in other.effective() {
                tree.push(&entry.key, entry.value.value.clone());
            }
        }
    }

    /// A token or password.
    fn secret(self, secret: &Secret<String>) -> &str {
        match self.secrets {
            Secrets::Masked | Secrets::MaskedAsKubectl if !secret.is_empty() => REDACTED,
            _ => secret.expose(),
        }
    }

    /// A possible secret that kubectl shows.
    fn setting(self, setting: &Secret<String>) -> &str {
        match self.secrets {
            Secrets::Masked if !setting.is_empty() => REDACTED,
            _ => setting.expose(),
        }
    }

    fn data(self, tree: &mut Mapping, name: &str, bytes: &[u8]) {
        match self.secrets {
            _ if bytes.is_empty() => {}
            Secrets::Masked | Secrets::MaskedAsKubectl => tree.push(name, DATA_OMITTED),
            Secrets::Exposed => tree.push(name, Base64::encode(bytes)),
        }
    }

    fn url(self, url: &str) -> Cow<'_, str> {
        match self.secrets {
            Secrets::Masked => redact::url(url),
            Secrets::Exposed | Secrets::MaskedAsKubectl => Cow::Borrowed(url),
        }
    }
}

/// Auth provider settings that are never secret; every other setting is masked.
pub(super) const NON_SECRET_PROVIDER_SETTINGS: [&str; 14] = [
    "apiserver-id",
    "client-id",
    "cmd-path",
    "config-mode",
    "environment",
    "expires-in",
    "expires-on",
    "expiry",
    "extra-scopes",
    "idp-certificate-authority",
    "idp-issuer-url",
    "pathExec",
    "pathLib",
    "tenant-id",
];

/// Sorted by name; null if empty.
fn named_list<T: Named>(entries: &[T], write: impl Fn(&T) -> Mapping) -> Value {
    let mut sorted: Vec<&T> = entries.iter().collect();
    sorted.sort_by(|left, right| left.name().cmp(right.name()));
    null_if_empty(sorted.into_iter().map(|entry| Node::new(write(entry))).collect())
}

fn null_if_empty(items: Vec<Node>) -> Value {
    if items.is_empty() { Value::Null } else { items.into() }
}

fn texts<S: AsRef<str>>(texts: &[S]) -> Vec<Node> {
    texts.iter().map(|text| Node::new(text.as_ref())).collect()
}

fn push_text(tree: &mut Mapping, name: &str, text: &str) {
    if !text.is_empty() {
        tree.push(name, text);
    }
}

fn push_if(tree: &mut Mapping, name: &str, value: bool) {
    if value {
        tree.push(name, true);
    }
}
