//! Step four: from all entries to the one cluster and user that count: context, overrides, absolute paths (C130–C145, C160).

use std::collections::BTreeMap;

use navicert_types::Secret;
use navicert_types::kubeconfig::{AuthInfo, Cluster};

use super::address::Address;
use super::merge::Merged;
use super::validate::Problem;

/// What a command line may say instead of the files. A field applies if it is not empty (C140).
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Context instead of `current-context`; has to exist.
    pub context: String,
    /// Cluster entry instead of the context's; has to exist.
    pub cluster: String,
    /// User entry instead of the context's; has to exist.
    pub user: String,
    /// Namespace instead of the context's.
    pub namespace: String,
    /// Server address.
    pub server: String,
    /// Name to check the server's certificate for.
    pub tls_server_name: String,
    /// Do not check the server's certificate.
    pub insecure_skip_tls_verify: bool,
    /// Certificate authority file.
    pub certificate_authority: String,
    /// Proxy address.
    pub proxy_url: String,
    /// Do not ask for compressed answers.
    pub disable_compression: bool,
    /// Client certificate file.
    pub client_certificate: String,
    /// Client key file.
    pub client_key: String,
    /// Bearer token.
    pub token: Secret<String>,
    /// Name for basic authentication.
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

/// The cluster and user that were selected, after overrides, with absolute paths.
#[derive(Clone, Debug)]
pub struct Effective {
    /// The context's name, if one was selected.
    pub context: Option<String>,
    /// Whether it exists.
    pub context_exists: bool,
    /// The namespace, empty if none is set.
    pub namespace: String,
    /// The cluster entry's name.
    pub cluster_name: String,
    /// Whether an entry of that name exists.
    pub cluster_exists: bool,
    /// The cluster.
    pub cluster: Cluster,
    /// The user entry's name.
    pub user_name: String,
    /// Whether an entry of that name exists; if not, the client is anonymous (C152).
    pub user_exists: bool,
    /// The user.
    pub user: AuthInfo,
}

impl Effective {
    /// Selects. Only what was asked for by name has to exist; what files name may be missing and is judged later.
    ///
    /// # Errors
    /// A user, context or cluster asked for by override does not exist (C141).
    pub(super) fn select(merged: &Merged, overrides: &Overrides) -> Result<Self, Problem> {
        let asked = Some(&overrides.context).filter(|name| !name.is_empty());
        let current = Some(&merged.config.current_context).filter(|name| !name.is_empty());
        let context_name = asked.or(current);
        // An entry may have the empty name; it is selected when no name is.
        let entry = merged.context(context_name.map_or("", String::as_str));
        let context = entry.cloned().unwrap_or_default();

        let user_name = chosen(&overrides.user, &context.user);
        let user = merged.user(user_name);
        if user.is_none() && !overrides.user.is_empty() {
            return Err(Problem::NoSuchUser(user_name.to_owned()));
        }
        if let Some(name) = asked.filter(|_| entry.is_none()) {
            return Err(Problem::NoSuchContext(name.clone()));
        }
        let cluster_name = chosen(&overrides.cluster, &context.cluster);
        let cluster = merged.cluster(cluster_name);
        if cluster.is_none() && !overrides.cluster.is_empty() {
            return Err(Problem::NoSuchCluster(cluster_name.to_owned()));
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

    /// Whether nothing at all says which cluster: no entry, and no override that would stand in for one.
    pub(super) fn no_cluster(&self) -> bool {
        !self.cluster_exists && self.cluster == Cluster::default()
    }

    /// Whether credentials are used at all: only over https (C160), and an address without a scheme is http (C161).
    pub fn is_https(&self) -> bool {
        Address::parse(&self.cluster.server)
            .is_ok_and(|address| address.scheme == "https" && !address.host.is_empty())
    }
}

fn chosen<'a>(asked: &'a str, otherwise: &'a str) -> &'a str {
    if asked.is_empty() { otherwise } else { asked }
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
    // The trust settings go together: asking for one of them means not to trust by the others (C142).
    if overrides.insecure_skip_tls_verify || !overrides.certificate_authority.is_empty() {
        cluster.insecure_skip_tls_verify = overrides.insecure_skip_tls_verify;
        cluster.certificate_authority.clone_from(&overrides.certificate_authority);
        cluster.certificate_authority_data = Vec::new();
    }
    // The old name belongs to the old server (C143).
    if !overrides.server.is_empty() || !overrides.tls_server_name.is_empty() {
        cluster.tls_server_name.clone_from(&overrides.tls_server_name);
    }
    cluster
}

fn with_user_overrides(mut user: AuthInfo, overrides: &Overrides) -> AuthInfo {
    // Either form of certificate and key is replaced by the other (C144).
    if !overrides.client_certificate.is_empty() {
        user.client_certificate.clone_from(&overrides.client_certificate);
        user.client_certificate_data = Vec::new();
    }
    if !overrides.client_key.is_empty() {
        user.client_key.clone_from(&overrides.client_key);
        user.client_key_data = Secret::default();
    }
    // Upstream lets the file win over `--token` without a word (C145).
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

/// The address requests go to, as client-go completes it: without a scheme it is plain http (C161).
pub(super) fn base_address(server: &str) -> Result<String, String> {
    match Address::parse(server) {
        Ok(address) if !address.scheme.is_empty() && !address.host.is_empty() => return Ok(server.to_owned()),
        _ => {}
    }
    let completed = format!("http://{server}");
    match Address::parse(&completed) {
        Ok(address) if matches!(address.path, "" | "/") => Ok(completed),
        Ok(_) => Err("neither a URL nor host:port".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Effective {
    /// The server's address as it is used and told to plugins: where it has a path, its query is dropped and the path
    /// escaped as Go escapes it (C161).
    pub fn server(&self) -> String {
        let server = &self.cluster.server;
        match Address::parse_without_fragment(server) {
            Ok(address) if !address.host.is_empty() && address.path.len() > 1 => {
                let user_info = address.user_info.map(|user| format!("{user}@")).unwrap_or_default();
                let path = super::address::escaped_path(address.path);
                format!("{}://{user_info}{}{path}", address.scheme, address.host)
            }
            _ => server.clone(),
        }
    }

    /// The kinds of credential a client would install, sorted; over plain http only impersonation is left.
    pub fn credential_kinds(&self) -> Vec<&'static str> {
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
}
