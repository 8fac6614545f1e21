//! The request path of all three providers: request → registry → identity → token → response.

use std::time::Duration;

use navicert_image::author::ResponseBuilder;
use navicert_image::cache_key::CacheKeyType;
use navicert_types::Secret;
use navicert_types::image_credential::CredentialProviderRequest;

use crate::context::ProviderContext;
use crate::error::RegistryError;

/// One cloud's provider.
///
/// [`match_image`](Self::match_image) decides whether an image belongs to the provider; no request is sent before that.
pub(crate) trait RegistryProvider {
    /// A registry of this provider.
    type Registry: std::fmt::Debug;

    /// The registry of an image, or why it does not belong to this provider.
    ///
    /// # Errors
    /// If this cannot be determined.
    fn match_image(
        &self,
        context: &ProviderContext,
        image: &str,
    ) -> Result<Result<Self::Registry, String>, RegistryError>;

    /// Gets the credentials for a registry.
    ///
    /// # Errors
    /// [`RegistryError`].
    fn credentials(
        &self,
        context: &ProviderContext,
        registry: &Self::Registry,
        request: &CredentialProviderRequest,
    ) -> Result<ProviderCredentials, RegistryError>;
}

/// The credentials returned by a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProviderCredentials {
    /// The cache scope.
    pub key_type: CacheKeyType,
    /// The cache duration.
    pub cache_for: Duration,
    /// The credentials.
    pub logins: Vec<Login>,
}

/// A user name and a password with their key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Login {
    /// A host or host pattern.
    pub key: String,
    /// The user name.
    pub username: String,
    /// The password.
    pub password: Secret<String>,
}

impl ProviderCredentials {
    /// No credentials and no caching, for images of other registries.
    // I168, I200
    pub(crate) fn none() -> Self {
        ProviderCredentials {
            key_type: CacheKeyType::Registry,
            cache_for: Duration::ZERO,
            logins: Vec::new(),
        }
    }

    /// One credential for one registry.
    // I218
    pub(crate) fn single(key: &str, username: &str, password: Secret<String>, cache_for: Duration) -> Self {
        let login = Login { key: key.to_owned(), username: username.to_owned(), password };
        ProviderCredentials { key_type: CacheKeyType::Registry, cache_for, logins: vec![login] }
    }

    /// Converts to a response for the kubelet.
    ///
    /// # Errors
    /// If a key is invalid.
    pub(crate) fn into_response(self) -> Result<ResponseBuilder, RegistryError> {
        let empty = ResponseBuilder::new(self.key_type).cache_for(self.cache_for);
        let add = |response: ResponseBuilder, login: Login| {
            response.credential(login.key, login.username, login.password)
        };
        Ok(self.logins.into_iter().try_fold(empty, add)?)
    }
}

/// Handles a request: matches the image and gets its credentials.
///
/// # Errors
/// [`RegistryError`].
pub(crate) fn provide<P: RegistryProvider>(
    provider: &P,
    context: &ProviderContext,
    request: &CredentialProviderRequest,
) -> Result<ProviderCredentials, RegistryError> {
    context.journal.note("image", format!("`{}`", request.image));
    let credentials = match provider.match_image(context, &request.image)? {
        Err(why) => {
            context.journal.warn(format!("no credentials for `{}`: {why}", request.image));
            ProviderCredentials::none()
        }
        Ok(registry) => provider.credentials(context, &registry, request)?,
    };
    for login in &credentials.logins {
        let user = if login.username.is_empty() { "anonymous" } else { &login.username };
        context.journal.note("credential", format!("for `{}`: user `{user}`", login.key));
    }
    let duration = navicert_types::time::Duration::from(credentials.cache_for);
    context.journal.note("cache", format!("by {}, for {duration}", credentials.key_type.as_str()));
    Ok(credentials)
}

#[cfg(test)]
mod tests;
