//! The node's cloud configuration (`azure.json`) or the equivalent environment variables, and the cloud it selects.
// I195, I196

use std::path::Path;

use navicert_types::decode::{self, Decode, DecodeMode, Decoder};
use navicert_types::tree::{self, Node, Syntax};
use navicert_types::{Diagnostics, Secret};
use serde::Deserialize;

use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::host::RegistrySuffixes;
use crate::http::{HttpRequest, HttpUrl};

const METADATA: &str = "the custom cloud's metadata endpoint";

/// The fields of the cloud configuration that the provider uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CloudConfig {
    /// Cloud name; `None` for the public cloud.
    pub cloud: Option<String>,
    /// The tenant.
    pub tenant: Option<String>,
    /// The client ID of a service principal.
    pub client_id: Option<String>,
    /// The client secret.
    pub client_secret: Option<Secret<String>>,
    /// File with a token that authenticates the service principal instead of a secret.
    pub federated_token_file: Option<String>,
    /// Whether to use the machine's managed identity.
    pub managed_identity: bool,
    /// Which managed identity, if the machine has several.
    pub user_assigned_identity: Option<String>,
    /// Resource manager endpoint of a custom cloud, which serves its metadata.
    pub resource_manager: Option<String>,
}

impl Decode for CloudConfig {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        decoder.object(node, |fields| CloudConfig {
            cloud: given(fields.default("cloud")),
            tenant: given(fields.default("tenantId")),
            client_id: given(fields.default("aadClientId")),
            client_secret: Some(fields.default("aadClientSecret"))
                .filter(|secret: &Secret<String>| !secret.is_empty()),
            federated_token_file: given(fields.default("aadFederatedTokenFile")),
            managed_identity: fields.default("useManagedIdentityExtension"),
            user_assigned_identity: given(fields.default("userAssignedIdentityID")),
            resource_manager: given(fields.default("resourceManagerEndpoint")),
        })
    }
}

impl CloudConfig {
    /// Reads the file; ignores unknown keys.
    ///
    /// # Errors
    /// If it cannot be read or is invalid.
    pub(crate) fn load(context: &ProviderContext, path: &Path) -> Result<Self, RegistryError> {
        let text = context.read_file(path)?;
        let invalid = |error: Diagnostics| RegistryError::File {
            path: path.to_owned(),
            what: error.to_string(),
            source: None,
        };
        let node = tree::parse(text.expose().as_bytes(), Syntax::JsonOrYaml)
            .map_err(|error| invalid(error.into()))?;
        let config = decode::decode(&node, DecodeMode::Lenient).map_err(invalid)?;
        context.journal.note("config", format!("`{}`", path.display()));
        Ok(config)
    }

    /// Reads the environment variables of Azure's own tools; without any, uses the machine's managed identity.
    pub(crate) fn from_environment(context: &ProviderContext) -> Self {
        let variable = |name| context.variable(name).map(str::to_owned);
        let client_secret = variable("AZURE_CLIENT_SECRET").map(Secret::new);
        let federated_token_file = variable("AZURE_FEDERATED_TOKEN_FILE");
        let client_id = variable("AZURE_CLIENT_ID");
        let managed_identity = client_secret.is_none() && federated_token_file.is_none();
        context.journal.note("config", "AZURE_ environment variables");
        CloudConfig {
            cloud: variable("AZURE_ENVIRONMENT"),
            tenant: variable("AZURE_TENANT_ID"),
            user_assigned_identity: client_id.clone().filter(|_| managed_identity),
            client_id,
            client_secret,
            federated_token_file,
            managed_identity,
            resource_manager: None,
        }
    }
}

/// An Azure cloud: its login endpoint and its registry suffixes.
#[derive(Clone, Debug)]
pub(crate) struct AzureCloud {
    /// Login endpoint.
    pub authority: HttpUrl,
    /// Domain suffixes of registries.
    pub suffixes: RegistrySuffixes,
}

impl AzureCloud {
    /// Resolves the cloud of a configuration.
    ///
    /// # Errors
    /// If the cloud is unknown, or its metadata is missing or invalid.
    pub(crate) fn resolve(context: &ProviderContext, config: &CloudConfig) -> Result<Self, RegistryError> {
        let mut authority = known_authority(config.cloud.as_deref())?.map(str::to_owned);
        let mut suffixes = RegistrySuffixes::default();
        let metadata = [custom_cloud(context, config)?, environment_file(context)?];
        for CloudMetadata { login, registries } in metadata.into_iter().flatten() {
            authority = login.or(authority);
            suffixes = registries.map_or(suffixes.clone(), |suffix| suffixes.with_suffix(&suffix));
        }
        let authority = context.variable("AZURE_AUTHORITY_HOST").map(str::to_owned).or(authority);
        let unknown = || {
            RegistryError::Environment("unknown cloud name, and no cloud metadata is configured".to_owned())
        };
        let text = authority.ok_or_else(unknown)?;
        let text = if text.contains("://") { text } else { format!("https://{text}") };
        let authority = HttpUrl::parse(&text)
            .map_err(|error| RegistryError::Environment(format!("invalid Azure login endpoint: {error}")))?;
        Ok(AzureCloud { authority, suffixes })
    }
}

/// Login endpoint of a known cloud; `None` for a custom cloud, which needs metadata.
fn known_authority(cloud: Option<&str>) -> Result<Option<&'static str>, RegistryError> {
    let name = cloud.unwrap_or_default().to_ascii_uppercase();
    Ok(match name.as_str() {
        "" | "AZURECLOUD" | "AZUREPUBLICCLOUD" => Some("https://login.microsoftonline.com"),
        "AZUREUSGOVERNMENT" | "AZUREUSGOVERNMENTCLOUD" => Some("https://login.microsoftonline.us"),
        "AZURECHINACLOUD" => Some("https://login.chinacloudapi.cn"),
        _ => None,
    })
}

/// Metadata of a custom cloud.
struct CloudMetadata {
    login: Option<String>,
    registries: Option<String>,
}

fn custom_cloud(
    context: &ProviderContext,
    config: &CloudConfig,
) -> Result<Option<CloudMetadata>, RegistryError> {
    #[derive(Deserialize)]
    struct Cloud {
        authentication: Option<Authentication>,
        suffixes: Option<Suffixes>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Authentication {
        login_endpoint: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Suffixes {
        #[serde(alias = "acrLoginServerEndpoint")]
        acr_login_server: Option<String>,
    }
    let Some(text) = &config.resource_manager else { return Ok(None) };
    let url = HttpUrl::parse(text)
        .map_err(|error| RegistryError::Environment(format!("invalid resourceManagerEndpoint: {error}")))?;
    let mut url = url.join("/metadata/endpoints");
    url.target.push_str("?api-version=2019-05-01");
    let request = HttpRequest::new("GET", url);
    let response = context.send(METADATA, &request)?;
    if response.status != 200 {
        return Err(rejection(METADATA, &request, &response, "", ""));
    }
    let invalid = RegistryError::InvalidResponse { service: METADATA, what: "malformed cloud metadata" };
    let clouds: Vec<Cloud> = serde_json::from_slice(response.body.expose()).map_err(|_| invalid)?;
    let cloud = clouds.into_iter().next();
    let cloud =
        cloud.ok_or(RegistryError::InvalidResponse { service: METADATA, what: "empty list of clouds" })?;
    Ok(Some(CloudMetadata {
        login: cloud.authentication.and_then(|authentication| authentication.login_endpoint),
        registries: cloud.suffixes.and_then(|suffixes| suffixes.acr_login_server),
    }))
}

fn environment_file(context: &ProviderContext) -> Result<Option<CloudMetadata>, RegistryError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct File {
        active_directory_endpoint: Option<String>,
        #[serde(rename = "containerRegistryDNSSuffix")]
        container_registry_dns_suffix: Option<String>,
    }
    let Some(path) = context.variable("AZURE_ENVIRONMENT_FILEPATH") else { return Ok(None) };
    let text = context.read_file(Path::new(path))?;
    let file: File = serde_json::from_str(text.expose()).map_err(|_| RegistryError::File {
        path: path.into(),
        what: "not a JSON cloud description".to_owned(),
        source: None,
    })?;
    Ok(Some(CloudMetadata {
        login: file.active_directory_endpoint,
        registries: file.container_registry_dns_suffix,
    }))
}
