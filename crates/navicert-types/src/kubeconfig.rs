//! The kubeconfig file as types (C101–C109): everything that may be a secret is a [`Secret`], and fields nobody knows
//! are kept, so that reading and writing loses nothing. Locating, merging and judging files is `navicert-client`'s.

mod read;
mod shown;
#[cfg(test)]
mod tests;
mod written;

use indexmap::IndexMap;

use crate::diagnostic::Diagnostics;
use crate::secret::Secret;
use crate::tree::{Mapping, Node};

/// Reads one kubeconfig file. YAML and JSON are both taken, an empty file is an empty configuration, unknown fields
/// are kept, and `apiVersion` and `kind` may be left out (C102, C103, C104).
///
/// ```
/// let config = navicert_types::kubeconfig::decode(b"users:\n- name: ann\n  user: {token: t0ken}\n").unwrap();
/// assert_eq!(config.users[0].name, "ann");
/// assert_eq!(config.users[0].user.token.expose(), "t0ken");
/// assert!(!format!("{config:?}").contains("t0ken"));
/// ```
///
/// # Errors
/// Everything that keeps the file from loading: broken text, values of a wrong type, base64 that is none, a name
/// that occurs twice in a list (C105). What is merely unusable loads; it is judged when it is selected.
pub fn decode(bytes: &[u8]) -> Result<Config, Diagnostics> {
    read::config(bytes)
}

/// Fields of a file that nobody reads, with their places: mostly typing errors. Empty for a file that does not load.
///
/// ```
/// let text = b"clusters: [{name: c, cluster: {sever: 'https://127.0.0.1'}}]";
/// let unknown = navicert_types::kubeconfig::unknown_fields(text);
/// assert_eq!(unknown.iter().next().unwrap().hint.as_deref(), Some("did you mean `server`?"));
/// ```
pub fn unknown_fields(bytes: &[u8]) -> Diagnostics {
    read::unknown_fields(bytes)
}

/// A kubeconfig file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Settings for the command line, deprecated.
    pub preferences: Preferences,
    /// The clusters.
    pub clusters: Vec<NamedCluster>,
    /// The users.
    pub users: Vec<NamedAuthInfo>,
    /// The contexts.
    pub contexts: Vec<NamedContext>,
    /// The context to use when none is asked for; empty if there is none.
    pub current_context: String,
    /// What others keep here.
    pub extensions: Vec<NamedExtension>,
    /// Fields that are not known.
    pub other: Mapping,
}

/// `preferences`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preferences {
    /// Whether to use colours.
    pub colors: bool,
    /// What others keep here.
    pub extensions: Vec<NamedExtension>,
    /// Fields that are not known.
    pub other: Mapping,
}

/// An entry of `clusters`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedCluster {
    /// Its name in this file.
    pub name: String,
    /// How to reach it.
    pub cluster: Cluster,
    /// Fields that are not known.
    pub other: Mapping,
}

/// How to reach a cluster.
#[derive(Clone, Default, PartialEq)]
pub struct Cluster {
    /// Base URL, with an optional path prefix.
    pub server: String,
    /// Name to ask for and to check the certificate against; empty for the host of `server`.
    pub tls_server_name: String,
    /// Do not verify the server at all.
    pub insecure_skip_tls_verify: bool,
    /// File with the certificate authority's certificates.
    pub certificate_authority: String,
    /// The same as PEM text; wins over the file.
    pub certificate_authority_data: Vec<u8>,
    /// Proxy to go through. May carry a password: show it through [`crate::redact::url`].
    pub proxy_url: String,
    /// Do not ask for compressed answers.
    pub disable_compression: bool,
    /// What others keep here; [`Cluster::EXEC_EXTENSION`] is for the user's plugin.
    pub extensions: Vec<NamedExtension>,
    /// Fields that are not known.
    pub other: Mapping,
}

impl Cluster {
    /// The extension that becomes an exec plugin's `spec.cluster.config` (C230).
    pub const EXEC_EXTENSION: &'static str = "client.authentication.k8s.io/exec";
}

/// An entry of `users`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedAuthInfo {
    /// Its name in this file.
    pub name: String,
    /// Who it is and how to prove it.
    pub user: AuthInfo,
    /// Fields that are not known.
    pub other: Mapping,
}

/// Who a user is and how to prove it.
#[derive(Clone, Default, PartialEq)]
pub struct AuthInfo {
    /// File with the client certificate.
    pub client_certificate: String,
    /// The same as PEM text; wins over the file.
    pub client_certificate_data: Vec<u8>,
    /// File with the client key.
    pub client_key: String,
    /// The same as PEM text; wins over the file.
    pub client_key_data: Secret<Vec<u8>>,
    /// Bearer token.
    pub token: Secret<String>,
    /// File with a bearer token; wins over `token` (C162).
    pub token_file: String,
    /// `as`: user to impersonate.
    pub impersonate: String,
    /// `as-uid`: UID to impersonate.
    pub impersonate_uid: String,
    /// `as-groups`: groups to impersonate.
    pub impersonate_groups: Vec<String>,
    /// `as-user-extra`: extra attributes to impersonate.
    pub impersonate_user_extra: IndexMap<String, Vec<String>>,
    /// Name for basic authentication.
    pub username: String,
    /// Password for basic authentication.
    pub password: Secret<String>,
    /// `auth-provider`: a provider that is built into the client.
    pub auth_provider: Option<AuthProviderConfig>,
    /// A plugin that gives the credential.
    pub exec: Option<ExecConfig>,
    /// What others keep here.
    pub extensions: Vec<NamedExtension>,
    /// Fields that are not known.
    pub other: Mapping,
}

/// A provider that is built into the client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuthProviderConfig {
    /// Which one: `oidc` and a few removed ones.
    pub name: String,
    /// Its settings, tokens and secrets among them.
    pub config: IndexMap<String, Secret<String>>,
    /// Fields that are not known.
    pub other: Mapping,
}

/// A plugin that gives a credential.
#[derive(Clone, Default, PartialEq)]
pub struct ExecConfig {
    /// The program: a path, or a name to look up.
    pub command: String,
    /// Its arguments, as they are. Some people put secrets there: show them through [`crate::redact::arguments`].
    pub args: Vec<String>,
    /// Variables to add to its environment.
    pub env: Vec<ExecEnvVar>,
    /// The version of `ExecCredential` it speaks.
    pub api_version: String,
    /// What to tell people who do not have it. Show it through [`crate::redact::terminal`].
    pub install_hint: String,
    /// Whether to tell it about the cluster.
    pub provide_cluster_info: bool,
    /// `Never`, `IfAvailable`, `Always`, or whatever the file says: it is judged when the user is selected (C104). An
    /// empty one has become `IfAvailable` for the two old versions (C109).
    pub interactive_mode: String,
    /// Fields that are not known.
    pub other: Mapping,
}

/// A variable for a plugin's environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecEnvVar {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Secret<String>,
    /// Fields that are not known.
    pub other: Mapping,
}

/// An entry of `contexts`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedContext {
    /// Its name in this file.
    pub name: String,
    /// What belongs together.
    pub context: Context,
    /// Fields that are not known.
    pub other: Mapping,
}

/// A cluster, a user and a namespace that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// Name of the cluster.
    pub cluster: String,
    /// Name of the user.
    pub user: String,
    /// Namespace to use when none is asked for.
    pub namespace: String,
    /// What others keep here.
    pub extensions: Vec<NamedExtension>,
    /// Fields that are not known.
    pub other: Mapping,
}

/// Something that others keep in a kubeconfig, under their own name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedExtension {
    /// Whose it is.
    pub name: String,
    /// Anything; null if there is nothing (C107).
    pub extension: Node,
    /// Fields that are not known.
    pub other: Mapping,
}
