//! Chooses the credential source when a user entry has several.
// C160–C168, C470

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use navicert_types::Secret;
use navicert_types::external_signer::PROVIDER;
use navicert_types::kubeconfig::{AuthInfo, AuthProviderConfig};
use thiserror::Error;
use zeroize::Zeroizing;

use super::certificate_files::{CertificateFiles, KeyPairFiles};
use super::external_signer::{ExternalSigner, SignerConfigError};
use super::oidc::{Oidc, OidcError};
use super::static_credential::StaticCredential;
use super::token_file::{TokenFile, TokenFileError};
use super::{ClientIdentity, Credential, CredentialSource, Generation, IdentityError, SharedFiles};
use crate::exec::response::{PluginOutputError, bearer};
use crate::exec::{Authenticator, ExecError, ExecSettings, Plugin, Surroundings};
use crate::kubeconfig::Effective;

/// Why a user entry gives no credential source.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ChooseError {
    /// Both a password and a token are set.
    #[error("username/password or bearer token may be set, but not both")]
    BasicAndBearer,
    /// Both a plugin and an auth provider are set.
    #[error("execProvider and authProvider cannot be used in combination")]
    ExecAndProvider,
    /// The auth provider is unknown.
    // C165
    #[error("no Auth Provider found for name {0:?}")]
    Provider(String),
    /// The auth provider was removed from Kubernetes.
    // C165
    #[error("auth-provider {name:?} has been removed from Kubernetes; use the exec plugin `{instead}`")]
    RemovedProvider {
        /// `gcp` or `azure`.
        name: String,
        /// The exec plugin that replaces it.
        instead: &'static str,
    },
    /// The auth provider's configuration is invalid.
    #[error(transparent)]
    Oidc(#[from] OidcError),
    /// The token is not valid in a header.
    #[error("invalid token: it contains control characters or is surrounded by white space")]
    Token,
    /// The user name or password is not valid in a header.
    #[error("invalid username or password: not allowed in a header")]
    Basic,
    /// A certificate or key file cannot be read.
    #[error("unable to read {field} {path}")]
    Unreadable {
        /// `client-cert` or `client-key`.
        field: &'static str,
        /// The file.
        path: String,
        /// I/O error reported by the operating system.
        source: Arc<std::io::Error>,
    },
    /// Certificate and key are invalid or do not match.
    #[error("invalid client certificate")]
    Identity(#[from] IdentityError),
    /// The token file has no usable token.
    #[error(transparent)]
    TokenFile(#[from] TokenFileError),
    /// The exec plugin's configuration is invalid.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The external signer's configuration is invalid.
    #[error(transparent)]
    Signer(#[from] SignerConfigError),
}

/// Chooses the credential source for the selected user. Runs no plugin.
///
/// A static credential (token, token file, password, or certificate with key) disables the exec plugin, even when the
/// server rejects it; the source's hint then says so. A bearer token and a certificate are sent together. Over plain
/// http no credential is used.
///
/// # Errors
/// [`ChooseError`]: a combination that is not allowed, or a file that cannot be used.
// C167, C168, C160
pub fn choose(
    effective: &Effective,
    files: &SharedFiles,
    settings: &ExecSettings,
    around: &Surroundings,
) -> Result<Arc<dyn CredentialSource>, ChooseError> {
    if !effective.is_https() {
        return Ok(Arc::new(StaticCredential::new(Credential::anonymous())));
    }
    let user = &effective.user;
    if user.exec.is_some() && user.auth_provider.is_some() {
        return Err(ChooseError::ExecAndProvider);
    }
    if let Some(provider) = user.auth_provider.as_ref().filter(|provider| provider.name == PROVIDER) {
        return Ok(Arc::new(ExternalSigner::from_provider(provider, effective, settings, around)?));
    }
    // A pair of files is reread; a pair with a part in the kubeconfig is not (C163).
    let has_certificate = !user.client_certificate.is_empty() || !user.client_certificate_data.is_empty();
    let is_inline = !user.client_certificate_data.is_empty() || !user.client_key_data.is_empty();
    if has_certificate && !is_inline {
        let (certificate, key) = (user.client_certificate.clone().into(), user.client_key.clone().into());
        let pair = KeyPairFiles { certificate, key, files: Arc::clone(files) };
        let token = token_source(user, None, files, around)?;
        let token = token.unwrap_or_else(|| anonymous_with(None, unused_plugin(user)));
        return Ok(Arc::new(CertificateFiles::new(pair, token, Arc::clone(&around.clock))?));
    }
    let identity = if has_certificate { Some(inline_identity(user, files)?) } else { None };
    if let Some(source) = token_source(user, identity.clone(), files, around)? {
        return Ok(source);
    }
    if let Some(provider) = &user.auth_provider {
        return provider_source(provider, identity, files, around);
    }
    if identity.is_none()
        && let Some(plugin) = Plugin::from_effective(effective, &**files)?
    {
        return Ok(Arc::new(Authenticator::new(plugin, settings.clone(), around.clone())));
    }
    Ok(anonymous_with(identity, unused_plugin(user)))
}

/// The source for an auth provider: of those that client-go had, only `oidc` remains.
fn provider_source(
    provider: &AuthProviderConfig,
    identity: Option<Arc<ClientIdentity>>,
    files: &SharedFiles,
    around: &Surroundings,
) -> Result<Arc<dyn CredentialSource>, ChooseError> {
    let name = provider.name.clone();
    match provider.name.as_str() {
        "oidc" => Ok(Arc::new(Oidc::new(provider, identity, files, around, None)?)),
        "gcp" => Err(ChooseError::RemovedProvider { name, instead: "gke-gcloud-auth-plugin" }),
        "azure" => Err(ChooseError::RemovedProvider { name, instead: "kubelogin" }),
        _ => Err(ChooseError::Provider(name)),
    }
}

/// The source for a static token or password, combined with this certificate.
fn token_source(
    user: &AuthInfo,
    identity: Option<Arc<ClientIdentity>>,
    files: &SharedFiles,
    around: &Surroundings,
) -> Result<Option<Arc<dyn CredentialSource>>, ChooseError> {
    let hint = unused_plugin(user);
    let has_bearer = !user.token_file.is_empty() || !user.token.is_empty();
    if has_bearer && !user.username.is_empty() {
        return Err(ChooseError::BasicAndBearer);
    }
    let token = if has_bearer && !user.token.is_empty() { Some(header(&user.token)?) } else { None };
    if !user.token_file.is_empty() {
        let (path, clock) = (PathBuf::from(&user.token_file), Arc::clone(&around.clock));
        let source = TokenFile::new(path, token, identity, Arc::clone(files), clock, hint)?;
        return Ok(Some(Arc::new(source)));
    }
    let fixed = match token {
        None if !user.username.is_empty() => Some(basic(&user.username, &user.password)?),
        token => token,
    };
    Ok(fixed.map(|header| -> Arc<dyn CredentialSource> {
        Arc::new(StaticCredential::new(credential(Some(header), identity)).with_hint(hint))
    }))
}

fn anonymous_with(identity: Option<Arc<ClientIdentity>>, hint: Option<String>) -> Arc<dyn CredentialSource> {
    Arc::new(StaticCredential::new(credential(None, identity)).with_hint(hint))
}

fn credential(authorization: Option<HeaderValue>, identity: Option<Arc<ClientIdentity>>) -> Credential {
    Credential { generation: Generation::FIRST, authorization, identity, expires: None }
}

fn header(token: &Secret<String>) -> Result<HeaderValue, ChooseError> {
    bearer(token).map_err(|_: PluginOutputError| ChooseError::Token)
}

fn basic(name: &str, password: &Secret<String>) -> Result<HeaderValue, ChooseError> {
    let pair = Zeroizing::new(format!("{name}:{}", password.expose()));
    let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
    let mut value = HeaderValue::from_str(&value).map_err(|_| ChooseError::Basic)?;
    value.set_sensitive(true);
    Ok(value)
}

/// A pair of which at least one part is in the kubeconfig; data wins over a file.
// C163
fn inline_identity(user: &AuthInfo, files: &SharedFiles) -> Result<Arc<ClientIdentity>, ChooseError> {
    let read = |field, data: &[u8], path: &String| {
        if !data.is_empty() {
            return Ok(Zeroizing::new(data.to_vec()));
        }
        let unreadable =
            |source| ChooseError::Unreadable { field, path: path.clone(), source: Arc::new(source) };
        files.read(Path::new(path)).map(Zeroizing::new).map_err(unreadable)
    };
    let certificate = read("client-cert", &user.client_certificate_data, &user.client_certificate)?;
    let key = read("client-key", user.client_key_data.expose(), &user.client_key)?;
    Ok(Arc::new(ClientIdentity::from_pem(&certificate, &key)?))
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
mod tests;
