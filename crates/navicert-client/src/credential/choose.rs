//! Which source wins when a user has several (client-credentials.md C160–C168, C470).

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

use super::certificate_files::{CertificateFiles, PairFiles};
use super::fixed::Fixed;
use super::hardware_key::{HardwareKey, SignerConfigError};
use super::oidc::{Oidc, OidcError};
use super::token_file::{TokenFile, TokenFileError};
use super::{Credential, CredentialSource, Generation, Identity, IdentityError, SharedFiles};
use crate::exec::response::{ResponseError, bearer};
use crate::exec::{Authenticator, ExecError, Plugin, Settings, Surroundings};
use crate::kubeconfig::Effective;

/// Why no source can be made of what was selected.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ChooseError {
    /// A password and a token.
    #[error("username/password or bearer token may be set, but not both")]
    BasicAndBearer,
    /// A plugin and a provider.
    #[error("execProvider and authProvider cannot be used in combination")]
    ExecAndProvider,
    /// A provider that is not built in (C165).
    #[error("no Auth Provider found for name {0:?}")]
    Provider(String),
    /// A provider that was removed from Kubernetes (C165).
    #[error("auth-provider {name:?} has been removed from Kubernetes; use the exec plugin `{instead}`")]
    RemovedProvider {
        /// `gcp` or `azure`.
        name: String,
        /// The exec plugin that took its place.
        instead: &'static str,
    },
    /// The provider's section is of no use.
    #[error(transparent)]
    Oidc(#[from] OidcError),
    /// The token cannot be sent.
    #[error("the token cannot be sent: it holds control characters or is surrounded by white space")]
    Token,
    /// The name and password cannot be sent.
    #[error("the username or password cannot be sent")]
    Basic,
    /// A certificate or key file cannot be read.
    #[error("unable to read {field} {path}")]
    Unreadable {
        /// `client-cert` or `client-key`.
        field: &'static str,
        /// The file.
        path: String,
        /// The operating system's word.
        source: Arc<std::io::Error>,
    },
    /// The certificate and key are no pair.
    #[error("client certificate: {0}")]
    Identity(#[from] IdentityError),
    /// The token file gives none.
    #[error(transparent)]
    TokenFile(#[from] TokenFileError),
    /// The plugin cannot be used.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The external signer cannot be used.
    #[error(transparent)]
    Signer(#[from] SignerConfigError),
}

/// The one source that counts for what was selected. Nothing is run.
///
/// A static credential (token, token file, password, or certificate with key) keeps the plugin out altogether, also
/// when it is turned down; the hint then says so (C167, C168). A bearer token and a certificate go together. Over plain
/// http there is no credential at all (C160).
///
/// # Errors
/// [`ChooseError`]: combinations that are not allowed, and files that cannot be used.
pub fn choose(
    effective: &Effective,
    files: &SharedFiles,
    settings: &Settings,
    around: &Surroundings,
) -> Result<Arc<dyn CredentialSource>, ChooseError> {
    if !effective.is_https() {
        return Ok(Arc::new(Fixed::new(Credential::anonymous())));
    }
    let user = &effective.user;
    if user.exec.is_some() && user.auth_provider.is_some() {
        return Err(ChooseError::ExecAndProvider);
    }
    if let Some(provider) = user.auth_provider.as_ref().filter(|provider| provider.name == PROVIDER) {
        return Ok(Arc::new(HardwareKey::of(provider, effective, settings, around)?));
    }
    // A pair of files is read again and again; a pair of which a part is in the kubeconfig is not (C163).
    let has_certificate = !user.client_certificate.is_empty() || !user.client_certificate_data.is_empty();
    let is_inline = !user.client_certificate_data.is_empty() || !user.client_key_data.is_empty();
    if has_certificate && !is_inline {
        let (certificate, key) = (user.client_certificate.clone().into(), user.client_key.clone().into());
        let pair = PairFiles { certificate, key, files: Arc::clone(files) };
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
        && let Some(plugin) = Plugin::of(effective, &**files)?
    {
        return Ok(Arc::new(Authenticator::new(plugin, settings.clone(), around.clone())));
    }
    Ok(anonymous_with(identity, unused_plugin(user)))
}

/// Of the providers that client-go once had, one is left.
fn provider_source(
    provider: &AuthProviderConfig,
    identity: Option<Arc<Identity>>,
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

/// The source of whatever static token or password there is, with this certificate.
fn token_source(
    user: &AuthInfo,
    identity: Option<Arc<Identity>>,
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
        Arc::new(Fixed::new(credential(Some(header), identity)).with_hint(hint))
    }))
}

fn anonymous_with(identity: Option<Arc<Identity>>, hint: Option<String>) -> Arc<dyn CredentialSource> {
    Arc::new(Fixed::new(credential(None, identity)).with_hint(hint))
}

fn credential(authorization: Option<HeaderValue>, identity: Option<Arc<Identity>>) -> Credential {
    Credential { generation: Generation::FIRST, authorization, identity, expires: None }
}

fn header(token: &Secret<String>) -> Result<HeaderValue, ChooseError> {
    bearer(token).map_err(|_: ResponseError| ChooseError::Token)
}

fn basic(name: &str, password: &Secret<String>) -> Result<HeaderValue, ChooseError> {
    let pair = Zeroizing::new(format!("{name}:{}", password.expose()));
    let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
    let mut value = HeaderValue::from_str(&value).map_err(|_| ChooseError::Basic)?;
    value.set_sensitive(true);
    Ok(value)
}

/// A pair of which at least a part is in the kubeconfig; data wins over a file (C163).
fn inline_identity(user: &AuthInfo, files: &SharedFiles) -> Result<Arc<Identity>, ChooseError> {
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
    Ok(Arc::new(Identity::from_pem(&certificate, &key)?))
}

/// C168: an expired token next to a plugin is a 401 for ever, and nothing else says why.
fn unused_plugin(user: &AuthInfo) -> Option<String> {
    let exec = user.exec.as_ref()?;
    Some(format!(
        "the user has a static credential next to the exec plugin `{}`, which is therefore never run; remove the \
         static credential to use the plugin",
        navicert_types::redact::terminal(&exec.command)
    ))
}

#[cfg(test)]
mod tests;
