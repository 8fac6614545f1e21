//! `ExecCredential`: the request a client passes to an exec plugin and the plugin's response.
//!
//! One hub type serves all versions; `v1.rs`, `v1beta1.rs` and (feature `exec-v1alpha1`) `v1alpha1.rs` implement the wire
//! formats. `navicert-client` validates responses.
// §2

mod json;
mod read;
#[cfg(test)]
mod tests;
mod v1;
#[cfg(feature = "exec-v1alpha1")]
mod v1alpha1;
mod v1beta1;

use std::fmt;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::redact;
use crate::secret::Secret;
use crate::time::Time;
use crate::tree::Node;

pub use read::decode;

/// The API group of every version.
pub const GROUP: &str = "client.authentication.k8s.io";
/// The kind of every version.
pub const KIND: &str = "ExecCredential";
/// The environment variable that carries the request.
// C210
pub const INFO_VARIABLE: &str = "KUBERNETES_EXEC_INFO";

/// A supported version of `ExecCredential`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExecVersion {
    /// `client.authentication.k8s.io/v1`.
    V1,
    /// `client.authentication.k8s.io/v1beta1`.
    V1Beta1,
    /// `client.authentication.k8s.io/v1alpha1`, removed from Kubernetes in 1.24.
    #[cfg(feature = "exec-v1alpha1")]
    V1Alpha1,
}

impl ExecVersion {
    /// Every version, newest first.
    pub const ALL: &[ExecVersion] = &[
        ExecVersion::V1,
        ExecVersion::V1Beta1,
        #[cfg(feature = "exec-v1alpha1")]
        ExecVersion::V1Alpha1,
    ];

    /// The version with exactly this `apiVersion`.
    // C201
    pub fn from_api_version(api_version: &str) -> Option<Self> {
        ExecVersion::ALL.iter().copied().find(|version| version.api_version() == api_version)
    }

    /// The `apiVersion` text.
    pub fn api_version(self) -> &'static str {
        match self {
            ExecVersion::V1 => v1::API_VERSION,
            ExecVersion::V1Beta1 => v1beta1::API_VERSION,
            #[cfg(feature = "exec-v1alpha1")]
            ExecVersion::V1Alpha1 => v1alpha1::API_VERSION,
        }
    }

    /// Whether requests in this version can contain cluster information.
    pub fn has_cluster(self) -> bool {
        match self {
            ExecVersion::V1 | ExecVersion::V1Beta1 => true,
            #[cfg(feature = "exec-v1alpha1")]
            ExecVersion::V1Alpha1 => false,
        }
    }
}

impl fmt::Display for ExecVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.api_version())
    }
}

/// A request and its response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecCredential {
    /// The request.
    pub spec: ExecCredentialSpec,
    /// The response, if present.
    pub status: Option<ExecCredentialStatus>,
}

/// The request to a plugin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecCredentialSpec {
    /// The cluster the credential is for, if `provideClusterInfo` is set.
    pub cluster: Option<ExecCluster>,
    /// Whether the plugin may use standard input.
    // C222
    pub interactive: bool,
    /// The server response that required a new credential; v1alpha1 only.
    // C202
    pub response: Option<ServerResponse>,
}

/// The cluster information passed to a plugin: the fields of a kubeconfig cluster except the CA file and the extensions.
// C213
#[derive(Clone, Default, PartialEq)]
pub struct ExecCluster {
    /// Base URL.
    pub server: String,
    /// Server name for certificate verification; empty for the host of `server`.
    pub tls_server_name: String,
    /// Disables verification of the server's certificate.
    pub insecure_skip_tls_verify: bool,
    /// The certificate authority bundle as PEM text.
    pub certificate_authority_data: Vec<u8>,
    /// Proxy URL. May contain a password.
    pub proxy_url: String,
    /// Disables response compression.
    pub disable_compression: bool,
    /// The cluster entry's extension for exec plugins; null if absent. Must not be logged.
    // C230, C232
    pub config: Node,
}

/// Omits the proxy password and the configuration.
impl fmt::Debug for ExecCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("server", &redact::url(&self.server))
            .field("tls_server_name", &self.tls_server_name)
            .field("insecure_skip_tls_verify", &self.insecure_skip_tls_verify)
            .field(
                "certificate_authority_data",
                &format_args!("{} bytes", self.certificate_authority_data.len()),
            )
            .field("proxy_url", &redact::url(&self.proxy_url))
            .field("disable_compression", &self.disable_compression)
            .field("config", &self.config.kind())
            .finish()
    }
}

/// Status and headers of a server response.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ServerResponse {
    /// Header names and values in the order of the response.
    pub header: Vec<(String, Vec<String>)>,
    /// The status code.
    pub code: i32,
}

impl fmt::Debug for ServerResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("code", &self.code).finish_non_exhaustive()
    }
}

/// The plugin's response; the same in every version. Not validated here.
// C240
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecCredentialStatus {
    /// When the credential expires; `None` (also for Go's zero time) means never.
    // C333
    pub expiration_timestamp: Option<Time>,
    /// Bearer token; empty if absent.
    pub token: Secret<String>,
    /// Certificate chain as PEM text, leaf first; empty if absent.
    pub client_certificate_data: String,
    /// The leaf's private key as PEM text; empty if absent.
    pub client_key_data: Secret<String>,
}

/// Why a text is not an `ExecCredential`. Messages are client-go's where it has one. No message contains a value except
/// `apiVersion` and `kind`, and these only if they are well-formed.
// §3.4
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Not JSON, or not an object with `apiVersion` and `kind`.
    #[error("couldn't get version/kind; json parse error: {0}")]
    Json(Diagnostic),
    /// Not YAML.
    #[error("yaml: {0}")]
    Yaml(Diagnostic),
    /// `apiVersion` is missing; the output may be empty.
    // C331
    #[error("no apiVersion (empty output?)")]
    NoVersion,
    /// An unsupported version or kind.
    #[error(
        "no kind {kind:?} is registered for version {api_version:?}; supported versions are {}",
        KnownVersions
    )]
    NotRegistered {
        /// The kind.
        kind: String,
        /// The version.
        api_version: String,
    },
    /// Fields of the wrong type or invalid times.
    #[error(transparent)]
    Fields(Diagnostics),
}

/// The supported versions, for messages.
struct KnownVersions;

impl fmt::Display for KnownVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, version) in ExecVersion::ALL.iter().enumerate() {
            let separator = if index > 0 { " and " } else { "" };
            write!(f, "{separator}{version}")?;
        }
        Ok(())
    }
}

impl ExecCredential {
    /// The request for a plugin, byte for byte as client-go writes it: without `status`, with one final line break.
    // C210, C211
    pub fn to_request_json(&self, version: ExecVersion) -> Secret<String> {
        let mut text = json::start(version);
        match version {
            ExecVersion::V1 => v1::write_spec(&mut text, &self.spec),
            ExecVersion::V1Beta1 => v1beta1::write_spec(&mut text, &self.spec),
            #[cfg(feature = "exec-v1alpha1")]
            ExecVersion::V1Alpha1 => v1alpha1::write_spec(&mut text, &self.spec),
        }
        text.push_str("}\n");
        text.into()
    }

    /// The response as a plugin prints it: one document and a line break.
    // C606
    pub fn to_response_json(&self, version: ExecVersion) -> Secret<String> {
        let mut text = json::start(version);
        if let Some(status) = &self.status {
            v1::write_status(&mut text, status);
        }
        text.push_str("}\n");
        text.into()
    }
}
