//! For people who write plugins: reading the question, writing the answer, failing in a way that clients can show
//! (client-credentials.md §6).
//!
//! ```
//! use navicert_client::exec::author::{Answer, Input};
//!
//! // In a plugin: the value of KUBERNETES_EXEC_INFO.
//! let told = r#"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
//!   "spec":{"cluster":{"server":"https://c.example","config":{"audience":"a"}},"interactive":false}}"#;
//! let input = Input::read(Some(told.as_ref()))?;
//! let cluster = input.require_cluster()?;
//! assert_eq!(cluster.server, "https://c.example");
//!
//! let mut stdout = Vec::new();
//! Answer::token("t0ken").expiring("2031-01-02T03:04:05Z".parse()?).write(&input, &mut stdout)?;
//! assert!(stdout.ends_with(b"\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ffi::OsStr;
use std::io::{self, Write};

use navicert_types::exec_credential::{
    self, Cluster, DecodeError, ExecCredential, GROUP, KIND, Spec, Status, Version,
};
use navicert_types::tree::{Mapping, Node, Value};
use navicert_types::{Secret, Timestamp, redact};
use thiserror::Error;

use super::response::{self, ResponseError};
use crate::kubeconfig::{Address, AddressError};

/// What a client tells a plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    version: Version,
    spec: Spec,
}

/// Why a plugin cannot make anything of what it was told. The texts are client-go's (C601, C602).
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputError {
    /// The variable is not there: no client runs the plugin, or one from before 1.20 does.
    #[error("KUBERNETES_EXEC_INFO env var is unset or empty")]
    Unset,
    /// It cannot be read.
    #[error("decode: {0}")]
    Undecodable(#[source] DecodeError),
    /// It is something else.
    #[error("invalid group/kind: wanted {KIND}.{GROUP}, got {0}")]
    OtherKind(String),
    /// It says nothing about the cluster: `provideClusterInfo` is not set in the kubeconfig.
    #[error("ExecCredential does not contain cluster information")]
    NoCluster,
    /// The cluster's proxy has no address.
    #[error("cannot create rest.Config: cannot parse proxy URL: {0}")]
    Proxy(#[source] AddressError),
}

/// How to reach the cluster, without any credential (C604).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientConfig {
    /// Base URL.
    pub server: String,
    /// Name to check the certificate against; empty for the host of `server`.
    pub tls_server_name: String,
    /// Do not verify the server at all.
    pub insecure_skip_tls_verify: bool,
    /// The certificate authority's certificates as PEM text; empty for the system's.
    pub certificate_authority_data: Vec<u8>,
    /// Proxy to go through; empty for none. May carry a password.
    pub proxy_url: String,
    /// Do not ask for compressed answers.
    pub disable_compression: bool,
}

impl Input {
    /// Reads the value of `KUBERNETES_EXEC_INFO`, which the caller takes from the environment.
    ///
    /// # Errors
    /// [`InputError`]: it is not set, or is no question.
    pub fn read(variable: Option<&OsStr>) -> Result<Self, InputError> {
        let text = variable.filter(|text| !text.is_empty()).ok_or(InputError::Unset)?;
        let (version, credential) =
            exec_credential::decode(text.as_encoded_bytes()).map_err(|error| match error {
                DecodeError::NotRegistered { kind, api_version } => {
                    let group = api_version.split_once('/').map_or("", |(group, _)| group);
                    match (kind.as_str(), group) {
                        (KIND, GROUP) => {
                            InputError::Undecodable(DecodeError::NotRegistered { kind, api_version })
                        }
                        (kind, "") => InputError::OtherKind(kind.to_owned()),
                        (kind, group) => InputError::OtherKind(format!("{kind}.{group}")),
                    }
                }
                other => InputError::Undecodable(other),
            })?;
        Ok(Input { version, spec: credential.spec })
    }

    /// The version to answer in.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether there is a user to talk to, on standard input.
    pub fn is_interactive(&self) -> bool {
        self.spec.interactive
    }

    /// What the kubeconfig's cluster entry says for plugins; null if nothing.
    pub fn config(&self) -> Option<&Node> {
        self.spec.cluster.as_ref().map(|cluster| &cluster.config)
    }

    /// How to reach the cluster, if the client says so (C603).
    ///
    /// # Errors
    /// The proxy has no address.
    pub fn cluster(&self) -> Result<Option<ClientConfig>, InputError> {
        self.spec.cluster.as_ref().map(ClientConfig::try_from).transpose()
    }

    /// The same for plugins that cannot do without.
    ///
    /// # Errors
    /// The client does not say so, or the proxy has no address.
    pub fn require_cluster(&self) -> Result<ClientConfig, InputError> {
        self.cluster()?.ok_or(InputError::NoCluster)
    }
}

impl TryFrom<&Cluster> for ClientConfig {
    type Error = InputError;

    fn try_from(cluster: &Cluster) -> Result<Self, InputError> {
        if !cluster.proxy_url.is_empty() {
            Address::parse(&cluster.proxy_url).map_err(InputError::Proxy)?;
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

/// For whoever runs plugins: everything but the configuration, which a client does not have (C605).
impl From<&ClientConfig> for Cluster {
    fn from(config: &ClientConfig) -> Self {
        Cluster {
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

/// What a plugin answers: a token, a certificate with its key, or both (C606).
#[derive(Clone, Debug, Default)]
pub struct Answer {
    status: Status,
}

/// Why an answer is not written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// Clients would refuse it.
    #[error(transparent)]
    Refused(#[from] ResponseError),
    /// Standard output is closed.
    #[error("cannot write the answer")]
    Output(#[from] io::Error),
}

impl Answer {
    /// A bearer token.
    pub fn token(token: impl Into<String>) -> Self {
        Answer::default().with_token(token)
    }

    /// A certificate chain, leaf first, and its key, as PEM text.
    pub fn certificate(chain: impl Into<String>, key: impl Into<Secret<String>>) -> Self {
        Answer::default().with_certificate(chain, key)
    }

    /// With a bearer token.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.status.token = Secret::new(token.into());
        self
    }

    /// With a certificate.
    #[must_use]
    pub fn with_certificate(mut self, chain: impl Into<String>, key: impl Into<Secret<String>>) -> Self {
        self.status.client_certificate_data = chain.into();
        self.status.client_key_data = key.into();
        self
    }

    /// Good until then; clients see whole seconds.
    #[must_use]
    pub fn expiring(mut self, at: Timestamp) -> Self {
        self.status.expiration_timestamp = Some(at.into());
        self
    }

    /// Writes the answer, in the version that was asked for: one document and a line end.
    ///
    /// # Errors
    /// Clients would refuse it, in which case nothing is written; or the output is closed.
    pub fn write(self, input: &Input, stdout: &mut dyn Write) -> Result<(), AnswerError> {
        let credential = ExecCredential { spec: Spec::default(), status: Some(self.status) };
        let text = credential.answer(input.version);
        response::read(text.expose().as_bytes(), input.version)?;
        stdout.write_all(text.expose().as_bytes())?;
        Ok(stdout.flush()?)
    }
}

/// Says that there is no credential and why: a `Status` object for clients that show it (C327), a sentence for people.
/// Returns the code to exit with.
///
/// # Errors
/// One of the two streams is closed.
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
