//! Step five: validates the selected context. Reports every problem with kubectl's messages, so that users can search for
//! them.
// C150–C155

use std::io;
use std::path::Path;

use navicert_go::url::Url;
use navicert_types::kubeconfig::{AuthInfo, Cluster, ExecConfig, InteractiveMode};

use super::file_system::FileSystem;
use super::resolve::Effective;

/// Why the selected context is not usable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ValidationError {
    /// The requested context does not exist.
    #[error("context {0:?} does not exist")]
    NoSuchContext(String),
    /// The requested user does not exist.
    #[error("auth info {0:?} does not exist")]
    NoSuchUser(String),
    /// The requested cluster does not exist.
    #[error("cluster {0:?} does not exist")]
    NoSuchCluster(String),
    /// `current-context` names a context that does not exist.
    #[error("context was not found for specified context: {0}")]
    ContextNotFound(String),
    /// The context names a cluster that does not exist. Upstream silently connects to localhost or blames the environment.
    // C152
    #[error("context {context:?} names cluster {cluster:?}, which does not exist")]
    ClusterNotFound {
        /// The selected context.
        context: String,
        /// The named cluster.
        cluster: String,
    },
    /// Nothing is configured.
    #[error("no configuration has been provided")]
    NoConfiguration,
    /// No cluster is selected, in addition to other problems.
    #[error("cluster has no server defined")]
    NoClusterSelected,
    /// A cluster entry without a server.
    #[error("{}", no_server(.0))]
    NoServer(String),
    /// An invalid proxy URL.
    #[error("invalid 'proxy-url' {url:?} for cluster {cluster:?}: {reason}")]
    Proxy {
        /// The redacted URL.
        url: String,
        /// The cluster.
        cluster: String,
        /// The cause.
        reason: String,
    },
    /// Certificate authority file and data are both set.
    #[error(
        "certificate-authority-data and certificate-authority are both specified for {0}. certificate-authority-data will override."
    )]
    TwoAuthorities(String),
    /// A file that cannot be read.
    #[error("unable to read {field} {file} for {entry} due to {reason}")]
    Unreadable {
        /// `certificate-authority`, `client-cert` or `client-key`.
        field: &'static str,
        /// The file.
        file: String,
        /// The entry's name.
        entry: String,
        /// The cause.
        reason: io::Error,
    },
    /// Client certificate file and data are both set.
    #[error("client-cert-data and client-cert are both specified for {0}. client-cert-data will override.")]
    TwoCertificates(String),
    /// Client key file and data are both set.
    #[error("client-key-data and client-key are both specified for {0}; client-key-data will override")]
    TwoKeys(String),
    /// A client certificate without its key.
    #[error(
        "client-key-data or client-key must be specified for {0} to use the clientCert authentication method."
    )]
    NoKey(String),
    /// Exec plugin and auth provider are both set.
    #[error("authProvider cannot be provided in combination with an exec plugin for {0}")]
    ExecAndProvider(String),
    /// A required field of the exec section is missing.
    #[error("{what} must be specified for {user} to use exec authentication plugin")]
    ExecLacks {
        /// `command`, `apiVersion`, `env variable name` or `interactiveMode`.
        what: &'static str,
        /// The user.
        user: String,
    },
    /// An unknown interactive mode.
    #[error("invalid interactiveMode for {user}: {mode:?}")]
    InteractiveMode {
        /// The user.
        user: String,
        /// As written.
        mode: String,
    },
    /// Bearer token and password are both set.
    #[error(
        "more than one authentication method found for {0}; found [token basicAuth], only one is allowed"
    )]
    TwoMethods(String),
    /// Impersonated attributes without an impersonated user.
    #[error("requesting uid, groups or user-extra for {0} without impersonating a user")]
    ImpersonationWithoutUser(String),
    /// A token file that cannot be read.
    #[error("unable to read tokenFile {file}: {reason}")]
    TokenFile {
        /// The user.
        user: String,
        /// The file.
        file: String,
        /// The cause.
        reason: io::Error,
    },
}

fn no_server(cluster: &str) -> String {
    if cluster.is_empty() {
        "default cluster has no server defined".to_owned()
    } else {
        format!("no server found for cluster {cluster:?}")
    }
}

/// Every problem of the selected context in kubectl's order.
pub(crate) fn validate(effective: &Effective, files: &dyn FileSystem) -> Vec<ValidationError> {
    let mut problems = Vec::new();
    if let Some(name) = effective.context.as_ref().filter(|_| !effective.context_exists) {
        problems.push(ValidationError::ContextNotFound(name.clone()));
    }
    user_problems(&effective.user_name, &effective.user, files, &mut problems);
    if effective.no_cluster() {
        problems.push(cluster_missing(effective, problems.is_empty()));
    } else {
        cluster_problems(&effective.cluster_name, &effective.cluster, files, &mut problems);
    }
    if problems.is_empty() {
        problems.extend(token_file_problem(effective, files));
    }
    problems
}

fn cluster_missing(effective: &Effective, alone: bool) -> ValidationError {
    match &effective.context {
        Some(context) if !effective.cluster_name.is_empty() => ValidationError::ClusterNotFound {
            context: context.clone(),
            cluster: effective.cluster_name.clone(),
        },
        _ if alone => ValidationError::NoConfiguration,
        _ => ValidationError::NoClusterSelected,
    }
}

fn cluster_problems(
    name: &str,
    cluster: &Cluster,
    files: &dyn FileSystem,
    problems: &mut Vec<ValidationError>,
) {
    if cluster.server.is_empty() {
        problems.push(ValidationError::NoServer(name.to_owned()));
    }
    if let Some(reason) = proxy_fault(&cluster.proxy_url) {
        let url = navicert_types::redact::url(&cluster.proxy_url).into_owned();
        problems.push(ValidationError::Proxy { url, cluster: name.to_owned(), reason });
    }
    let path = &cluster.certificate_authority;
    if path.is_empty() {
        return;
    }
    if !cluster.certificate_authority_data.is_empty() {
        problems.push(ValidationError::TwoAuthorities(name.to_owned()));
    }
    problems.extend(unreadable("certificate-authority", path, name, files));
}

fn proxy_fault(url: &str) -> Option<String> {
    match Url::parse(url) {
        _ if url.is_empty() => None,
        Err(_) => Some(format!("could not parse: {}", navicert_types::redact::url(url))),
        Ok(address) if ["http", "https", "socks5"].contains(&address.scheme.as_str()) => None,
        Ok(address) => {
            Some(format!("unsupported scheme {:?}, must be http, https, or socks5", address.scheme))
        }
    }
}

fn user_problems(name: &str, user: &AuthInfo, files: &dyn FileSystem, problems: &mut Vec<ValidationError>) {
    certificate_problems(name, user, files, problems);
    if let Some(exec) = &user.exec {
        if user.auth_provider.is_some() {
            problems.push(ValidationError::ExecAndProvider(name.to_owned()));
        }
        exec_problems(name, exec, problems);
    }
    let basic = !user.username.is_empty() || !user.password.is_empty();
    if !user.token.is_empty() && basic {
        problems.push(ValidationError::TwoMethods(name.to_owned()));
    }
    let attributes = !user.impersonate_uid.is_empty()
        || !user.impersonate_groups.is_empty()
        || !user.impersonate_user_extra.is_empty();
    if attributes && user.impersonate.is_empty() {
        problems.push(ValidationError::ImpersonationWithoutUser(name.to_owned()));
    }
}

fn certificate_problems(
    name: &str,
    user: &AuthInfo,
    files: &dyn FileSystem,
    problems: &mut Vec<ValidationError>,
) {
    let (certificate, key) = (&user.client_certificate, &user.client_key);
    if certificate.is_empty() && user.client_certificate_data.is_empty() {
        return; // A key alone is ignored (C163).
    }
    if !certificate.is_empty() && !user.client_certificate_data.is_empty() {
        problems.push(ValidationError::TwoCertificates(name.to_owned()));
    }
    if !key.is_empty() && !user.client_key_data.is_empty() {
        problems.push(ValidationError::TwoKeys(name.to_owned()));
    }
    if key.is_empty() && user.client_key_data.is_empty() {
        problems.push(ValidationError::NoKey(name.to_owned()));
    }
    problems.extend(unreadable("client-cert", certificate, name, files));
    problems.extend(unreadable("client-key", key, name, files));
}

fn exec_problems(user: &str, exec: &ExecConfig, problems: &mut Vec<ValidationError>) {
    let mut lacks = |what| problems.push(ValidationError::ExecLacks { what, user: user.to_owned() });
    if exec.command.is_empty() {
        lacks("command");
    }
    if exec.api_version.is_empty() {
        lacks("apiVersion");
    }
    for _ in exec.env.iter().filter(|variable| variable.name.is_empty()) {
        lacks("env variable name");
    }
    match &exec.interactive_mode {
        InteractiveMode::Never | InteractiveMode::IfAvailable | InteractiveMode::Always => {}
        InteractiveMode::Unset => lacks("interactiveMode"),
        mode => problems
            .push(ValidationError::InteractiveMode { user: user.to_owned(), mode: mode.as_str().to_owned() }),
    }
}

/// A token file without a token must be readable when the client is created; over plain http it is not used.
// C162, C160
fn token_file_problem(effective: &Effective, files: &dyn FileSystem) -> Option<ValidationError> {
    let user = &effective.user;
    if !effective.is_https() || user.token_file.is_empty() || !user.token.is_empty() {
        return None;
    }
    let reason = files.read(Path::new(&user.token_file)).err()?;
    Some(ValidationError::TokenFile {
        user: effective.user_name.clone(),
        file: user.token_file.clone(),
        reason,
    })
}

fn unreadable(
    field: &'static str,
    path: &str,
    entry: &str,
    files: &dyn FileSystem,
) -> Option<ValidationError> {
    if path.is_empty() {
        return None;
    }
    // A directory can be opened, which is all that kubectl tries at this point: the client cannot be built.
    let reason =
        files.read(Path::new(path)).err().filter(|error| error.kind() != io::ErrorKind::IsADirectory)?;
    Some(ValidationError::Unreadable { field, file: path.to_owned(), entry: entry.to_owned(), reason })
}
