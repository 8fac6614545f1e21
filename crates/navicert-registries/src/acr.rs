//! Azure Container Registry: `acr-credential-provider`.
//!
//! ```text
//! config ──▶ host ──▶ identity ──▶ challenge ──▶ exchange
//! azure.json (mirror)  AAD token    the registry's  refresh token
//! ```

mod challenge;
mod config;
mod exchange;
mod identity;
mod mirror;

use std::time::Duration;

use navicert_types::Secret;
use navicert_types::image_credential::CredentialProviderRequest;

pub use challenge::{Challenge, ChallengeError};
pub use config::{AzureCloud, CloudConfig};
pub use exchange::exchange_form;
pub use identity::{Identity, IdentityBindings};
pub use mirror::Mirrors;

use crate::context::Context;
use crate::error::ProviderError;
use crate::host::{AcrHost, Host};
use crate::provider::{Grant, Login, Provider};

/// What a service principal's login may be used for: every registry it has rights in (I207).
const EVERY_REGISTRY: [&str; 4] = ["*.azurecr.io", "*.azurecr.cn", "*.azurecr.de", "*.azurecr.us"];
/// Where a pull without a login may be tried at last (I208).
const ANYBODY: &str = "*.azurecr.*";
/// A service principal's secret does not say when it ends (I209).
const SECRET_KEPT: Duration = Duration::from_secs(3600);

/// The provider for Azure's registries.
#[derive(Clone, Debug, Default)]
pub struct Acr {
    /// The node's cloud configuration.
    pub config: CloudConfig,
    /// Registries that stand in for others.
    pub mirrors: Mirrors,
    /// How tokens are had through the API server, if they are.
    pub bindings: Option<IdentityBindings>,
}

/// A registry, and how it was asked for.
#[derive(Clone, Debug)]
pub struct AcrRegistry {
    /// The key: the host as the image has it, after mirrors.
    key: String,
    host: AcrHost,
    /// The host that the image named, if a mirror stands in for it.
    mirrored: Option<String>,
    cloud: AzureCloud,
}

impl Provider for Acr {
    type Registry = AcrRegistry;

    fn recognise(
        &self,
        context: &Context,
        image: &str,
    ) -> Result<Result<AcrRegistry, String>, ProviderError> {
        let (image, mirrored) = self.mirrors.apply(image);
        if let Some(source) = &mirrored {
            context.journal.note("mirror", format!("`{image}` stands in for `{source}`"));
        }
        let host = match Host::of_image(&image) {
            Ok(host) => host,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let cloud = AzureCloud::of(context, &self.config)?;
        let Some(found) = AcrHost::of(&host, &cloud.suffixes) else {
            return Ok(Err(format!("`{}` is no registry of Azure's", host.name())));
        };
        context.journal.note("registry", format!("ACR, login server `{}`", found.login_server));
        Ok(Ok(AcrRegistry { key: host.key().to_owned(), host: found, mirrored, cloud }))
    }

    fn grant(
        &self,
        context: &Context,
        registry: &AcrRegistry,
        request: &CredentialProviderRequest,
    ) -> Result<Grant, ProviderError> {
        let identity =
            Identity::choose(&self.config, self.bindings.as_ref(), registry.mirrored.is_some(), request)?;
        context.journal.note("identity", identity.to_string());
        let mut grant = match &identity {
            Identity::ServicePrincipal { client_id, secret } => {
                self.service_principal(registry, client_id, secret)
            }
            _ => {
                let token = identity.access_token(context, &registry.cloud)?;
                let refresh = exchange::refresh_token(context, &registry.host, &token, identity.tenant())?;
                Grant::one(&registry.key, exchange::USERNAME, refresh.token, refresh.cache_for)
            }
        };
        if let Some(source) = &registry.mirrored
            && let Some(login) = grant.logins.first().cloned()
        {
            grant.logins.push(Login { key: source.clone(), ..login });
        }
        let password = Secret::default();
        grant.logins.push(Login { key: ANYBODY.to_owned(), username: String::new(), password });
        Ok(grant)
    }
}

impl Acr {
    fn service_principal(&self, registry: &AcrRegistry, client_id: &str, secret: &Secret<String>) -> Grant {
        let known = EVERY_REGISTRY.map(str::to_owned).into_iter();
        let custom = registry.cloud.suffixes.iter().map(|suffix| format!("*.{suffix}"));
        let custom = custom.filter(|key| !EVERY_REGISTRY.contains(&key.as_str()));
        let login = |key: String| Login { key, username: client_id.to_owned(), password: secret.clone() };
        let mut grant = Grant::nothing();
        grant.cache_for = SECRET_KEPT;
        grant.logins = known.chain(custom).map(login).collect();
        grant
    }
}
