//! In-cluster configuration: the pod's service account and the API server's address from the environment.
// C190–C192

use std::path::Path;

use navicert_types::kubeconfig::{AuthInfo, Cluster};

use crate::kubeconfig::{Effective, FileSystem, Overrides};

const SERVICE_ACCOUNT_DIR: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The environment variables of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodEnvironment {
    /// `KUBERNETES_SERVICE_HOST`.
    pub host: String,
    /// `KUBERNETES_SERVICE_PORT`.
    pub port: String,
    /// `POD_NAMESPACE`.
    pub namespace: String,
}

/// The configuration of this pod; `None` outside a pod. Use it only if there is no kubeconfig: a kubeconfig that cannot
/// be loaded is an error.
///
/// Of the overrides, server, token and certificate authority apply.
// C190, C191
pub(crate) fn configuration(
    pod: &PodEnvironment,
    overrides: &Overrides,
    files: &dyn FileSystem,
) -> Option<Effective> {
    let token_file = format!("{SERVICE_ACCOUNT_DIR}/token");
    let is_pod = !pod.host.is_empty() && !pod.port.is_empty() && files.read(Path::new(&token_file)).is_ok();
    if !is_pod {
        return None;
    }
    let mut user = AuthInfo { token_file, ..AuthInfo::default() };
    if !overrides.token.is_empty() {
        user.token = overrides.token.clone();
        user.token_file = String::new();
    }
    let server = if overrides.server.is_empty() { address(pod) } else { overrides.server.clone() };
    let certificate_authority = if overrides.certificate_authority.is_empty() {
        authority(files)
    } else {
        overrides.certificate_authority.clone()
    };
    Some(Effective {
        context: None,
        context_exists: false,
        namespace: namespace(pod, overrides, files),
        cluster_name: String::new(),
        cluster_exists: true,
        cluster: Cluster { server, certificate_authority, ..Cluster::default() },
        user_name: String::new(),
        user_exists: true,
        user,
    })
}

fn address(pod: &PodEnvironment) -> String {
    let (host, port) = (&pod.host, &pod.port);
    if host.contains(':') { format!("https://[{host}]:{port}") } else { format!("https://{host}:{port}") }
}

/// The service account's certificate authority; if it is missing, the system root certificates are used.
// C191
fn authority(files: &dyn FileSystem) -> String {
    let path = format!("{SERVICE_ACCOUNT_DIR}/ca.crt");
    match files.read(Path::new(&path)) {
        Ok(_) => path,
        Err(error) => {
            tracing::warn!(
                event = "service_account_ca_missing",
                path,
                %error,
                "failed to read the service account's certificate authority, using system root certificates"
            );
            String::new()
        }
    }
}

fn namespace(pod: &PodEnvironment, overrides: &Overrides, files: &dyn FileSystem) -> String {
    let asked = [&overrides.namespace, &pod.namespace].into_iter().find(|name| !name.is_empty());
    asked.cloned().unwrap_or_else(|| {
        let read = files.read(Path::new(&format!("{SERVICE_ACCOUNT_DIR}/namespace"))).unwrap_or_default();
        let name = String::from_utf8_lossy(&read).trim().to_owned();
        if name.is_empty() { "default".to_owned() } else { name }
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::kubeconfig::MemoryFileSystem;

    fn account(names: &[(&str, &str)]) -> MemoryFileSystem {
        let files = names.iter().map(|(name, text)| (PathBuf::from(name), text.as_bytes().to_vec()));
        MemoryFileSystem::new(SERVICE_ACCOUNT_DIR, files.collect::<Vec<_>>())
    }

    fn pod(host: &str, port: &str) -> PodEnvironment {
        PodEnvironment { host: host.into(), port: port.into(), namespace: String::new() }
    }

    // C190
    #[test]
    fn requires_both_variables_and_a_token() {
        let full = account(&[("token", "t"), ("ca.crt", "c"), ("namespace", "ns\n")]);
        let configuration =
            |pod: &PodEnvironment, files: &MemoryFileSystem| configuration(pod, &Overrides::default(), files);
        assert!(configuration(&pod("10.0.0.1", ""), &full).is_none());
        assert!(configuration(&pod("", "443"), &full).is_none());
        assert!(configuration(&pod("10.0.0.1", "443"), &account(&[])).is_none());
        assert!(
            configuration(&pod("10.0.0.1", "443"), &account(&[("token/x", "")])).is_none(),
            "the token is a directory"
        );
        let found = configuration(&pod("10.0.0.1", "443"), &full).unwrap();
        assert_eq!(found.server(), "https://10.0.0.1:443");
        assert_eq!(found.credential_kinds(), ["tokenFile"]);
        assert!(found.cluster.certificate_authority.ends_with("/ca.crt"));
        assert_eq!(found.namespace, "ns");
    }

    // C191
    #[test]
    fn ipv6_is_bracketed_and_three_overrides_apply() {
        let bare = account(&[("token", "t")]);
        let found = configuration(&pod("fd00::1", "6443"), &Overrides::default(), &bare).unwrap();
        assert_eq!(found.server(), "https://[fd00::1]:6443");
        assert_eq!(found.cluster.certificate_authority, "", "system root certificates are used");
        let overrides = Overrides {
            server: "https://other".into(),
            token: "mine".to_owned().into(),
            certificate_authority: "/my/ca".into(),
            tls_server_name: "ignored".into(),
            ..Overrides::default()
        };
        let found = configuration(&pod("10.0.0.1", "443"), &overrides, &bare).unwrap();
        assert_eq!(
            (found.server().as_str(), found.cluster.certificate_authority.as_str()),
            ("https://other", "/my/ca")
        );
        assert_eq!(found.credential_kinds(), ["token"]);
        assert_eq!(found.cluster.tls_server_name, "");
    }

    // C192
    #[test]
    fn namespace_comes_from_the_environment_then_the_file_then_the_default() {
        let (named, bare) = (account(&[("token", "t"), ("namespace", "file")]), account(&[("token", "t")]));
        let namespace = |variable: &str, files: &MemoryFileSystem| {
            let pod = PodEnvironment { namespace: variable.into(), ..pod("h", "1") };
            configuration(&pod, &Overrides::default(), files).unwrap().namespace
        };
        assert_eq!(namespace("variable", &named), "variable");
        assert_eq!(namespace("", &named), "file");
        assert_eq!(namespace("", &bare), "default");
    }
}
