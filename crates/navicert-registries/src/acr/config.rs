//! The node's cloud configuration (`azure.json`), or the variables that stand in for it, and the cloud it means.
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

const METADATA: &str = "the custom cloud's metadata";

/// What the provider needs of the cloud configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloudConfig {
    /// The cloud's name; none for the public one.
    pub cloud: Option<String>,
    /// The tenant.
    pub tenant: Option<String>,
    /// A service principal.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<Secret<String>>,
    /// A token that proves to be it instead.
    pub federated_token_file: Option<String>,
    /// Whether the machine's own identity is used.
    pub managed_identity: bool,
    /// Which of the machine's identities.
    pub user_assigned_identity: Option<String>,
    /// Where a custom cloud describes itself.
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
    /// Reads the file; keys that are not needed here are nobody's business.
    ///
    /// # Errors
    /// If it cannot be read or is wrong.
    pub fn load(context: &ProviderContext, path: &Path) -> Result<Self, RegistryError> {
        let text = context.read_file(path)?;
        let wrong = |error: Diagnostics| RegistryError::File {
            path: path.to_owned(),
            what: error.to_string(),
            source: None,
        };
        let node =
            tree::parse(text.expose().as_bytes(), Syntax::JsonOrYaml).map_err(|error| wrong(error.into()))?;
        let config = decode::decode(&node, DecodeMode::Lenient).map_err(wrong)?;
        context.journal.note("config", format!("`{}`", path.display()));
        Ok(config)
    }

    /// The variables of Azure's own tools; without any, the machine's own identity.
    pub fn from_environment(context: &ProviderContext) -> Self {
        let variable = |name| context.variable(name).map(str::to_owned);
        let client_secret = variable("AZURE_CLIENT_SECRET").map(Secret::new);
        let federated_token_file = variable("AZURE_FEDERATED_TOKEN_FILE");
        let client_id = variable("AZURE_CLIENT_ID");
        let managed_identity = client_secret.is_none() && federated_token_file.is_none();
        context.journal.note("config", "the AZURE_ variables of the environment");
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

/// A cloud: where its tenants log in, and where its registries are.
#[derive(Clone, Debug)]
pub struct AzureCloud {
    /// Where tokens are asked for.
    pub authority: HttpUrl,
    /// Where registries are.
    pub suffixes: RegistrySuffixes,
}

impl AzureCloud {
    /// The cloud that a configuration means.
    ///
    /// # Errors
    /// If it is unknown, or does not describe itself.
    pub fn resolve(context: &ProviderContext, config: &CloudConfig) -> Result<Self, RegistryError> {
        let mut authority = known_authority(config.cloud.as_deref())?.map(str::to_owned);
        let mut suffixes = RegistrySuffixes::default();
        let described = [custom_cloud(context, config)?, environment_file(context)?];
        for CloudMetadata { login, registries } in described.into_iter().flatten() {
            authority = login.or(authority);
            suffixes = registries.map_or(suffixes.clone(), |suffix| suffixes.with_suffix(&suffix));
        }
        let authority = context.variable("AZURE_AUTHORITY_HOST").map(str::to_owned).or(authority);
        let unknown =
            || RegistryError::Environment("the cloud's name is unknown, and nothing describes it".to_owned());
        let text = authority.ok_or_else(unknown)?;
        let text = if text.contains("://") { text } else { format!("https://{text}") };
        let authority = HttpUrl::parse(&text)
            .map_err(|error| RegistryError::Environment(format!("where Azure's tenants log in: {error}")))?;
        Ok(AzureCloud { authority, suffixes })
    }
}

/// Where the tenants of the known clouds log in; nothing for a name that something else has to describe.
fn known_authority(cloud: Option<&str>) -> Result<Option<&'static str>, RegistryError> {
    let name = cloud.unwrap_or_default().to_ascii_uppercase();
    Ok(match name.as_str() {
        "" | "AZURECLOUD" | "AZUREPUBLICCLOUD" => Some("https://login.microsoftonline.com"),
        "AZUREUSGOVERNMENT" | "AZUREUSGOVERNMENTCLOUD" => Some("https://login.microsoftonline.us"),
        "AZURECHINACLOUD" => Some("https://login.chinacloudapi.cn"),
        _ => None,
    })
}

/// What a custom cloud says of itself.
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
        .map_err(|error| RegistryError::Environment(format!("resourceManagerEndpoint: {error}")))?;
    let mut url = url.join("/metadata/endpoints");
    url.target.push_str("?api-version=2019-05-01");
    let request = HttpRequest::new("GET", url);
    let reply = context.send(METADATA, &request)?;
    if reply.status != 200 {
        return Err(rejection(METADATA, &request, &reply, "", ""));
    }
    let wrong = RegistryError::Answer { service: METADATA, what: "what describes no cloud" };
    let clouds: Vec<Cloud> = serde_json::from_slice(reply.body.expose()).map_err(|_| wrong)?;
    let cloud = clouds.into_iter().next();
    let cloud = cloud.ok_or(RegistryError::Answer { service: METADATA, what: "no cloud at all" })?;
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
        what: "is no description of a cloud in JSON".to_owned(),
        source: None,
    })?;
    Ok(Some(CloudMetadata {
        login: file.active_directory_endpoint,
        registries: file.container_registry_dns_suffix,
    }))
}
