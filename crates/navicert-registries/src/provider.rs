//! The spine of all three providers: request → registry → credentials → token → response.

use std::time::Duration;

use navicert_image::author::ResponseBuilder;
use navicert_image::cache_key::CacheKeyType;
use navicert_types::Secret;
use navicert_types::image_credential::CredentialProviderRequest;

use crate::context::ProviderContext;
use crate::error::RegistryError;

/// One cloud's provider.
///
/// [`recognise`](Self::recognise) decides alone whether an image is its own; only then is anything asked of anybody.
pub trait RegistryProvider {
    /// A registry of its own.
    type Registry: std::fmt::Debug;

    /// The registry an image is in, or in plain words why it is not this provider's.
    ///
    /// # Errors
    /// If that cannot be decided.
    fn match_image(
        &self,
        context: &ProviderContext,
        image: &str,
    ) -> Result<Result<Self::Registry, String>, RegistryError>;

    /// Credentials for a registry.
    ///
    /// # Errors
    /// [`ProviderError`].
    fn credentials(
        &self,
        context: &ProviderContext,
        registry: &Self::Registry,
        request: &CredentialProviderRequest,
    ) -> Result<ProviderCredentials, RegistryError>;
}

/// What a provider hands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderCredentials {
    /// What the answer is good for.
    pub key_type: CacheKeyType,
    /// How long it may be remembered.
    pub cache_for: Duration,
    /// The credentials.
    pub logins: Vec<Login>,
}

/// A user name and a password, and where they belong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// A host, or a pattern over hosts.
    pub key: String,
    /// The user name.
    pub username: String,
    /// The password.
    pub password: Secret<String>,
}

impl ProviderCredentials {
    /// No credentials, not remembered: the image is somebody else's.
    // I168, I200
    pub fn none() -> Self {
        ProviderCredentials {
            key_type: CacheKeyType::Registry,
            cache_for: Duration::ZERO,
            logins: Vec::new(),
        }
    }

    /// One credential for one registry, which is what all three clouds have.
    // I218
    pub fn single(key: &str, username: &str, password: Secret<String>, cache_for: Duration) -> Self {
        let login = Login { key: key.to_owned(), username: username.to_owned(), password };
        ProviderCredentials { key_type: CacheKeyType::Registry, cache_for, logins: vec![login] }
    }

    /// As a response for the kubelet.
    ///
    /// # Errors
    /// If a key could not be one.
    pub fn into_response(self) -> Result<ResponseBuilder, RegistryError> {
        let empty = ResponseBuilder::new(self.key_type).cache_for(self.cache_for);
        let add = |response: ResponseBuilder, login: Login| {
            response.credential(login.key, login.username, login.password)
        };
        Ok(self.logins.into_iter().try_fold(empty, add)?)
    }
}

/// The spine.
///
/// # Errors
/// [`ProviderError`].
pub fn provide<P: RegistryProvider>(
    provider: &P,
    context: &ProviderContext,
    request: &CredentialProviderRequest,
) -> Result<ProviderCredentials, RegistryError> {
    context.journal.note("image", format!("`{}`", request.image));
    let grant = match provider.match_image(context, &request.image)? {
        Err(why) => {
            context.journal.warn(format!("no credentials for `{}`: {why}", request.image));
            ProviderCredentials::none()
        }
        Ok(registry) => provider.credentials(context, &registry, request)?,
    };
    for login in &grant.logins {
        let user = if login.username.is_empty() { "anonymous" } else { &login.username };
        context.journal.note("credential", format!("for `{}`: user `{user}`", login.key));
    }
    let kept = navicert_types::time::Duration::from(grant.cache_for);
    context.journal.note("cache", format!("by {}, for {kept}", grant.key_type.as_str()));
    Ok(grant)
}
