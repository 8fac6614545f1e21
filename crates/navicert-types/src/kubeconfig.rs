//! The kubeconfig file as types. Possible secrets are [`Secret`]s, and unknown fields are kept so that a file
//! round-trips without loss. `navicert-client` locates, merges and validates files.
// C101–C109

mod debug;
mod mask;
mod read;
#[cfg(test)]
mod tests;
mod write;

use indexmap::IndexMap;

use crate::diagnostic::Diagnostics;
use crate::secret::Secret;
use crate::tree::{Mapping, Node};
use crate::wire_text::wire_text;

/// Decodes one kubeconfig file, in YAML or JSON.
///
/// An empty file is an empty configuration, unknown fields are kept, and `apiVersion` and `kind` are optional.
///
/// ```
/// let config = navicert_types::kubeconfig::decode(b"users:\n- name: ann\n  user: {token: t0ken}\n").unwrap();
/// assert_eq!(config.users[0].name, "ann");
/// assert_eq!(config.users[0].user.token.expose(), "t0ken");
/// assert!(!format!("{config:?}").contains("t0ken"));
/// ```
///
/// # Errors
/// Every error that keeps the file from loading: syntax errors, values of the wrong type, invalid base64, duplicate
/// names in a list. Entries that decode but are unusable load; validation rejects them when they are selected.
// C102, C103, C104, C105
pub fn decode(bytes: &[u8]) -> Result<Kubeconfig, Diagnostics> {
    read::config(bytes)
}

/// The valid fields of a file that [`decode`] rejects; an invalid field has its zero value, and a duplicate entry stays in
/// its list. `None` if the file is not YAML or of another kind.
///
/// ```
/// let text = b"users: [{name: ann, user: {token: [], tokenFile: t}}]";
/// assert!(navicert_types::kubeconfig::decode(text).is_err());
/// let config = navicert_types::kubeconfig::decode_partially(text).unwrap();
/// assert_eq!(config.users[0].user.token_file, "t");
/// ```
pub fn decode_partially(bytes: &[u8]) -> Option<Kubeconfig> {
    read::partial(bytes)
}

/// Unknown fields of a file with their positions, usually typos. Empty for a file that is not YAML or of another kind.
///
/// ```
/// let text = b"clusters: [{name: c, cluster: {sever: 'https://127.0.0.1'}}]";
/// let unknown = navicert_types::kubeconfig::unknown_fields(text);
/// assert_eq!(unknown.iter().next().unwrap().hint.as_deref(), Some("did you mean `server`?"));
/// ```
pub fn unknown_fields(bytes: &[u8]) -> Diagnostics {
    read::unknown_fields(bytes)
}

/// The text with the same lines, in which every value that may be a secret reads `REDACTED`: those that
/// [`Kubeconfig::redacted_tree`] masks, unknown fields of users, and what looks like a secret in a comment.
/// Empty if the text is not YAML.
///
/// ```
/// let text = "users:\n- name: ann\n  user: {token: canary} # token: canary\n";
/// let masked = navicert_types::kubeconfig::masked_text(text);
/// assert_eq!(masked, "users:\n- name: ann\n  user: {token: REDACTED} # token: REDACTED\n");
/// ```
pub fn masked_text(text: &str) -> String {
    mask::masked_text(text)
}

/// A kubeconfig file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kubeconfig {
    /// Deprecated command-line preferences.
    pub preferences: Preferences,
    /// The clusters.
    pub clusters: Vec<NamedCluster>,
    /// The users.
    pub users: Vec<NamedAuthInfo>,
    /// The contexts.
    pub contexts: Vec<NamedContext>,
    /// The context used unless another is requested; empty if none is set.
    pub current_context: String,
    /// Extensions of other tools.
    pub extensions: Vec<NamedExtension>,
    /// Unknown fields.
    pub other: Mapping,
}

/// `preferences`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Preferences {
    /// Whether output is colored.
    pub colors: bool,
    /// Extensions of other tools.
    pub extensions: Vec<NamedExtension>,
    /// Unknown fields.
    pub other: Mapping,
}

/// An entry of `clusters`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedCluster {
    /// Its name in this file.
    pub name: String,
    /// The cluster.
    pub cluster: Cluster,
    /// Unknown fields.
    pub other: Mapping,
}

/// Connection settings of a cluster.
#[derive(Clone, Default, PartialEq)]
pub struct Cluster {
    /// Base URL, with an optional path prefix.
    pub server: String,
    /// Server name for SNI and certificate verification; empty for the host of `server`.
    pub tls_server_name: String,
    /// Disables verification of the server's certificate.
    pub insecure_skip_tls_verify: bool,
    /// Path of the certificate authority bundle.
    pub certificate_authority: String,
    /// The same as PEM data; takes precedence over the file.
    pub certificate_authority_data: Vec<u8>,
    /// Proxy URL. May contain a password: print it through [`crate::redact::url`].
    pub proxy_url: String,
    /// Disables response compression.
    pub disable_compression: bool,
    /// Extensions of other tools; [`Cluster::EXEC_EXTENSION`] is passed to the user's exec plugin.
    pub extensions: Vec<NamedExtension>,
    /// Unknown fields.
    pub other: Mapping,
}

impl Cluster {
    /// The extension that becomes an exec plugin's `spec.cluster.config`.
    // C230
    pub const EXEC_EXTENSION: &'static str = "client.authentication.k8s.io/exec";
}

/// An entry of `users`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedAuthInfo {
    /// Its name in this file.
    pub name: String,
    /// The user's credentials.
    pub user: AuthInfo,
    /// Unknown fields.
    pub other: Mapping,
}

/// Credentials of a user.
#[derive(Clone, Default, PartialEq)]
pub struct AuthInfo {
    /// Path of the client certificate.
    pub client_certificate: String,
    /// The same as PEM data; takes precedence over the file.
    pub client_certificate_data: Vec<u8>,
    /// Path of the client key.
    pub client_key: String,
    /// The same as PEM data; takes precedence over the file.
    pub client_key_data: Secret<Vec<u8>>,
    /// Bearer token.
    pub token: Secret<String>,
    /// Path of a bearer token file; takes precedence over `token`.
    // C162
    pub token_file: String,
    /// `as`: user to impersonate.
    pub impersonate: String,
    /// `as-uid`: UID to impersonate.
    pub impersonate_uid: String,
    /// `as-groups`: groups to impersonate.
    pub impersonate_groups: Vec<String>,
    /// `as-user-extra`: extra attributes to impersonate.
    pub impersonate_user_extra: IndexMap<String, Vec<String>>,
    /// User name for basic authentication.
    pub username: String,
    /// Password for basic authentication.
    pub password: Secret<String>,
    /// `auth-provider`: an auth provider built into the client.
    pub auth_provider: Option<AuthProviderConfig>,
    /// An exec plugin that provides the credential.
    pub exec: Option<ExecConfig>,
    /// Extensions of other tools.
    pub extensions: Vec<NamedExtension>,
    /// Unknown fields.
    pub other: Mapping,
}

/// An auth provider built into the client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuthProviderConfig {
    /// Provider name: `oidc`, `externalSigner`, or one that Kubernetes has removed.
    pub name: String,
    /// Provider settings, including tokens and secrets.
    pub config: IndexMap<String, Secret<String>>,
    /// Unknown fields.
    pub other: Mapping,
}

/// An exec plugin that provides a credential.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ExecConfig {
    /// The executable: a path, or a name looked up in `PATH`.
    pub command: String,
    /// Arguments. They may contain secrets: print them through [`crate::redact::arguments`].
    pub args: Vec<String>,
    /// Additional environment variables.
    pub env: Vec<ExecEnvVar>,
    /// The `ExecCredential` version the plugin uses.
    pub api_version: String,
    /// Shown when the executable is missing. Print it through [`crate::redact::terminal`].
    pub install_hint: String,
    /// Whether cluster information is passed to the plugin.
    pub provide_cluster_info: bool,
    /// Whether the plugin may use standard input. An empty mode becomes `IfAvailable` for v1beta1 and v1alpha1; an unknown one is
    /// rejected when the user is selected.
    // C104, C109
    pub interactive_mode: InteractiveMode,
    /// Unknown fields.
    pub other: Mapping,
}

wire_text! {
    /// Whether an exec plugin may use standard input.
    InteractiveMode {
        /// Never.
        Never = "Never",
        /// If standard input is a terminal and nothing else uses it.
        IfAvailable = "IfAvailable",
        /// It must: without a terminal the plugin does not run.
        Always = "Always",
    }
}

/// An environment variable for an exec plugin.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ExecEnvVar {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Secret<String>,
    /// Unknown fields.
    pub other: Mapping,
}

/// An entry of `contexts`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedContext {
    /// Its name in this file.
    pub name: String,
    /// The context.
    pub context: Context,
    /// Unknown fields.
    pub other: Mapping,
}

/// A combination of cluster, user and namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// Name of the cluster.
    pub cluster: String,
    /// Name of the user.
    pub user: String,
    /// Namespace used unless another is requested.
    pub namespace: String,
    /// Extensions of other tools.
    pub extensions: Vec<NamedExtension>,
    /// Unknown fields.
    pub other: Mapping,
}

/// Data that another tool stores in a kubeconfig under a name of its own.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct NamedExtension {
    /// Name of the extension.
    pub name: String,
    /// Any value; null if absent.
    // C107
    pub extension: Node,
    /// Unknown fields.
    pub other: Mapping,
}
