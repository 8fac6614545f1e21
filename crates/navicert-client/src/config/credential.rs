//! The credential of the selected user: read and checked when the configuration is resolved, so that creating its source
//! cannot fail.
// C160–C168, C470

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use http::HeaderValue;
use navicert_go::base64::STANDARD;
use navicert_signer::remote::SignerProtocol;
use navicert_types::error_chain;
use navicert_types::exec_credential::ExecVersion;
use navicert_types::external_signer::v1::SignerCluster;
use navicert_types::external_signer::{PROVIDER, SignerConfiguration};
use navicert_types::kubeconfig::{AuthInfo, AuthProviderConfig};
use zeroize::Zeroizing;

use super::problem::ClientProblem;
use crate::context::ClientContext;
use crate::credential::{
    CertificateFiles, ClientIdentity, Credential, CredentialSource, ExternalSigner, Generation, KeyPairFiles,
    Oidc, OidcSettings, SignerPlan, StaticCredential, TokenFile, TokenStore, read_token_file,
};
use crate::exec::response::bearer;
use crate::exec::{Authenticator, ExecSettings, Plugin};
use crate::kubeconfig::{Effective, FileSystem};

/// How a client authenticates.
#[derive(Clone)]
pub(crate) enum CredentialPlan {
    /// A token, a password, a certificate, or nothing.
    Static {
        token: Option<TokenPlan>,
        identity: Option<IdentityPlan>,
        /// Why a configured plugin never runs.
        // C168
        hint: Option<String>,
    },
    Exec(Box<Plugin>),
    Signer(SignerPlan),
    Oidc {
        settings: OidcSettings,
        identity: Option<Arc<ClientIdentity>>,
    },
}

/// An `Authorization` header and where it comes from.
#[derive(Clone)]
pub(crate) enum TokenPlan {
    Fixed(HeaderValue),
    /// The file's content is used from now on, the header only while the file cannot be read.
    File {
        path: PathBuf,
        header: HeaderValue,
    },
}

/// A client certificate and where it comes from.
#[derive(Clone)]
pub(crate) enum IdentityPlan {
    Inline(Arc<ClientIdentity>),
    /// A pair of files is reread; a pair with a part in the kubeconfig is not.
    // C163
    Files {
        certificate: PathBuf,
        key: PathBuf,
        identity: Arc<ClientIdentity>,
        /// When the files were read, on the monotonic clock.
        read_at: Duration,
    },
}

impl CredentialPlan {
    /// No credential.
    pub(crate) fn anonymous() -> Self {
        CredentialPlan::Static { token: None, identity: None, hint: None }
    }

    /// The files that its source reads again.
    pub(crate) fn watched_files(&self) -> Vec<PathBuf> {
        let CredentialPlan::Static { token, identity, .. } = self else { return Vec::new() };
        let mut files = Vec::new();
        if let Some(TokenPlan::File { path, .. }) = token {
            files.push(path.clone());
        }
        if let Some(IdentityPlan::Files { certificate, key, .. }) = identity {
            files.extend([certificate.clone(), key.clone()]);
        }
        files
    }

    /// Creates the credential source. Runs no plugin.
    pub(crate) fn source(
        &self,
        settings: &ExecSettings,
        client_context: &ClientContext,
        store: Option<Arc<dyn TokenStore>>,
    ) -> Arc<dyn CredentialSource> {
        match self {
            CredentialPlan::Exec(plugin) => {
                Arc::new(Authenticator::new(Plugin::clone(plugin), settings.clone(), client_context.clone()))
            }
            CredentialPlan::Signer(plan) => Arc::new(ExternalSigner::new(plan, settings, client_context)),
            CredentialPlan::Oidc { settings, identity } => {
                Arc::new(Oidc::new(settings.clone(), identity.clone(), client_context, store))
            }
            CredentialPlan::Static { token, identity, hint } => {
                let inline = match identity {
                    Some(IdentityPlan::Inline(identity)) => Some(Arc::clone(identity)),
                    Some(IdentityPlan::Files { .. }) | None => None,
                };
                let token = token_source(token.as_ref(), inline, hint.clone(), client_context);
                match identity {
                    Some(IdentityPlan::Files { certificate, key, identity, read_at }) => {
                        let (certificate, key) = (certificate.clone(), key.clone());
                        let pair =
                            KeyPairFiles { certificate, key, files: Arc::clone(&client_context.files) };
                        let clock = Arc::clone(&client_context.clock);
                        Arc::new(CertificateFiles::new(pair, (Arc::clone(identity), *read_at), token, clock))
                    }
                    Some(IdentityPlan::Inline(_)) | None => token,
                }
            }
        }
    }
}

fn token_source(
    token: Option<&TokenPlan>,
    identity: Option<Arc<ClientIdentity>>,
    hint: Option<String>,
    client_context: &ClientContext,
) -> Arc<dyn CredentialSource> {
    let header = match token {
        Some(TokenPlan::File { path, header }) => {
            let (files, clock) = (Arc::clone(&client_context.files), Arc::clone(&client_context.clock));
            return Arc::new(TokenFile::new(path.clone(), header.clone(), identity, files, clock, hint));
        }
        Some(TokenPlan::Fixed(header)) => Some(header.clone()),
        None => None,
    };
    let credential =
        Credential { generation: Generation::FIRST, authorization: header, identity, expires: None };
    Arc::new(StaticCredential::new(credential).with_hint(hint))
}

/// What reading a user's credential needs.
pub(crate) struct CredentialReader<'a> {
    pub(crate) effective: &'a Effective,
    pub(crate) files: &'a dyn FileSystem,
    pub(crate) now: Duration,
    pub(crate) allow_pin: bool,
}

impl CredentialReader<'_> {
    /// Reads the credential that is used, and checks every other one that is configured as well.
    ///
    /// A static credential (token, token file, password, or certificate with key) disables the exec plugin, even when
    /// the server rejects it. A bearer token and a certificate are sent together. Over plain http no credential is used.
    // C167, C168, C160
    pub(crate) fn read(&self, problems: &mut Vec<ClientProblem>) -> CredentialPlan {
        if !self.effective.is_https() {
            return CredentialPlan::anonymous();
        }
        if self.effective.user_is_missing() {
            problems.push(ClientProblem::UserNotFound {
                context: self.effective.context.clone().unwrap_or_default(),
                user: self.effective.user_name.clone(),
            });
            return CredentialPlan::anonymous();
        }
        let user = &self.effective.user;
        let known = problems.len();
        let provider = user.auth_provider.as_ref();
        if let Some(provider) = provider.filter(|provider| provider.name == PROVIDER) {
            return match signer(provider, self.effective, self.allow_pin) {
                Ok(plan) => CredentialPlan::Signer(plan),
                Err(found) => {
                    problems.extend(found);
                    CredentialPlan::anonymous()
                }
            };
        }
        let identity = self.identity(user).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let token = self.token(user, problems);
        let plugin = self.plugin(problems);
        let oidc = provider.and_then(|provider| self.provider(provider, problems));
        let is_static = token.is_some() || identity.is_some() || problems.len() > known;
        match (oidc, plugin, identity) {
            (Some(settings), _, None) if token.is_none() => CredentialPlan::Oidc { settings, identity: None },
            (Some(settings), _, Some(IdentityPlan::Inline(identity))) if token.is_none() => {
                CredentialPlan::Oidc { settings, identity: Some(identity) }
            }
            (_, Some(plugin), _) if !is_static => CredentialPlan::Exec(Box::new(plugin)),
            (_, _, identity) => CredentialPlan::Static { token, identity, hint: unused_plugin(user) },
        }
    }

    fn identity(&self, user: &AuthInfo) -> Result<Option<IdentityPlan>, ClientProblem> {
        if user.client_certificate.is_empty() && user.client_certificate_data.is_empty() {
            return Ok(None); // A key alone is ignored (C163).
        }
        let certificate = self.data_or_file(&user.client_certificate_data, &user.client_certificate);
        let key = self.data_or_file(user.client_key_data.expose(), &user.client_key);
        let identity = Arc::new(ClientIdentity::from_pem(&certificate, &key)?);
        let is_inline = !user.client_certificate_data.is_empty() || !user.client_key_data.is_empty();
        Ok(Some(match is_inline {
            true => IdentityPlan::Inline(identity),
            false => IdentityPlan::Files {
                certificate: PathBuf::from(&user.client_certificate),
                key: PathBuf::from(&user.client_key),
                identity,
                read_at: self.now,
            },
        }))
    }

    /// Validation has reported a file that cannot be read.
    fn data_or_file(&self, data: &[u8], path: &str) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(match data.is_empty() {
            true => self.files.read(Path::new(path)).unwrap_or_default(),
            false => data.to_vec(),
        })
    }

    fn token(&self, user: &AuthInfo, problems: &mut Vec<ClientProblem>) -> Option<TokenPlan> {
        let has_bearer = !user.token_file.is_empty() || !user.token.is_empty();
        if has_bearer && !user.username.is_empty() {
            problems.push(ClientProblem::BasicAndBearer);
            return None;
        }
        let read = if has_bearer { self.bearer(user).map(Some) } else { basic(user) };
        read.unwrap_or_else(|problem| {
            problems.push(problem);
            None
        })
    }

    // C162
    fn bearer(&self, user: &AuthInfo) -> Result<TokenPlan, ClientProblem> {
        let token = match user.token.is_empty() {
            true => None,
            false => Some(bearer(&user.token).map_err(|_| ClientProblem::Token)?),
        };
        let path = PathBuf::from(&user.token_file);
        match token {
            Some(header) if user.token_file.is_empty() => Ok(TokenPlan::Fixed(header)),
            token => {
                let read = read_token_file(&path, self.files);
                let header = match token {
                    Some(token) => read.unwrap_or(token),
                    None => read?,
                };
                Ok(TokenPlan::File { path, header })
            }
        }
    }

    fn plugin(&self, problems: &mut Vec<ClientProblem>) -> Option<Plugin> {
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

    /// Of the auth providers that client-go had, only `oidc` remains.
    // C165
    fn provider(
        &self,
        provider: &AuthProviderConfig,
        problems: &mut Vec<ClientProblem>,
    ) -> Option<OidcSettings> {
        let name = provider.name.clone();
        let problem = match provider.name.as_str() {
            "oidc" => match OidcSettings::read(provider, self.files) {
                Ok(settings) => return Some(settings),
                Err(problem) => problem,
            },
            "gcp" => ClientProblem::RemovedProvider { name, instead: "gke-gcloud-auth-plugin" },
            "azure" => ClientProblem::RemovedProvider { name, instead: "kubelogin" },
            _ => ClientProblem::UnknownProvider(name),
        };
        problems.push(problem);
        None
    }
}

fn basic(user: &AuthInfo) -> Result<Option<TokenPlan>, ClientProblem> {
    if user.username.is_empty() {
        return Ok(None);
    }
    let pair = Zeroizing::new(format!("{}:{}", user.username, user.password.expose()));
    let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
    let mut value = HeaderValue::from_str(&value).map_err(|_| ClientProblem::Basic)?;
    value.set_sensitive(true);
    Ok(Some(TokenPlan::Fixed(value)))
}

/// A hint for a static credential next to a plugin: once the credential expires, every response is a 401 and nothing
/// else tells why.
// C168
fn unused_plugin(user: &AuthInfo) -> Option<String> {
    let exec = user.exec.as_ref()?;
    Some(format!(
        "user has a static credential next to the exec plugin `{}`, which therefore never runs; remove the \
         static credential to use the plugin",
        navicert_types::redact::terminal(&exec.command)
    ))
}

/// Reads the settings of an external signer.
// C810, C812, X2
fn signer(
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

#[cfg(test)]
mod tests;
