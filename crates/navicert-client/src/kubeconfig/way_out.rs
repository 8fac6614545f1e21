//! How to fix kubeconfig problems whose messages do not already say so.

use super::advice::Advice;
use super::obstacle::Obstacle;
use super::validate::ValidationError as Problem;

impl Problem {
    /// How to fix it.
    pub fn way_out(&self) -> Option<String> {
        let text = match self {
            Problem::NoSuchContext(_) | Problem::ContextNotFound(_) => {
                "`navicert kubeconfig view` lists the existing contexts".to_owned()
            }
            Problem::NoSuchUser(_) | Problem::NoSuchCluster(_) => {
                "`navicert kubeconfig view` lists the existing entries".to_owned()
            }
            Problem::ClusterNotFound { cluster, .. } => format!("add an entry named `{cluster}` to `clusters`"),
            Problem::NoConfiguration => {
                "set `KUBECONFIG`, write ~/.kube/config, or name a file with --kubeconfig; then select a context"
                    .to_owned()
            }
            Problem::NoServer(_) => "add `server: https://…` to the cluster".to_owned(),
            Problem::Proxy { .. } => "write the proxy as http://host:port, https://… or socks5://…".to_owned(),
            Problem::TwoAuthorities(_) => "keep one of the two".to_owned(),
            Problem::TwoCertificates(_) | Problem::TwoKeys(_) => "keep one of the two".to_owned(),
            Problem::Unreadable { .. } | Problem::TokenFile { .. } => {
                "relative paths are resolved against the directory of the kubeconfig file".to_owned()
            }
            Problem::NoKey(_) => "add `client-key` or `client-key-data`".to_owned(),
            Problem::ExecAndProvider(_) => "keep `exec` and remove `auth-provider`".to_owned(),
            Problem::ExecLacks { what: "interactiveMode", .. } => {
                "add `interactiveMode: IfAvailable` (or `Never`, `Always`)".to_owned()
            }
            Problem::ExecLacks { what: "apiVersion", .. } => {
                "add `apiVersion: client.authentication.k8s.io/v1`".to_owned()
            }
            Problem::InteractiveMode { .. } => "use `Never`, `IfAvailable` or `Always`".to_owned(),
            Problem::TwoMethods(_) => "keep either `token` or `username` and `password`".to_owned(),
            Problem::ImpersonationWithoutUser(_) => {
                "add `as: USER`, or remove the other `as-…` fields".to_owned()
            }
            _ => return None,
        };
        Some(text)
    }
}

impl Obstacle {
    /// How to fix it.
    pub fn way_out(&self) -> Option<&'static str> {
        match self {
            Obstacle::AuthorityAndInsecure => Some("remove `insecure-skip-tls-verify`"),
            Obstacle::ExecVersion(_) => {
                Some("use client.authentication.k8s.io/v1 if the plugin supports it, otherwise …/v1beta1")
            }
            Obstacle::BasicAndBearer => Some("keep either the token or the password"),
            _ => None,
        }
    }
}

impl Advice {
    /// How to fix it.
    pub fn way_out(&self) -> Option<&'static str> {
        matches!(self, Advice::ExecUnused(_)).then_some("remove the static credential to use the plugin")
    }
}
