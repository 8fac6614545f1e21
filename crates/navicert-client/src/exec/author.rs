//! For plugin authors: read the request, write the response, and report failures that clients can show.
//!
//! ```
//! use navicert_client::exec::author::{PluginInput, PluginResponse};
//!
//! // In a plugin, the value of KUBERNETES_EXEC_INFO.
//! let value = r#"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
//!   "spec":{"cluster":{"server":"https://c.example","config":{"audience":"a"}},"interactive":false}}"#;
//! let input = PluginInput::read(Some(value.as_ref()))?;
//! let cluster = input.require_cluster()?;
//! assert_eq!(cluster.server, "https://c.example");
//!
//! let mut stdout = Vec::new();
//! PluginResponse::token("t0ken").with_expiry("2031-01-02T03:04:05Z".parse()?).write(&input, &mut stdout)?;
//! assert!(stdout.ends_with(b"\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
// §6

use std::ffi::OsStr;
use std::io::{self, Write};

use navicert_go::url::{Url, UrlError};
use navicert_types::exec_credential::{
    self, DecodeError, ExecCluster, ExecCredential, ExecCredentialSpec, ExecCredentialStatus, ExecVersion,
    GROUP, KIND,
};
use navicert_types::tree::{Mapping, Node, Value};
use navicert_types::{Secret, Timestamp, redact};
use thiserror::Error;

use super::response::{self, PluginOutputError};

/// The request of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginInput {
    version: ExecVersion,
    spec: ExecCredentialSpec,
}

/// Why a plugin cannot read its request. Messages are client-go's.
// C601, C602
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginInputError {
    /// The variable is unset: the plugin was not started by a client, or by one before 1.20.
    #[error("KUBERNETES_EXEC_INFO env var is unset or empty")]
    Unset,
    /// The value cannot be decoded.
    #[error("decode: {0}")]
    Undecodable(DecodeError),
    /// The value has another kind.
    #[error("invalid group/kind: wanted {KIND}.{GROUP}, got {0}")]
    OtherKind(String),
    /// Cluster information is missing: `provideClusterInfo` is not set in the kubeconfig.
    #[error("ExecCredential does not contain cluster information")]
    NoCluster,
    /// The cluster's proxy URL is invalid.
    #[error("cannot create rest.Config: cannot parse proxy URL")]
    Proxy(#[source] UrlError),
}

/// Connection settings of the cluster, without credentials.
// C604
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientConfig {
    /// Base URL.
    pub server: String,
    /// Server name for certificate verification; empty for the host of `server`.
    pub tls_server_name: String,
    /// Disables verification of the server's certificate.
    pub insecure_skip_tls_verify: bool,
    /// The certificate authority bundle as PEM text; empty for the system root certificates.
    pub certificate_authority_data: Vec<u8>,
    /// Proxy URL; empty for none. May contain a password.
    pub proxy_url: String,
    /// Disables response compression.
    pub disable_compression: bool,
}

impl PluginInput {
    /// Decodes the value of `KUBERNETES_EXEC_INFO`, which the caller takes from the environment.
    ///
    /// # Errors
    /// [`PluginInputError`]: the value is unset or not a request.
    pub fn read(variable: Option<&OsStr>) -> Result<Self, PluginInputError> {
        let text = variable.filter(|text| !text.is_empty()).ok_or(PluginInputError::Unset)?;
        let (version, credential) =
            exec_credential::decode(text.as_encoded_bytes()).map_err(|error| match error {
                DecodeError::NotRegistered { kind, api_version } => {
                    let group = api_version.split_once('/').map_or("", |(group, _)| group);
                    match (kind.as_str(), group) {
                        (KIND, GROUP) => {
                            PluginInputError::Undecodable(DecodeError::NotRegistered { kind, api_version })
                        }
                        (kind, "") => PluginInputError::OtherKind(kind.to_owned()),
                        (kind, group) => PluginInputError::OtherKind(format!("{kind}.{group}")),
                    }
                }
                other => PluginInputError::Undecodable(other),
            })?;
        Ok(PluginInput { version, spec: credential.spec })
    }

    /// The version of the request, which the response must have too.
    pub fn version(&self) -> ExecVersion {
        self.version
    }

    /// Whether the plugin may interact with the user on standard input.
    pub fn is_interactive(&self) -> bool {
        self.spec.interactive
    }

    /// The kubeconfig cluster entry's extension for exec plugins; null if absent.
    pub fn config(&self) -> Option<&Node> {
        self.spec.cluster.as_ref().map(|cluster| &cluster.config)
    }

    /// Connection settings of the cluster, if the client provides them.
    ///
    /// # Errors
    /// The proxy URL is invalid.
    // C603
    pub fn cluster(&self) -> Result<Option<ClientConfig>, PluginInputError> {
        self.spec.cluster.as_ref().map(ClientConfig::try_from).transpose()
    }

    /// Connection settings of the cluster, for plugins that require them.
    ///
    /// # Errors
    /// The client does not provide them, or the proxy URL is invalid.
    pub fn require_cluster(&self) -> Result<ClientConfig, PluginInputError> {
        self.cluster()?.ok_or(PluginInputError::NoCluster)
    }
}

impl TryFrom<&ExecCluster> for ClientConfig {
    type Error = PluginInputError;

    fn try_from(cluster: &ExecCluster) -> Result<Self, PluginInputError> {
        if !cluster.proxy_url.is_empty() {
            Url::parse(&cluster.proxy_url).map_err(PluginInputError::Proxy)?;
        }
        Ok(ClientConfig {
            server: cluster.server.clone(),
            tls_server_name: cluster.tls_server_name.clone(),
            insecure_skip_tls_verify: cluster.insecure_skip_tls_verify,
            certificate_authority_data: cluster.certificate_authority_data.clone(),
            proxy_url: cluster.proxy_url.clone(),
            disable_compression: cluster.disable_compression,
        })
    }
}

/// For programs that run plugins: everything except the exec configuration, which [`ClientConfig`] does not have.
// C605
impl From<&ClientConfig> for ExecCluster {
    fn from(config: &ClientConfig) -> Self {
        ExecCluster {
            server: config.server.clone(),
            tls_server_name: config.tls_server_name.clone(),
            insecure_skip_tls_verify: config.insecure_skip_tls_verify,
            certificate_authority_data: config.certificate_authority_data.clone(),
            proxy_url: config.proxy_url.clone(),
            disable_compression: config.disable_compression,
            config: Node::default(),
        }
    }
}

/// A plugin's response: a token, a certificate with its key, or both.
// C606
#[derive(Clone, Debug, Default)]
pub struct PluginResponse {
    status: ExecCredentialStatus,
}

/// Why a response was not written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteResponseError {
    /// Clients would reject it.
    #[error(transparent)]
    Rejected(#[from] PluginOutputError),
    /// Standard output is closed.
    #[error("failed to write the response")]
    Output(#[from] io::Error),
}

impl PluginResponse {
    /// A bearer token.
    pub fn token(token: impl Into<String>) -> Self {
        PluginResponse::default().with_token(token)
    }

    /// A certificate chain, leaf first, and its key, as PEM text.
    pub fn certificate(chain: impl Into<String>, key: impl Into<Secret<String>>) -> Self {
        PluginResponse::default().with_certificate(chain, key)
    }

    /// Sets the bearer token.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.status.token = Secret::new(token.into());
        self
    }

    /// Sets the certificate chain and key.
    #[must_use]
    pub fn with_certificate(mut self, chain: impl Into<String>, key: impl Into<Secret<String>>) -> Self {
        self.status.client_certificate_data = chain.into();
        self.status.client_key_data = key.into();
        self
    }

    /// Sets the expiry; clients see whole seconds.
    #[must_use]
    pub fn with_expiry(mut self, at: Timestamp) -> Self {
        self.status.expiration_timestamp = Some(at.into());
        self
    }

    /// Writes the response in the version of the request: one document and a line break.
    ///
    /// # Errors
    /// Clients would reject the response, in which case nothing is written, or writing failed.
    pub fn write(self, input: &PluginInput, stdout: &mut dyn Write) -> Result<(), WriteResponseError> {
        let credential = ExecCredential { spec: ExecCredentialSpec::default(), status: Some(self.status) };
        let text = credential.to_response_json(input.version);
        response::read(text.expose().as_bytes(), input.version)?;
        stdout.write_all(text.expose().as_bytes())?;
        Ok(stdout.flush()?)
    }
}

/// Reports a failure: writes a `Status` object to standard output for clients, and the message to standard error. Returns
/// the exit code.
///
/// # Errors
/// Writing to one of the streams failed.
// C327
pub fn fail(message: &str, stdout: &mut dyn Write, stderr: &mut dyn Write) -> io::Result<u8> {
    let mut status = Mapping::default();
    for (name, value) in
        [("kind", "Status"), ("apiVersion", "v1"), ("status", "Failure"), ("message", message)]
    {
        status.push(name, Value::String(value.to_owned().into()));
    }
    writeln!(stdout, "{}", Node::new(Value::Mapping(status)).to_json())?;
    writeln!(stderr, "{}", redact::terminal(message))?;
    Ok(1)
}

#[cfg(test)]
mod tests;
