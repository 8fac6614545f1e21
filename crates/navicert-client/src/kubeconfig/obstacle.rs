//! Problems that prevent building a client although kubectl considers the configuration valid.
// C155, C165, C167, C180

use std::path::Path;

use navicert_tls::{TrustedRoots, pem};
use navicert_types::external_signer::PROVIDER;

use super::address::Address;
use super::file_system::FileSystem;
use super::resolve::Effective;
use crate::credential::{ClientIdentity, IdentityError};

/// Why no client can be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Obstacle {
    /// The server URL is invalid.
    #[error("invalid server {server:?}: {reason}")]
    Server {
        /// As written.
        server: String,
        /// The cause.
        reason: String,
    },
    /// Certificate authority and `insecure-skip-tls-verify` are both set.
    #[error("specifying a root certificates file with the insecure flag is not allowed")]
    AuthorityAndInsecure,
    /// A field has no PEM certificate.
    #[error("missing PEM certificate in {0}")]
    NoCertificate(&'static str),
    /// A field has no PEM private key.
    #[error("missing PEM private key in {0}")]
    NoKey(&'static str),
    /// Client certificate and key are PEM, but not an identity.
    #[error("invalid client certificate: {0}")]
    Identity(IdentityError),
    /// An unsupported exec protocol version.
    #[error("exec plugin: invalid apiVersion {0:?}")]
    ExecVersion(String),
    /// A provider that was removed from Kubernetes.
    #[error("auth-provider {name:?} has been removed from Kubernetes; use the exec plugin `{instead}`")]
    RemovedProvider {
        /// `gcp` or `azure`.
        name: String,
        /// The exec plugin that took its place.
        instead: &'static str,
    },
    /// An unknown auth provider.
    #[error("no Auth Provider found for name {0:?}")]
    UnknownProvider(String),
    /// A required auth provider setting is missing.
    #[error("missing {0:?} in the config of auth-provider \"oidc\"")]
    ProviderLacks(&'static str),
    /// Password and bearer token are both set.
    #[error("username/password or bearer token may be set, but not both")]
    BasicAndBearer,
    /// An empty token file.
    #[error("read empty token from file {0:?}")]
    EmptyTokenFile(String),
}

impl Effective {
    /// Everything that prevents building a client; empty if nothing does.
    pub fn obstacles(&self, files: &dyn FileSystem) -> Vec<Obstacle> {
        let mut found = Vec::new();
        if let Err(reason) = super::resolve::base_address(&self.cluster.server) {
            found.push(Obstacle::Server { server: self.cluster.server.clone(), reason });
        }
        // Over plain http the rest is not used (C160).
        if self.is_https() {
            self.trust_obstacles(files, &mut found);
            self.certificate_obstacles(files, &mut found);
            self.program_obstacles(&mut found);
            self.token_obstacles(files, &mut found);
        }
        found
    }

    fn trust_obstacles(&self, files: &dyn FileSystem, found: &mut Vec<Obstacle>) {
        let cluster = &self.cluster;
        let has_authority =
            !cluster.certificate_authority.is_empty() || !cluster.certificate_authority_data.is_empty();
        if has_authority && cluster.insecure_skip_tls_verify {
            found.push(Obstacle::AuthorityAndInsecure);
        } else if has_authority {
            let read = if cluster.certificate_authority_data.is_empty() {
                files.read(Path::new(&cluster.certificate_authority))
            } else {
                Ok(cluster.certificate_authority_data.clone())
            };
            // An empty file, which trusts no certificate, is allowed (C180).
            if read.map_or(true, |data| !data.is_empty() && TrustedRoots::from_pem(&data).is_empty()) {
                found.push(Obstacle::NoCertificate("certificate-authority"));
            }
        }
    }

    fn certificate_obstacles(&self, files: &dyn FileSystem, found: &mut Vec<Obstacle>) {
        let user = &self.user;
        if user.client_certificate.is_empty() && user.client_certificate_data.is_empty() {
            return;
        }
        let certificate = data_or_file(&user.client_certificate_data, &user.client_certificate, files);
        if !holds_pem(&certificate, "CERTIFICATE") {
            found.push(Obstacle::NoCertificate("client-certificate"));
        }
        let key =
            zeroize::Zeroizing::new(data_or_file(user.client_key_data.expose(), &user.client_key, files));
        if !holds_pem(&key, "PRIVATE KEY") {
            found.push(Obstacle::NoKey("client-key"));
        } else if holds_pem(&certificate, "CERTIFICATE") {
            found.extend(ClientIdentity::from_pem(&certificate, &key).err().map(Obstacle::Identity));
        }
    }

    fn program_obstacles(&self, found: &mut Vec<Obstacle>) {
        const VERSIONS: [&str; 2] =
            ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
        if let Some(exec) =
            self.user.exec.as_ref().filter(|exec| !VERSIONS.contains(&exec.api_version.as_str()))
        {
            found.push(Obstacle::ExecVersion(exec.api_version.clone()));
        }
        let Some(provider) = &self.user.auth_provider else { return };
        let name = provider.name.clone();
        match provider.name.as_str() {
            "gcp" => found.push(Obstacle::RemovedProvider { name, instead: "gke-gcloud-auth-plugin" }),
            "azure" => found.push(Obstacle::RemovedProvider { name, instead: "kubelogin" }),
            "oidc" => {
                let lacking = ["idp-issuer-url", "client-id"]
                    .into_iter()
                    .find(|key| !provider.config.contains_key(*key));
                found.extend(lacking.map(Obstacle::ProviderLacks));
            }
            PROVIDER => {
                let lacking = Some("pathExec").filter(|key| !provider.config.contains_key(*key));
                found.extend(lacking.map(Obstacle::ProviderLacks));
            }
            _ => found.push(Obstacle::UnknownProvider(name)),
        }
    }

    fn token_obstacles(&self, files: &dyn FileSystem, found: &mut Vec<Obstacle>) {
        let user = &self.user;
        let bearer = !user.token.is_empty() || !user.token_file.is_empty();
        if bearer && !user.username.is_empty() {
            found.push(Obstacle::BasicAndBearer);
        }
        if user.token.is_empty() && !user.token_file.is_empty() {
            let content =
                zeroize::Zeroizing::new(files.read(Path::new(&user.token_file)).unwrap_or_default());
            if content.trim_ascii().is_empty() {
                found.push(Obstacle::EmptyTokenFile(user.token_file.clone()));
            }
        }
    }

    /// Whether the address has a scheme; without one it is plain http, which is usually unintended.
    // C161
    pub(super) fn has_scheme(&self) -> bool {
        Address::parse(&self.cluster.server)
            .is_ok_and(|address| !address.scheme.is_empty() && !address.host.is_empty())
    }
}

fn data_or_file(data: &[u8], path: &str, files: &dyn FileSystem) -> Vec<u8> {
    if data.is_empty() { files.read(Path::new(path)).unwrap_or_default() } else { data.to_vec() }
}

fn holds_pem(data: &[u8], label_end: &str) -> bool {
    pem::blocks(data).iter().any(|block| block.label.ends_with(label_end))
}
