//! Which field of which entry a problem or warning concerns.

use super::error::ConfigLocation;
use super::problem::ClientProblem;
use super::warning::WarningKind;
use crate::credential::IdentityError;
use crate::kubeconfig::{Effective, EntryKind, MergedKubeconfig, ValidationError};

type Field<'a> = (EntryKind, &'a str, &'static [&'static str]);

impl MergedKubeconfig {
    /// The location of a validation error; `None` if it concerns a missing entry.
    pub(super) fn locate_validation_error(&self, error: &ValidationError) -> Option<ConfigLocation> {
        self.config_location(validation_field(error)?)
    }

    /// The location of a problem of the selected context.
    pub(super) fn locate_client_problem(
        &self,
        problem: &ClientProblem,
        effective: &Effective,
    ) -> Option<ConfigLocation> {
        let (kind, fields) = client_field(problem, effective)?;
        self.config_location((kind, name_of(kind, effective), fields))
    }

    /// The location of a warning.
    pub(super) fn locate_warning(
        &self,
        warning: &WarningKind,
        effective: &Effective,
    ) -> Option<ConfigLocation> {
        if let WarningKind::PlainHttp(server) | WarningKind::NoScheme(server) = warning {
            // A server from the command line has no location.
            self.cluster(&effective.cluster_name).filter(|cluster| cluster.server == *server)?;
        }
        let (kind, fields) = warning_field(warning);
        self.config_location((kind, name_of(kind, effective), fields))
    }

    fn config_location(&self, (kind, name, fields): Field<'_>) -> Option<ConfigLocation> {
        let found = self.locate_field(kind, name, fields)?;
        Some(ConfigLocation {
            path: found.origin.path.clone(),
            span: found.span,
            text: found.origin.text.clone(),
        })
    }
}

fn validation_field(error: &ValidationError) -> Option<Field<'_>> {
    fn user<'a>(name: &'a str, fields: &'static [&'static str]) -> Option<Field<'a>> {
        Some((EntryKind::User, name, fields))
    }
    fn cluster<'a>(name: &'a str, fields: &'static [&'static str]) -> Option<Field<'a>> {
        Some((EntryKind::Cluster, name, fields))
    }
    match error {
        ValidationError::ClusterNotFound { context, .. } => {
            Some((EntryKind::Context, context.as_str(), &["cluster"]))
        }
        ValidationError::NoServer(name) => cluster(name, &["server"]),
        ValidationError::Proxy { cluster: name, .. } => cluster(name, &["proxy-url"]),
        ValidationError::TwoAuthorities(name) => cluster(name, &["certificate-authority"]),
        ValidationError::Unreadable { field: "certificate-authority", entry, .. } => {
            cluster(entry, &["certificate-authority"])
        }
        ValidationError::Unreadable { field: "client-key", entry, .. } => user(entry, &["client-key"]),
        ValidationError::Unreadable { entry, .. } => user(entry, &["client-certificate"]),
        ValidationError::TwoCertificates(name) => user(name, &["client-certificate"]),
        ValidationError::TwoKeys(name) => user(name, &["client-key"]),
        ValidationError::NoKey(name) => user(name, &[]),
        ValidationError::ExecAndProvider(name) => user(name, &["auth-provider"]),
        ValidationError::ExecLacks { what: "env variable name", user: name } => user(name, &["exec", "env"]),
        ValidationError::ExecLacks { user: name, .. } => user(name, &["exec"]),
        ValidationError::InteractiveMode { user: name, .. } => user(name, &["exec", "interactiveMode"]),
        ValidationError::TwoMethods(name) => user(name, &["token"]),
        ValidationError::ImpersonationWithoutUser(name) => user(name, &[]),
        ValidationError::TokenFile { user: name, .. } => user(name, &["tokenFile"]),
        ValidationError::NoSuchContext(_)
        | ValidationError::NoSuchUser(_)
        | ValidationError::NoSuchCluster(_)
        | ValidationError::ContextNotFound(_)
        | ValidationError::NoConfiguration
        | ValidationError::NoClusterSelected => None,
    }
}

fn client_field(
    problem: &ClientProblem,
    effective: &Effective,
) -> Option<(EntryKind, &'static [&'static str])> {
    let (cluster, user) = (&effective.cluster, &effective.user);
    Some(match problem {
        ClientProblem::Server { .. } => (EntryKind::Cluster, &["server"]),
        ClientProblem::ServerName(_) => (EntryKind::Cluster, &["tls-server-name"]),
        ClientProblem::Proxy { .. } => (EntryKind::Cluster, &["proxy-url"]),
        ClientProblem::ProxyEnvironment { .. } => return None,
        ClientProblem::AuthorityAndInsecure => (EntryKind::Cluster, &["insecure-skip-tls-verify"]),
        ClientProblem::NoAuthority { .. }
        | ClientProblem::InvalidAuthority
        | ClientProblem::AuthorityIsDirectory(_) => match cluster.certificate_authority_data.is_empty() {
            true => (EntryKind::Cluster, &["certificate-authority"]),
            false => (EntryKind::Cluster, &["certificate-authority-data"]),
        },
        ClientProblem::UserNotFound { .. } => (EntryKind::Context, &["user"]),
        ClientProblem::Impersonation(_) => (EntryKind::User, &["as"]),
        ClientProblem::Identity(error) => {
            let is_inline = match is_about_key(error) {
                true => !user.client_key_data.is_empty(),
                false => !user.client_certificate_data.is_empty(),
            };
            let fields: &'static [&'static str] = match (is_about_key(error), is_inline) {
                (true, true) => &["client-key-data"],
                (true, false) => &["client-key"],
                (false, true) => &["client-certificate-data"],
                (false, false) => &["client-certificate"],
            };
            (EntryKind::User, fields)
        }
        ClientProblem::BasicAndBearer | ClientProblem::Basic => (EntryKind::User, &["username"]),
        ClientProblem::Token => (EntryKind::User, &["token"]),
        ClientProblem::TokenFile(_) => (EntryKind::User, &["tokenFile"]),
        #[cfg(feature = "exec")]
        ClientProblem::ExecVersion(_) => (EntryKind::User, &["exec", "apiVersion"]),
        #[cfg(feature = "exec")]
        ClientProblem::Exec(_) => (EntryKind::User, &["exec"]),
        ClientProblem::RemovedProvider { .. } | ClientProblem::UnknownProvider(_) => {
            (EntryKind::User, &["auth-provider", "name"])
        }
        #[cfg(feature = "oidc")]
        ClientProblem::OidcSetting("client-id") => {
            (EntryKind::User, &["auth-provider", "config", "client-id"])
        }
        #[cfg(feature = "oidc")]
        ClientProblem::OidcSetting(_) => (EntryKind::User, &["auth-provider", "config", "idp-issuer-url"]),
        #[cfg(feature = "oidc")]
        ClientProblem::OidcAuthority(_) => (EntryKind::User, &["auth-provider"]),
        #[cfg(feature = "signer")]
        ClientProblem::SignerAndCredential(_) | ClientProblem::NoSigner => {
            (EntryKind::User, &["auth-provider"])
        }
        ClientProblem::MissingFeature { feature: "exec", .. } => (EntryKind::User, &["exec"]),
        ClientProblem::MissingFeature { .. } => (EntryKind::User, &["auth-provider"]),
        #[cfg(feature = "signer")]
        ClientProblem::SignerPin => (EntryKind::User, &["auth-provider", "config", "pin"]),
        #[cfg(feature = "signer")]
        ClientProblem::SignerSetting(_) => (EntryKind::User, &["auth-provider", "config"]),
    })
}

/// Whether an error concerns the key rather than the certificate.
fn is_about_key(error: &IdentityError) -> bool {
    match error {
        IdentityError::NoPemInCertificate
        | IdentityError::KeyInCertificate
        | IdentityError::NoCertificate
        | IdentityError::MalformedCertificate => false,
        IdentityError::NoPemInKey
        | IdentityError::CertificateInKey
        | IdentityError::NoKey
        | IdentityError::EncryptedKey
        | IdentityError::MalformedKey
        | IdentityError::KeyType
        | IdentityError::Mismatch => true,
    }
}

fn warning_field(warning: &WarningKind) -> (EntryKind, &'static [&'static str]) {
    match warning {
        WarningKind::UserMissing(_) | WarningKind::NoUser => (EntryKind::Context, &["user"]),
        WarningKind::PlainHttp(_) | WarningKind::NoScheme(_) => (EntryKind::Cluster, &["server"]),
        WarningKind::Insecure => (EntryKind::Cluster, &["insecure-skip-tls-verify"]),
        WarningKind::KeyIgnored(_) => (EntryKind::User, &["client-key"]),
        WarningKind::TokenFileWins(_) => (EntryKind::User, &["tokenFile"]),
        WarningKind::ExecUnused(_) => (EntryKind::User, &["exec"]),
    }
}

fn name_of(kind: EntryKind, effective: &Effective) -> &str {
    match kind {
        EntryKind::Cluster => &effective.cluster_name,
        EntryKind::User => &effective.user_name,
        EntryKind::Context => effective.context.as_deref().unwrap_or_default(),
    }
}
