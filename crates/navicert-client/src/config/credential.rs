//! The credential of the selected user: read and checked when the configuration is resolved, so that creating its source
//! cannot fail.
// C160–C168, C470

mod by_feature;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use http::HeaderValue;
use navicert_go::base64::STANDARD;
use navicert_types::external_signer::PROVIDER;
use navicert_types::kubeconfig::{AuthInfo, AuthProviderConfig};
use zeroize::Zeroizing;

use super::problem::ClientProblem;
use crate::context::ClientContext;
#[cfg(feature = "oidc")]
use crate::credential::Oidc;
use crate::credential::{
    CertificateFiles, ClientIdentity, Credential, CredentialSource, Generation, KeyPairFiles,
    StaticCredential, TokenFile, bearer, read_token_file,
};
#[cfg(feature = "signer")]
use crate::credential::{ExternalSigner, SignerPlan};
#[cfg(feature = "exec")]
use crate::exec::{Authenticator, ExecSettings, Plugin};
use crate::kubeconfig::{Effective, FileSystem};
use by_feature::{OidcSettings, exec_plan, oidc_plan};

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
    #[cfg(feature = "exec")]
    Exec(Box<Plugin>),
    #[cfg(feature = "signer")]
    Signer(SignerPlan),
    #[cfg(feature = "oidc")]
    Oidc { settings: OidcSettings, identity: Option<IdentityPlan> },
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
        let (token, identity) = match self {
            CredentialPlan::Static { token, identity, .. } => (token.as_ref(), identity.as_ref()),
            #[cfg(feature = "exec")]
            CredentialPlan::Exec(_) => (None, None),
            #[cfg(feature = "signer")]
            CredentialPlan::Signer(_) => (None, None),
            #[cfg(feature = "oidc")]
            CredentialPlan::Oidc { identity, .. } => (None, identity.as_ref()),
        };
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
        #[cfg(feature = "exec")] settings: &ExecSettings,
        client_context: &ClientContext,
    ) -> Arc<dyn CredentialSource> {
        match self {
            #[cfg(feature = "exec")]
            CredentialPlan::Exec(plugin) => {
                Arc::new(Authenticator::new(Plugin::clone(plugin), settings.clone(), client_context.clone()))
            }
            #[cfg(feature = "signer")]
            CredentialPlan::Signer(plan) => Arc::new(ExternalSigner::new(plan, settings, client_context)),
            #[cfg(feature = "oidc")]
            CredentialPlan::Oidc { settings, identity } => {
                let token = Oidc::new(settings.clone(), inline_identity(identity.as_ref()), client_context);
                with_identity_files(identity.as_ref(), Arc::new(token), client_context)
            }
            CredentialPlan::Static { token, identity, hint } => {
                let inline = inline_identity(identity.as_ref());
                let token = token_source(token.as_ref(), inline, hint.clone(), client_context);
                with_identity_files(identity.as_ref(), token, client_context)
            }
        }
    }
}

fn inline_identity(identity: Option<&IdentityPlan>) -> Option<Arc<ClientIdentity>> {
    match identity {
        Some(IdentityPlan::Inline(identity)) => Some(Arc::clone(identity)),
        Some(IdentityPlan::Files { .. }) | None => None,
    }
}

/// Adds the certificate to a token's source if it is a pair of files.
fn with_identity_files(
    identity: Option<&IdentityPlan>,
    token: Arc<dyn CredentialSource>,
    client_context: &ClientContext,
) -> Arc<dyn CredentialSource> {
    let Some(IdentityPlan::Files { certificate, key, identity, read_at }) = identity else {
        return token;
    };
    let pair = KeyPairFiles {
        certificate: certificate.clone(),
        key: key.clone(),
        files: Arc::clone(&client_context.files),
    };
    let clock = Arc::clone(&client_context.clock);
    Arc::new(CertificateFiles::new(pair, (Arc::clone(identity), *read_at), token, clock))
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
    #[cfg(feature = "signer")]
    pub(crate) allow_pin: bool,
}

impl CredentialReader<'_> {
    /// Reads the credential that is used, and checks every other one that is configured as well.
    ///
    /// A static credential (token, token file, password, or certificate with key) disables the exec plugin, even when
    /// the server rejects it. A bearer token, also that of the auth provider `oidc`, and a certificate are sent together.
    /// Over plain http no credential is used.
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
            return self.signer_plan(provider, problems).unwrap_or_else(CredentialPlan::anonymous);
        }
        let identity = self.identity(user).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let token = self.token(user, problems);
        let plugin = self.plugin(problems);
        let oidc = provider.and_then(|provider| self.provider(provider, problems));
        let is_static = token.is_some() || identity.is_some() || problems.len() > known;
        let plan = match (oidc, plugin) {
            (Some(settings), _) if token.is_none() => oidc_plan(settings, identity.clone(), problems),
            (_, Some(plugin)) if !is_static => exec_plan(plugin, problems),
            _ => None,
        };
        plan.unwrap_or_else(|| CredentialPlan::Static { token, identity, hint: unused_plugin(user) })
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

    /// Of the auth providers that client-go had, only `oidc` remains.
    // C165
    fn provider(
        &self,
        provider: &AuthProviderConfig,
        problems: &mut Vec<ClientProblem>,
    ) -> Option<OidcSettings> {
        let name = provider.name.clone();
        let problem = match provider.name.as_str() {
            "oidc" => match by_feature::read_oidc(provider, self.files) {
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

#[cfg(test)]
#[cfg(feature = "exec")]
mod tests;
