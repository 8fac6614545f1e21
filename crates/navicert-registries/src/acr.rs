//! Azure Container Registry: `acr-credential-provider`.
//!
//! ```text
//! config ──▶ host ──▶ identity ──▶ challenge ──▶ exchange
//! azure.json (mirror)  Entra token  of the registry  refresh token
//! ```

mod challenge;
mod config;
mod exchange;
mod identity;
mod mirror;

use std::time::Duration;

use navicert_types::Secret;
use navicert_types::image_credential::CredentialProviderRequest;

pub(crate) use config::{AzureCloud, CloudConfig};
pub(crate) use identity::{AzureIdentity, IdentityBindings};
pub(crate) use mirror::Mirrors;

use crate::context::ProviderContext;
use crate::error::RegistryError;
use crate::host::{AcrHost, Host};
use crate::provider::{Login, ProviderCredentials, RegistryProvider};

/// Keys for a service principal's credential, which is valid for every registry it has access to.
// I207
const ALL_REGISTRY_PATTERNS: [&str; 4] = ["*.azurecr.io", "*.azurecr.cn", "*.azurecr.de", "*.azurecr.us"];
/// Key of the anonymous credential, which is tried last.
// I208
const ANONYMOUS_PATTERN: &str = "*.azurecr.*";
/// Cache duration of a service principal's secret, whose expiry is unknown.
// I209
const CLIENT_SECRET_CACHE_DURATION: Duration = Duration::from_secs(3600);

/// The provider for Azure Container Registry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acr {
    /// The node's cloud configuration.
    pub config: CloudConfig,
    /// Mirrors of other registries.
    pub mirrors: Mirrors,
    /// Identity bindings, if tokens are requested through the API server.
    pub bindings: Option<IdentityBindings>,
}

/// A registry of an image.
#[derive(Clone, Debug)]
pub(crate) struct AcrRegistry {
    /// The credential key: the host as written in the image, after applying mirrors.
    key: String,
    host: AcrHost,
    /// The host in the image, if a mirror replaces it.
    mirrored: Option<String>,
    cloud: AzureCloud,
}

impl RegistryProvider for Acr {
    type Registry = AcrRegistry;

    fn match_image(
        &self,
        context: &ProviderContext,
        image: &str,
    ) -> Result<Result<AcrRegistry, String>, RegistryError> {
        let (image, mirrored) = self.mirrors.apply(image);
        if let Some(source) = &mirrored {
            context.journal.note("mirror", format!("`{image}` mirrors `{source}`"));
        }
        let host = match Host::from_image(&image) {
            Ok(host) => host,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let cloud = AzureCloud::resolve(context, &self.config)?;
        let Some(found) = AcrHost::from_host(&host, &cloud.suffixes) else {
            return Ok(Err(format!("`{}` is not an Azure Container Registry host", host.name())));
        };
        context.journal.note("registry", format!("ACR, login server `{}`", found.login_server));
        Ok(Ok(AcrRegistry { key: host.key().to_owned(), host: found, mirrored, cloud }))
    }

    fn credentials(
        &self,
        context: &ProviderContext,
        registry: &AcrRegistry,
        request: &CredentialProviderRequest,
    ) -> Result<ProviderCredentials, RegistryError> {
        let identity = AzureIdentity::select(
            &self.config,
            self.bindings.as_ref(),
            registry.mirrored.is_some(),
            request,
        )?;
        context.journal.note("identity", identity.to_string());
        let mut credentials = match &identity {
            AzureIdentity::ServicePrincipal { client_id, secret } => {
                self.service_principal(registry, client_id, secret)
            }
            _ => {
                let token = identity.access_token(context, &registry.cloud)?;
                let refresh = exchange::refresh_token(context, &registry.host, &token, identity.tenant())?;
                ProviderCredentials::single(
                    &registry.key,
                    exchange::USERNAME,
                    refresh.token,
                    refresh.cache_for,
                )
            }
        };
        if let Some(source) = &registry.mirrored
            && let Some(login) = credentials.logins.first().cloned()
        {
            credentials.logins.push(Login { key: source.clone(), ..login });
        }
        let password = Secret::default();
        credentials.logins.push(Login {
            key: ANONYMOUS_PATTERN.to_owned(),
            username: String::new(),
            password,
        });
        Ok(credentials)
    }
}

impl Acr {
    fn service_principal(
        &self,
        registry: &AcrRegistry,
        client_id: &str,
        secret: &Secret<String>,
    ) -> ProviderCredentials {
        let known = ALL_REGISTRY_PATTERNS.map(str::to_owned).into_iter();
        let custom = registry.cloud.suffixes.iter().map(|suffix| format!("*.{suffix}"));
        let custom = custom.filter(|key| !ALL_REGISTRY_PATTERNS.contains(&key.as_str()));
        let login = |key: String| Login { key, username: client_id.to_owned(), password: secret.clone() };
        let mut credentials = ProviderCredentials::none();
        credentials.cache_for = CLIENT_SECRET_CACHE_DURATION;
        credentials.logins = known.chain(custom).map(login).collect();
        credentials
    }
}
