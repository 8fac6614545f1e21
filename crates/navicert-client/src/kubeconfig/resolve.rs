//! Step four: selects the cluster and user by context, applies overrides and makes paths absolute.
// C130–C145, C160

use std::collections::BTreeMap;

use navicert_go::url::{Url, escaped_path};
use navicert_types::Secret;
use navicert_types::kubeconfig::{AuthInfo, Cluster};

use super::merge::MergedKubeconfig;
use super::validate::ValidationError;

/// Command-line overrides of the files. A field applies if it is not empty.
// C140
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Replaces `current-context`; must exist.
    pub context: String,
    /// Replaces the context's cluster entry; must exist.
    pub cluster: String,
    /// Replaces the context's user entry; must exist.
    pub user: String,
    /// Replaces the context's namespace.
    pub namespace: String,
    /// Server address.
    pub server: String,
    /// Server name for certificate verification.
    pub tls_server_name: String,
    /// Disables verification of the server's certificate.
    pub insecure_skip_tls_verify: bool,
    /// Certificate authority file.
    pub certificate_authority: String,
    /// Proxy address.
    pub proxy_url: String,
    /// Disables response compression.
    pub disable_compression: bool,
    /// Client certificate file.
    pub client_certificate: String,
    /// Client key file.
    pub client_key: String,
    /// Bearer token.
    pub token: Secret<String>,
    /// User name for basic authentication.
    pub username: String,
    /// Password for basic authentication.
    pub password: Secret<String>,
    /// User to impersonate.
    pub impersonate: String,
    /// UID to impersonate.
    pub impersonate_uid: String,
    /// Groups to impersonate.
    pub impersonate_groups: Vec<String>,
    /// Extra attributes to impersonate.
    pub impersonate_user_extra: BTreeMap<String, Vec<String>>,
}

/// The selected cluster and user after overrides, with absolute paths.
#[derive(Clone, Debug)]
pub(crate) struct Effective {
    /// The context's name, if one was selected.
    pub(crate) context: Option<String>,
    /// Whether it exists.
    pub(crate) context_exists: bool,
    /// The namespace; empty if unset.
    pub(crate) namespace: String,
    /// The cluster entry's name.
    pub(crate) cluster_name: String,
    /// Whether an entry of that name exists.
    pub(crate) cluster_exists: bool,
    /// The cluster.
    pub(crate) cluster: Cluster,
    /// The user entry's name.
    pub(crate) user_name: String,
    /// Whether an entry of that name exists.
    pub(crate) user_exists: bool,
    /// The user.
    pub(crate) user: AuthInfo,
}

impl Effective {
    /// Selects the entries. Those requested by override must exist; those named in files are validated later.
    ///
    /// # Errors
    /// A user, context or cluster requested by override does not exist.
    // C141
    pub(super) fn select(merged: &MergedKubeconfig, overrides: &Overrides) -> Result<Self, ValidationError> {
        let requested = Some(&overrides.context).filter(|name| !name.is_empty());
        let current = Some(&merged.config.current_context).filter(|name| !name.is_empty());
        let context_name = requested.or(current);
        // An entry may have an empty name; it is selected if no name is given.
        let entry = merged.context(context_name.map_or("", String::as_str));
        let context = entry.cloned().unwrap_or_default();

        let user_name = chosen(&overrides.user, &context.user);
        let user = merged.user(user_name);
        if user.is_none() && !overrides.user.is_empty() {
            return Err(ValidationError::NoSuchUser(user_name.to_owned()));
        }
        if let Some(name) = requested.filter(|_| entry.is_none()) {
            return Err(ValidationError::NoSuchContext(name.clone()));
        }
        let cluster_name = chosen(&overrides.cluster, &context.cluster);
        let cluster = merged.cluster(cluster_name);
        if cluster.is_none() && !overrides.cluster.is_empty() {
            return Err(ValidationError::NoSuchCluster(cluster_name.to_owned()));
        }

        Ok(Effective {
            context: context_name.cloned(),
            context_exists: entry.is_some(),
            namespace: chosen(&overrides.namespace, &context.namespace).to_owned(),
            cluster_name: cluster_name.to_owned(),
            cluster_exists: cluster.is_some(),
            cluster: with_cluster_overrides(cluster.unwrap_or_default(), overrides),
            user_name: user_name.to_owned(),
            user_exists: user.is_some(),
            user: with_user_overrides(user.unwrap_or_default(), overrides),
        })
    }

    /// Whether no cluster is configured: no entry, and no override.
    pub(super) fn no_cluster(&self) -> bool {
        !self.cluster_exists && self.cluster == Cluster::default()
    }

    /// Whether credentials are sent: only over https. An address without a scheme is http.
    // C160, C161
    pub(crate) fn is_https(&self) -> bool {
        Url::parse(&self.cluster.server)
            .is_ok_and(|address| address.scheme == "https" && !address.host.is_empty())
    }
}

fn chosen<'a>(requested: &'a str, otherwise: &'a str) -> &'a str {
    if requested.is_empty() { otherwise } else { requested }
}

fn replace(field: &mut String, by: &str) {
    if !by.is_empty() {
        by.clone_into(field);
    }
}

fn with_cluster_overrides(mut cluster: Cluster, overrides: &Overrides) -> Cluster {
    replace(&mut cluster.server, &overrides.server);
    replace(&mut cluster.proxy_url, &overrides.proxy_url);
    cluster.disable_compression |= overrides.disable_compression;
    // The trust settings are overridden together (C142).
    if overrides.insecure_skip_tls_verify || !overrides.certificate_authority.is_empty() {
        cluster.insecure_skip_tls_verify = overrides.insecure_skip_tls_verify;
        cluster.certificate_authority.clone_from(&overrides.certificate_authority);
        cluster.certificate_authority_data = Vec::new();
    }
    // The configured name belongs to the configured server (C143).
    if !overrides.server.is_empty() || !overrides.tls_server_name.is_empty() {
        cluster.tls_server_name.clone_from(&overrides.tls_server_name);
    }
    cluster
}

fn with_user_overrides(mut user: AuthInfo, overrides: &Overrides) -> AuthInfo {
    // An override replaces both the file and the data of certificate and key (C144).
    if !overrides.client_certificate.is_empty() {
        user.client_certificate.clone_from(&overrides.client_certificate);
        user.client_certificate_data = Vec::new();
    }
    if !overrides.client_key.is_empty() {
        user.client_key.clone_from(&overrides.client_key);
        user.client_key_data = Secret::default();
    }
    // Upstream silently prefers the file over `--token` (C145).
    if !overrides.token.is_empty() {
        user.token = overrides.token.clone();
        user.token_file = String::new();
    }
    replace(&mut user.username, &overrides.username);
    if !overrides.password.is_empty() {
        user.password = overrides.password.clone();
    }
    replace(&mut user.impersonate, &overrides.impersonate);
    replace(&mut user.impersonate_uid, &overrides.impersonate_uid);
    if !overrides.impersonate_groups.is_empty() {
        user.impersonate_groups.clone_from(&overrides.impersonate_groups);
    }
    if !overrides.impersonate_user_extra.is_empty() {
        user.impersonate_user_extra = overrides.impersonate_user_extra.clone().into_iter().collect();
    }
    user
}

/// The base URL as client-go completes it: without a scheme it is plain http.
// C161
pub(crate) fn base_address(server: &str) -> Result<String, String> {
    match Url::parse(server) {
        Ok(address) if !address.scheme.is_empty() && !address.host.is_empty() => return Ok(server.to_owned()),
        _ => {}
    }
    let completed = format!("http://{server}");
    match Url::parse(&completed) {
        Ok(address) if matches!(address.path, "" | "/") => Ok(completed),
        Ok(_) => Err("neither a URL nor host:port".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Effective {
    /// The server URL used for requests and passed to plugins: if it has a path, its query is dropped and the path is
    /// escaped as in Go.
    // C161
    pub(crate) fn server(&self) -> String {
        let server = &self.cluster.server;
        match Url::parse_without_fragment(server) {
            Ok(address) if !address.host.is_empty() && address.path.len() > 1 => {
                let user_info = address.user_info.map(|user| format!("{user}@")).unwrap_or_default();
                let path = escaped_path(address.path);
                format!("{}://{user_info}{}{path}", address.scheme, address.host)
            }
            _ => server.clone(),
        }
    }

    /// The kinds of credential a client uses, sorted; over plain http only impersonation.
    pub(crate) fn credential_kinds(&self) -> Vec<&'static str> {
        let user = &self.user;
        let https = self.is_https();
        let has_certificate = !user.client_certificate.is_empty() || !user.client_certificate_data.is_empty();
        let kinds = [
            ("auth-provider", https && user.auth_provider.is_some()),
            ("basic", https && !user.username.is_empty()),
            ("cert", https && has_certificate),
            ("exec", https && user.exec.is_some()),
            ("impersonate", !user.impersonate.is_empty()),
            ("token", https && !user.token.is_empty()),
            ("tokenFile", https && !user.token_file.is_empty()),
        ];
        kinds.into_iter().filter(|(_, used)| *used).map(|(kind, _)| kind).collect()
    }

    /// Whether the context names a user that does not exist, so that a request over https would have no credential.
    /// Overrides can provide one.
    // C152
    pub(crate) fn user_is_missing(&self) -> bool {
        let has_name = !self.user_exists && !self.user_name.is_empty();
        has_name && self.is_https() && self.credential_kinds().iter().all(|kind| *kind == "impersonate")
    }

    /// Whether the address has a scheme; without one it is plain http, which is usually unintended.
    // C161
    pub(crate) fn has_scheme(&self) -> bool {
        Url::parse(&self.cluster.server)
            .is_ok_and(|address| !address.scheme.is_empty() && !address.host.is_empty())
    }
}
