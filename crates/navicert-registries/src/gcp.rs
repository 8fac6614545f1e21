//! Google Artifact Registry and Container Registry: `auth-provider-gcp`, also called `gcp-credential-provider`.
//!
//! ```text
//! host ──▶ metadata   the node's token, for Google's hosts only
//!      ├─▶ federation the exchanged token of a service account
//!      └─▶ dockercfg  logins from the instance metadata
//! ```

mod dockercfg;
mod federation;
mod metadata;

use std::collections::BTreeSet;
use std::time::Duration;

use navicert_image::cache_key::CacheKeyType;
use navicert_types::Secret;
use navicert_types::image_credential::CredentialProviderRequest;

use crate::context::ProviderContext;
use crate::error::RegistryError;
use crate::host::{Host, authority, is_google};
use crate::lifetime::cache_duration_for;
use crate::provider::{Login, ProviderCredentials, RegistryProvider};

/// The annotation that enables pulls with the service account's own identity.
// I192
pub(crate) const ENABLE_ANNOTATION: &str = "iam.gke.io/enable-wi-image-pull";
const USERNAME: &str = "_token";
/// Keys of a globally cached response.
// I188
const GOOGLE_HOST_PATTERNS: [&str; 4] = ["container.cloud.google.com", "gcr.io", "*.gcr.io", "*.pkg.dev"];

/// The source of logins.
// I184
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AuthFlow {
    /// The node's access token.
    #[default]
    Gcr,
    /// The attribute `google-dockercfg`.
    Dockercfg,
    /// The URL in the attribute `google-dockercfg-url`.
    DockercfgUrl,
}

impl AuthFlow {
    /// Parses the flag's value.
    ///
    /// # Errors
    /// With upstream's message.
    pub(crate) fn parse(text: &str) -> Result<Self, RegistryError> {
        match text {
            "gcr" => Ok(AuthFlow::Gcr),
            "dockercfg" => Ok(AuthFlow::Dockercfg),
            "dockercfg-url" => Ok(AuthFlow::DockercfgUrl),
            _ => Err(RegistryError::Usage(format!(
                "invalid value \"{text}\" for authFlow (must be one of \"gcr\", \"dockercfg\", or \"dockercfg-url\")"
            ))),
        }
    }
}

/// Settings for exchanging service account tokens.
// I192
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Federation {
    /// The identity provider.
    pub identity_provider: String,
    /// The project.
    pub project: String,
}

/// The provider for Google's registries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gcp {
    /// The source of logins.
    pub flow: AuthFlow,
    /// Token exchange for service accounts, if configured.
    pub federation: Option<Federation>,
    /// Additional hosts that get the node's token, in lowercase and with their port.
    pub custom_hosts: BTreeSet<String>,
}

/// An access token.
#[derive(Clone, Debug)]
struct AccessToken {
    token: Secret<String>,
    /// Remaining lifetime.
    remaining: Option<Duration>,
}

impl RegistryProvider for Gcp {
    /// The credential key: the host as written in the image.
    type Registry = String;

    fn match_image(
        &self,
        context: &ProviderContext,
        image: &str,
    ) -> Result<Result<String, String>, RegistryError> {
        if self.flow != AuthFlow::Gcr {
            // The logins are keyed by host and do not involve the node's token.
            let host = image.split('/').next().unwrap_or_default();
            context
                .journal
                .note("registry", format!("`{host}`, from the docker configuration in the metadata"));
            return Ok(Ok(host.to_owned()));
        }
        let named = authority(image);
        if self.custom_hosts.contains(&named) {
            context.journal.note("registry", format!("`{named}`, configured with --registry-host"));
            return Ok(Ok(named));
        }
        let host = match Host::from_image(image) {
            Ok(host) => host,
            Err(error) => return Ok(Err(error.to_string())),
        };
        if is_google(&host) {
            context.journal.note("registry", format!("`{}`, a Google registry", host.name()));
            return Ok(Ok(host.key().to_owned()));
        }
        let advice = "add it with `--registry-host` to send it the node's token";
        Ok(Err(format!("`{}` is not a Google registry ({advice})", host.name())))
    }

    fn credentials(
        &self,
        context: &ProviderContext,
        registry: &String,
        request: &CredentialProviderRequest,
    ) -> Result<ProviderCredentials, RegistryError> {
        let key_type = configured_key_type(context)?;
        let wanted = configured_duration(context)?;
        if self.flow != AuthFlow::Gcr {
            let logins = dockercfg::logins(context, self.flow, registry, key_type)?;
            // Configured logins do not expire; the in-tree provider cached them for a minute.
            return Ok(ProviderCredentials {
                key_type,
                cache_for: wanted.unwrap_or(Duration::from_secs(60)),
                logins,
            });
        }
        let token = self.access_token(context, request)?;
        let safe = cache_duration_for(token.remaining);
        let cache_for = wanted.map_or(safe, |wanted| wanted.min(token.remaining.unwrap_or_default()));
        let keys: Vec<&str> = match key_type {
            CacheKeyType::Global => std::iter::once(registry.as_str()).chain(GOOGLE_HOST_PATTERNS).collect(),
            _ => vec![registry.as_str()],
        };
        let login = |key: &str| Login {
            key: key.to_owned(),
            username: USERNAME.to_owned(),
            password: token.token.clone(),
        };
        Ok(ProviderCredentials { key_type, cache_for, logins: keys.into_iter().map(login).collect() })
    }
}

impl Gcp {
    /// The node's token, or the service account's own token if its annotation enables that. There is no fallback.
    // I192
    fn access_token(
        &self,
        context: &ProviderContext,
        request: &CredentialProviderRequest,
    ) -> Result<AccessToken, RegistryError> {
        let enabled =
            request.service_account_annotations.get(ENABLE_ANNOTATION).is_some_and(|value| value == "true");
        match &self.federation {
            Some(federation) if enabled => {
                context.journal.note("identity", "exchanged token of the service account");
                federation::exchange(context, federation, &request.service_account_token)
            }
            _ => {
                context.journal.note("identity", "service account of this machine");
                metadata::token(context)
            }
        }
    }
}

// I185
fn configured_key_type(context: &ProviderContext) -> Result<CacheKeyType, RegistryError> {
    match context.variable("KUBE_SIDECAR_CACHE_TYPE") {
        None | Some("registry") => Ok(CacheKeyType::Registry),
        Some("image") => Ok(CacheKeyType::Image),
        Some("global") => Ok(CacheKeyType::Global),
        Some(_) => {
            let what = "KUBE_SIDECAR_CACHE_TYPE must be `image`, `registry` or `global`";
            Err(RegistryError::Environment(what.to_owned()))
        }
    }
}

// I185
fn configured_duration(context: &ProviderContext) -> Result<Option<Duration>, RegistryError> {
    let Some(text) = context.variable("KUBE_SIDECAR_CACHE_DURATION") else { return Ok(None) };
    let parsed = text.parse::<navicert_types::time::Duration>();
    let invalid =
        |what: String| RegistryError::Environment(format!("invalid KUBE_SIDECAR_CACHE_DURATION: {what}"));
    let duration = parsed.map_err(|error| invalid(error.to_string()))?;
    duration.to_std().map(Some).ok_or_else(|| invalid("must not be negative".to_owned()))
}
