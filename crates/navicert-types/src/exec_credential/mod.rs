//! `ExecCredential`: what a client tells a credential plugin and what the plugin answers (client-credentials.md §2).
//!
//! One hub type for all versions; `v1.rs`, `v1beta1.rs` and (feature `exec-v1alpha1`) `v1alpha1.rs` say how each looks
//! on the wire. Which answers are acceptable is decided by `navicert-client`.

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
/// The environment variable that carries the question (C210).
pub const INFO_VARIABLE: &str = "KUBERNETES_EXEC_INFO";

/// A version of `ExecCredential` that is spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Version {
    /// `client.authentication.k8s.io/v1`.
    V1,
    /// `client.authentication.k8s.io/v1beta1`.
    V1Beta1,
    /// `client.authentication.k8s.io/v1alpha1`, removed from Kubernetes in 1.24.
    #[cfg(feature = "exec-v1alpha1")]
    V1Alpha1,
}

impl Version {
    /// Every version, newest first.
    pub const ALL: &[Version] = &[
        Version::V1,
        Version::V1Beta1,
        #[cfg(feature = "exec-v1alpha1")]
        Version::V1Alpha1,
    ];

    /// The version of this name; names are exact (C201).
    pub fn of(api_version: &str) -> Option<Self> {
        Version::ALL.iter().copied().find(|version| version.api_version() == api_version)
    }

    /// Its name.
    pub fn api_version(self) -> &'static str {
        match self {
            Version::V1 => v1::API_VERSION,
            Version::V1Beta1 => v1beta1::API_VERSION,
            #[cfg(feature = "exec-v1alpha1")]
            Version::V1Alpha1 => v1alpha1::API_VERSION,
        }
    }

    /// Whether a question in this version can say anything about the cluster.
    pub fn has_cluster(self) -> bool {
        match self {
            Version::V1 | Version::V1Beta1 => true,
            #[cfg(feature = "exec-v1alpha1")]
            Version::V1Alpha1 => false,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.api_version())
    }
}

/// A question with its answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecCredential {
    /// The question.
    pub spec: Spec,
    /// The answer, if there is one.
    pub status: Option<Status>,
}

/// What a plugin is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// The cluster the credential is for, if the user asked for it to be told.
    pub cluster: Option<Cluster>,
    /// Whether standard input was handed over (C222).
    pub interactive: bool,
    /// The answer of the server that made a new credential necessary; v1alpha1 only (C202).
    pub response: Option<Response>,
}

/// A cluster as a plugin sees it: every field of a kubeconfig's but the authority's file and the extensions (C213).
#[derive(Clone, Default, PartialEq)]
pub struct Cluster {
    /// Base URL.
    pub server: String,
    /// Name to check the certificate against; empty for the host of `server`.
    pub tls_server_name: String,
    /// Do not verify the server at all.
    pub insecure_skip_tls_verify: bool,
    /// The certificate authority's certificates as PEM text.
    pub certificate_authority_data: Vec<u8>,
    /// Proxy to go through. May carry a password.
    pub proxy_url: String,
    /// Do not ask for compressed answers.
    pub disable_compression: bool,
    /// What the cluster's entry says for plugins (C230); null if nothing. Not to be logged (C232).
    pub config: Node,
}

/// Leaves out what a proxy's address and the configuration may hold.
impl fmt::Debug for Cluster {
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

/// The head of an answer of the server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// The headers: name and values, in the order of the answer.
    pub header: Vec<(String, Vec<String>)>,
    /// The status code.
    pub code: i32,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("code", &self.code).finish_non_exhaustive()
    }
}

/// What a plugin answers; the same in every version (C240). Nothing is judged here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// When the credential expires; `None` is never, and so is Go's zero time (C333).
    pub expiration_timestamp: Option<Time>,
    /// Bearer token, empty if there is none.
    pub token: Secret<String>,
    /// Certificates as PEM text, leaf first, empty if there are none.
    pub client_certificate_data: String,
    /// The leaf's key as PEM text, empty if there is none.
    pub client_key_data: Secret<String>,
}

/// Why a text is no `ExecCredential`. The texts are upstream's where it has one (§3.4); no value is repeated but
/// `apiVersion` and `kind`, and these only if they look like one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Not JSON, or JSON that is no object with `apiVersion` and `kind`.
    #[error("couldn't get version/kind; json parse error: {0}")]
    Json(#[source] Diagnostic),
    /// Not YAML.
    #[error("yaml: {0}")]
    Yaml(#[source] Diagnostic),
    /// Nothing says which version it is: nothing at all was printed, perhaps (C331).
    #[error("no apiVersion (empty output?)")]
    NoVersion,
    /// A version or kind that is not known.
    #[error("no kind {kind:?} is registered for version {api_version:?}; known are {}", Known)]
    NotRegistered {
        /// The kind.
        kind: String,
        /// The version.
        api_version: String,
    },
    /// Fields of a wrong type, times that are none.
    #[error("{0}")]
    Fields(#[source] Diagnostics),
}

/// The versions that are spoken, for messages.
struct Known;

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, version) in Version::ALL.iter().enumerate() {
            let separator = if index > 0 { " and " } else { "" };
            write!(f, "{separator}{version}")?;
        }
        Ok(())
    }
}

impl ExecCredential {
    /// The question as a plugin gets it, byte for byte as client-go writes it (C210, C211): without the answer, and
    /// with one line end.
    pub fn question(&self, version: Version) -> Secret<String> {
        let mut text = json::start(version);
        match version {
            Version::V1 => v1::write_spec(&mut text, &self.spec),
            Version::V1Beta1 => v1beta1::write_spec(&mut text, &self.spec),
            #[cfg(feature = "exec-v1alpha1")]
            Version::V1Alpha1 => v1alpha1::write_spec(&mut text, &self.spec),
        }
        text.push_str("}\n");
        text.into()
    }

    /// The answer as a plugin gives it: one document and a line end (C606).
    pub fn answer(&self, version: Version) -> Secret<String> {
        let mut text = json::start(version);
        if let Some(status) = &self.status {
            v1::write_status(&mut text, status);
        }
        text.push_str("}\n");
        text.into()
    }
}
