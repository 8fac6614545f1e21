//! The kinds of credential that a build may lack: exec plugins, the auth provider `oidc` and external signers. Without its feature, a
//! credential that a client would use is a problem that names the feature; it is never ignored.

#[cfg(feature = "signer")]
use navicert_signer::remote::SignerProtocol;
#[cfg(feature = "exec")]
use navicert_types::error_chain;
#[cfg(feature = "exec")]
use navicert_types::exec_credential::ExecVersion;
#[cfg(feature = "signer")]
use navicert_types::external_signer::{SignerConfiguration, v1::SignerCluster};
#[cfg(feature = "signer")]
use navicert_types::kubeconfig::AuthInfo;
use navicert_types::kubeconfig::AuthProviderConfig;

use super::{CredentialPlan, CredentialReader, IdentityPlan};
use crate::config::problem::ClientProblem;
#[cfg(feature = "oidc")]
pub(super) use crate::credential::OidcSettings;
#[cfg(feature = "signer")]
use crate::credential::SignerPlan;
#[cfg(feature = "exec")]
use crate::exec::Plugin;
#[cfg(feature = "signer")]
use crate::kubeconfig::Effective;
use crate::kubeconfig::FileSystem;

/// The command of a plugin that this build cannot run.
#[cfg(not(feature = "exec"))]
pub(super) struct Plugin(String);

/// No settings are read without the feature.
#[cfg(not(feature = "oidc"))]
pub(super) struct OidcSettings;

#[cfg(feature = "exec")]
impl CredentialReader<'_> {
    pub(super) fn plugin(&self, problems: &mut Vec<ClientProblem>) -> Option<Plugin> {
        let exec = self.effective.user.exec.as_ref()?;
        if ExecVersion::from_api_version(&exec.api_version).is_none() {
            problems.push(ClientProblem::ExecVersion(exec.api_version.clone()));
            return None;
        }
        match Plugin::from_effective(self.effective, self.files) {
            Ok(plugin) => plugin,
            Err(error) => {
                problems.push(ClientProblem::Exec(error_chain(&error)));
                None
            }
        }
    }
}

#[cfg(feature = "exec")]
pub(super) fn exec_plan(plugin: Plugin, _: &mut Vec<ClientProblem>) -> Option<CredentialPlan> {
    Some(CredentialPlan::Exec(Box::new(plugin)))
}

#[cfg(not(feature = "exec"))]
impl CredentialReader<'_> {
    pub(super) fn plugin(&self, _: &mut Vec<ClientProblem>) -> Option<Plugin> {
        self.effective.user.exec.as_ref().map(|exec| Plugin(exec.command.clone()))
    }
}

#[cfg(not(feature = "exec"))]
pub(super) fn exec_plan(
    Plugin(command): Plugin,
    problems: &mut Vec<ClientProblem>,
) -> Option<CredentialPlan> {
    let what = format!("exec plugin `{}`", navicert_types::redact::terminal(&command));
    problems.push(ClientProblem::MissingFeature { what, feature: "exec" });
    None
}

#[cfg(feature = "oidc")]
pub(super) fn read_oidc(
    provider: &AuthProviderConfig,
    files: &dyn FileSystem,
) -> Result<OidcSettings, ClientProblem> {
    OidcSettings::read(provider, files)
}

#[cfg(feature = "oidc")]
pub(super) fn oidc_plan(
    settings: OidcSettings,
    identity: Option<IdentityPlan>,
    _: &mut Vec<ClientProblem>,
) -> Option<CredentialPlan> {
    Some(CredentialPlan::Oidc { settings, identity })
}

#[cfg(not(feature = "oidc"))]
pub(super) fn read_oidc(_: &AuthProviderConfig, _: &dyn FileSystem) -> Result<OidcSettings, ClientProblem> {
    Ok(OidcSettings)
}

#[cfg(not(feature = "oidc"))]
pub(super) fn oidc_plan(
    OidcSettings: OidcSettings,
    _: Option<IdentityPlan>,
    problems: &mut Vec<ClientProblem>,
) -> Option<CredentialPlan> {
    let what = "auth-provider `oidc`".to_owned();
    problems.push(ClientProblem::MissingFeature { what, feature: "oidc" });
    None
}

#[cfg(feature = "signer")]
impl CredentialReader<'_> {
    pub(super) fn signer_plan(
        &self,
        provider: &AuthProviderConfig,
        problems: &mut Vec<ClientProblem>,
    ) -> Option<CredentialPlan> {
        match read_signer(provider, self.effective, self.allow_pin) {
            Ok(plan) => Some(CredentialPlan::Signer(plan)),
            Err(found) => {
                problems.extend(found);
                None
            }
        }
    }
}

#[cfg(not(feature = "signer"))]
impl CredentialReader<'_> {
    pub(super) fn signer_plan(
        &self,
        provider: &AuthProviderConfig,
        problems: &mut Vec<ClientProblem>,
    ) -> Option<CredentialPlan> {
        let what = format!("auth-provider `{}`", provider.name);
        problems.push(ClientProblem::MissingFeature { what, feature: "signer" });
        None
    }
}

/// Reads the settings of an external signer.
// C810, C812, X2
#[cfg(feature = "signer")]
fn read_signer(
    provider: &AuthProviderConfig,
    effective: &Effective,
    allow_pin: bool,
) -> Result<SignerPlan, Vec<ClientProblem>> {
    let exposed = provider.config.iter().map(|(name, value)| (name.clone(), value.expose().clone()));
    let configuration = SignerConfiguration(exposed.collect());
    let mut problems = Vec::new();
    let program = configuration.value("pathExec").map(ToOwned::to_owned);
    if program.is_none() {
        problems.push(ClientProblem::NoSigner);
    }
    let other = other_credentials(&effective.user).into_iter().find(|(_, is_set)| *is_set);
    problems.extend(other.map(|(name, _)| ClientProblem::SignerAndCredential(name)));
    if configuration.value("pin").is_some() && !allow_pin {
        problems.push(ClientProblem::SignerPin);
    }
    let protocol = SignerProtocol::from_configuration(&configuration);
    problems.extend(protocol.err().map(ClientProblem::SignerSetting));
    let cluster = SignerCluster {
        server: effective.server(),
        tls_server_name: effective.cluster.tls_server_name.clone(),
    };
    match (program, protocol) {
        (Some(program), Ok(protocol)) if problems.is_empty() => {
            Ok(SignerPlan { program, configuration, protocol, cluster, allow_pin })
        }
        _ => Err(problems),
    }
}

// C812
#[cfg(feature = "signer")]
fn other_credentials(user: &AuthInfo) -> [(&'static str, bool); 4] {
    [
        (
            "a client certificate",
            !user.client_certificate.is_empty() || !user.client_certificate_data.is_empty(),
        ),
        ("a client key", !user.client_key.is_empty() || !user.client_key_data.is_empty()),
        ("a token", !user.token.is_empty() || !user.token_file.is_empty()),
        ("a password", !user.username.is_empty() || !user.password.is_empty()),
    ]
}
