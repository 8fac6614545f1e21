//! The kinds of problems, with their class, stage and fix.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use navicert_types::diagnostic::Diagnostic;
use navicert_types::redact;
use thiserror::Error as ThisError;

use super::error::{ConfigErrorClass as Class, ConfigErrorStage as Stage};
#[cfg(feature = "exec")]
use crate::credential::CredentialError;
use crate::credential::{IdentityError, TokenFileError};
use crate::kubeconfig::ValidationError;
use crate::transport::ProxyError;

/// Any problem.
#[derive(Debug)]
pub(crate) enum Problem {
    /// A file cannot be read.
    Unreadable { path: PathBuf, source: io::Error },
    /// A file cannot be decoded: one error of it.
    Malformed { path: PathBuf, diagnostic: Diagnostic },
    /// kubectl's validation rejects the selected context.
    Validation(ValidationError),
    /// No client can be built from the selected context.
    Client(ClientProblem),
    /// The policy denies the plugin or the signer.
    #[cfg(feature = "exec")]
    Denied(CredentialError),
}

/// Why no client can be built from a context that passes kubectl's validation.
#[derive(Debug, ThisError)]
pub(crate) enum ClientProblem {
    #[error("invalid server {server:?}: {reason}")]
    Server { server: String, reason: String, stage: Stage },
    #[error("invalid tls-server-name {0:?}: neither a DNS name nor an IP address")]
    ServerName(String),
    #[error("invalid 'proxy-url' {url:?} for cluster {cluster:?}")]
    Proxy { url: String, cluster: String, source: ProxyError },
    #[error("invalid proxy in {variable}")]
    ProxyEnvironment { variable: &'static str, source: ProxyError },
    #[error("specifying a root certificates file with the insecure flag is not allowed")]
    AuthorityAndInsecure,
    #[error("missing PEM certificate in certificate-authority")]
    NoAuthority { encoded_twice: bool },
    #[error("unable to load root certificates: invalid certificate in certificate-authority")]
    InvalidAuthority,
    #[error("unable to read certificate-authority {0:?}: it is a directory")]
    AuthorityIsDirectory(String),
    // C152
    #[error("context {context:?} names user {user:?}, which does not exist")]
    UserNotFound { context: String, user: String },
    #[error("invalid impersonation value in `{0}`: not allowed in a header")]
    Impersonation(&'static str),
    #[error("invalid client certificate")]
    Identity(#[from] IdentityError),
    #[error("username/password or bearer token may be set, but not both")]
    BasicAndBearer,
    #[error("invalid token: it contains control characters or is surrounded by white space")]
    Token,
    #[error("invalid username or password: not allowed in a header")]
    Basic,
    #[error(transparent)]
    TokenFile(#[from] TokenFileError),
    #[cfg(feature = "exec")]
    #[error("exec plugin: invalid apiVersion {0:?}")]
    ExecVersion(String),
    #[cfg(feature = "exec")]
    #[error("exec plugin: {0}")]
    Exec(String),
    #[error("auth-provider {name:?} has been removed from Kubernetes; use the exec plugin `{instead}`")]
    RemovedProvider { name: String, instead: &'static str },
    #[error("no Auth Provider found for name {0:?}")]
    UnknownProvider(String),
    #[cfg(feature = "oidc")]
    #[error("missing {0:?} in the config of auth-provider \"oidc\"")]
    OidcSetting(&'static str),
    #[cfg(feature = "oidc")]
    #[error("failed to load the certificate authority of the identity provider")]
    OidcAuthority(#[source] Option<io::Error>),
    #[cfg(feature = "signer")]
    #[error("auth-provider `externalSigner`: Must provide pathExec")]
    NoSigner,
    #[cfg(feature = "signer")]
    #[error("auth-provider `externalSigner` cannot be combined with {0}: the hardware key would not be used")]
    SignerAndCredential(&'static str),
    #[cfg(feature = "signer")]
    #[error("auth-provider `externalSigner`: a `pin` in the kubeconfig is not allowed")]
    SignerPin,
    #[cfg(feature = "signer")]
    #[error("auth-provider `externalSigner`: invalid value of `{0}`")]
    SignerSetting(&'static str),
    /// The credential is of a kind that this build cannot use.
    #[cfg_attr(
        all(feature = "exec", feature = "oidc", feature = "signer"),
        expect(dead_code, reason = "this build can use every kind")
    )]
    #[error("{what} is not supported: navicert-client was built without its feature `{feature}`")]
    MissingFeature { what: String, feature: &'static str },
}

impl From<ValidationError> for Problem {
    fn from(error: ValidationError) -> Self {
        Problem::Validation(error)
    }
}

impl From<ClientProblem> for Problem {
    fn from(problem: ClientProblem) -> Self {
        Problem::Client(problem)
    }
}

impl Problem {
    pub(super) fn class(&self) -> Class {
        match self {
            Problem::Unreadable { .. } => Class::Unreadable,
            Problem::Malformed { .. } => Class::Malformed,
            Problem::Validation(error) => validation_class(error),
            Problem::Client(problem) => client_class(problem),
            #[cfg(feature = "exec")]
            Problem::Denied(_) => Class::PolicyDenied,
        }
    }

    pub(super) fn stage(&self) -> Stage {
        match self {
            Problem::Unreadable { .. } | Problem::Malformed { .. } => Stage::Load,
            Problem::Validation(_) => Stage::Validate,
            Problem::Client(problem) => client_stage(problem),
            #[cfg(feature = "exec")]
            Problem::Denied(_) => Stage::Policy,
        }
    }

    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Problem::Unreadable { path, .. } | Problem::Malformed { path, .. } => Some(path),
            _ => None,
        }
    }

    pub(super) fn is_secret(&self) -> bool {
        matches!(self, Problem::Malformed { diagnostic, .. } if diagnostic.is_secret)
    }

    pub(super) fn help(&self) -> Option<String> {
        match self {
            Problem::Unreadable { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => None,
            Problem::Unreadable { .. } => Some("use a readable file".to_owned()),
            Problem::Malformed { diagnostic, .. } => diagnostic.hint.clone(),
            Problem::Validation(error) => validation_help(error),
            Problem::Client(ClientProblem::UserNotFound { user, .. }) => {
                let user = redact::terminal(user);
                Some(format!("add an entry named `{user}` to `users`, or name another in the context"))
            }
            Problem::Client(problem) => client_help(problem).map(ToOwned::to_owned),
            #[cfg(feature = "exec")]
            Problem::Denied(_) => None,
        }
    }

    pub(super) fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Problem::Unreadable { source, .. } => Some(source),
            Problem::Malformed { .. } => None,
            Problem::Validation(error) => error.source(),
            Problem::Client(problem) => problem.source(),
            #[cfg(feature = "exec")]
            Problem::Denied(error) => error.source(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Unreadable { path, .. } => write!(f, "failed to read kubeconfig `{}`", path.display()),
            Problem::Malformed { diagnostic, .. } if diagnostic.path.is_root() => {
                f.write_str(&diagnostic.message)
            }
            Problem::Malformed { diagnostic, .. } => write!(f, "{}: {}", diagnostic.path, diagnostic.message),
            Problem::Validation(error) => error.fmt(f),
            Problem::Client(problem) => problem.fmt(f),
            #[cfg(feature = "exec")]
            Problem::Denied(error) => error.fmt(f),
        }
    }
}

fn validation_class(error: &ValidationError) -> Class {
    match error {
        ValidationError::NoSuchContext(_) | ValidationError::ContextNotFound(_) => Class::ContextNotFound,
        ValidationError::NoSuchUser(_) => Class::UserNotFound,
        ValidationError::NoSuchCluster(_)
        | ValidationError::ClusterNotFound { .. }
        | ValidationError::NoClusterSelected => Class::ClusterNotFound,
        ValidationError::NoConfiguration => Class::NoConfiguration,
        ValidationError::NoServer(_) => Class::Server,
        ValidationError::Proxy { .. } => Class::Proxy,
        ValidationError::TwoAuthorities(_)
        | ValidationError::Unreadable { field: "certificate-authority", .. } => Class::Authority,
        ValidationError::Unreadable { .. }
        | ValidationError::TwoCertificates(_)
        | ValidationError::TwoKeys(_)
        | ValidationError::NoKey(_) => Class::ClientCertificate,
        ValidationError::ExecAndProvider(_)
        | ValidationError::ExecLacks { .. }
        | ValidationError::InteractiveMode { .. } => Class::Exec,
        ValidationError::TwoMethods(_) | ValidationError::TokenFile { .. } => Class::Token,
        ValidationError::ImpersonationWithoutUser(_) => Class::Impersonation,
    }
}

fn client_class(problem: &ClientProblem) -> Class {
    match problem {
        ClientProblem::Server { .. } | ClientProblem::ServerName(_) => Class::Server,
        ClientProblem::Proxy { .. } | ClientProblem::ProxyEnvironment { .. } => Class::Proxy,
        ClientProblem::AuthorityAndInsecure
        | ClientProblem::NoAuthority { .. }
        | ClientProblem::InvalidAuthority
        | ClientProblem::AuthorityIsDirectory(_) => Class::Authority,
        ClientProblem::UserNotFound { .. } => Class::UserNotFound,
        ClientProblem::Impersonation(_) => Class::Impersonation,
        ClientProblem::Identity(_) => Class::ClientCertificate,
        ClientProblem::BasicAndBearer
        | ClientProblem::Token
        | ClientProblem::Basic
        | ClientProblem::TokenFile(_) => Class::Token,
        #[cfg(feature = "exec")]
        ClientProblem::ExecVersion(_) | ClientProblem::Exec(_) => Class::Exec,
        ClientProblem::RemovedProvider { .. } | ClientProblem::UnknownProvider(_) => Class::AuthProvider,
        #[cfg(feature = "oidc")]
        ClientProblem::OidcSetting(_) | ClientProblem::OidcAuthority(_) => Class::AuthProvider,
        ClientProblem::MissingFeature { .. } => Class::MissingFeature,
        #[cfg(feature = "signer")]
        ClientProblem::NoSigner
        | ClientProblem::SignerAndCredential(_)
        | ClientProblem::SignerPin
        | ClientProblem::SignerSetting(_) => Class::ExternalSigner,
    }
}

fn client_stage(problem: &ClientProblem) -> Stage {
    match problem {
        ClientProblem::Server { stage, .. } => *stage,
        ClientProblem::ServerName(_)
        | ClientProblem::Proxy { .. }
        | ClientProblem::ProxyEnvironment { .. }
        | ClientProblem::UserNotFound { .. }
        | ClientProblem::Impersonation(_)
        | ClientProblem::Token
        | ClientProblem::Basic
        | ClientProblem::TokenFile(TokenFileError::NotAToken { .. }) => Stage::Request,
        _ => Stage::Build,
    }
}

fn validation_help(error: &ValidationError) -> Option<String> {
    let text = match error {
        ValidationError::ClusterNotFound { cluster, .. } => {
            format!("add an entry named `{cluster}` to `clusters`")
        }
        ValidationError::NoConfiguration => {
            "set `KUBECONFIG` or write ~/.kube/config, then select a context".to_owned()
        }
        ValidationError::NoServer(_) => "add `server: https://…` to the cluster".to_owned(),
        ValidationError::Proxy { .. } => {
            "write the proxy as http://host:port, https://… or socks5://…".to_owned()
        }
        ValidationError::TwoAuthorities(_)
        | ValidationError::TwoCertificates(_)
        | ValidationError::TwoKeys(_) => "keep one of the two".to_owned(),
        ValidationError::Unreadable { .. } | ValidationError::TokenFile { .. } => {
            "relative paths are resolved against the directory of the kubeconfig file".to_owned()
        }
        ValidationError::NoKey(_) => "add `client-key` or `client-key-data`".to_owned(),
        ValidationError::ExecAndProvider(_) => "keep `exec` and remove `auth-provider`".to_owned(),
        ValidationError::ExecLacks { what: "interactiveMode", .. } => {
            "add `interactiveMode: IfAvailable` (or `Never`, `Always`)".to_owned()
        }
        ValidationError::ExecLacks { what: "apiVersion", .. } => {
            "add `apiVersion: client.authentication.k8s.io/v1`".to_owned()
        }
        ValidationError::InteractiveMode { .. } => "use `Never`, `IfAvailable` or `Always`".to_owned(),
        ValidationError::TwoMethods(_) => "keep either `token` or `username` and `password`".to_owned(),
        ValidationError::ImpersonationWithoutUser(_) => {
            "add `as: USER`, or remove the other `as-…` fields".to_owned()
        }
        _ => return None,
    };
    Some(text)
}

fn client_help(problem: &ClientProblem) -> Option<&'static str> {
    Some(match problem {
        ClientProblem::Server { .. } => "write the server as https://host:port",
        ClientProblem::Proxy { .. } => "write the proxy as http://host:port, https://… or socks5://…",
        ClientProblem::ProxyEnvironment { .. } => {
            "write the proxy as http://host:port, https://… or socks5://…, or unset the variable"
        }
        ClientProblem::ServerName(_) => "write the name that the server's certificate is valid for",
        ClientProblem::AuthorityAndInsecure => "remove `insecure-skip-tls-verify`",
        ClientProblem::NoAuthority { encoded_twice: true } => {
            "the certificate is encoded in base64 twice; decode it once"
        }
        ClientProblem::NoAuthority { .. }
        | ClientProblem::InvalidAuthority
        | ClientProblem::AuthorityIsDirectory(_) => {
            "put the PEM certificate of the cluster's certificate authority into it"
        }
        ClientProblem::Identity(IdentityError::Mismatch | IdentityError::KeyType) => {
            "use the key that the certificate was issued for"
        }
        ClientProblem::BasicAndBearer => "keep either the token or the password",
        #[cfg(feature = "exec")]
        ClientProblem::ExecVersion(_) => {
            "use client.authentication.k8s.io/v1 if the plugin supports it, otherwise …/v1beta1"
        }
        ClientProblem::MissingFeature { .. } => {
            "enable the feature in Cargo.toml, or use another kind of credential"
        }
        #[cfg(feature = "signer")]
        ClientProblem::SignerPin => {
            "remove it so that the signer prompts for it, or use `pin-source=file:…` in `uri`"
        }
        _ => return None,
    })
}
