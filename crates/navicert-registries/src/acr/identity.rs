//! Selects the Azure identity of a request and gets its access token.
// I201–I203

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use navicert_types::Secret;
use navicert_types::image_credential::CredentialProviderRequest;
use serde::Deserialize;

use super::config::{AzureCloud, CloudConfig};
use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::form::Form;
use crate::http::{HttpRequest, HttpResponse, HttpUrl};
use crate::machine::Cloud;

const CLIENT_ANNOTATION: &str = "kubernetes.azure.com/acr-client-id";
const TENANT_ANNOTATION: &str = "kubernetes.azure.com/acr-tenant-id";
const RESOURCE: &str = "https://containerregistry.azure.net";
const METADATA_SERVICE: &str = "the Azure metadata server";
const ENTRA_SERVICE: &str = "Microsoft Entra ID";
const BINDINGS_SERVICE: &str = "the identity-binding endpoint";
const DEFAULT_METADATA_URL: &str = "http://169.254.169.254";
/// The cluster's certificate authority on an AKS node.
const DEFAULT_CA_FILE: &str = "/etc/kubernetes/certs/ca.crt";

/// AKS identity bindings: tokens are requested through the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IdentityBindings {
    /// Server name (SNI) of the endpoint.
    pub server_name: String,
    /// IP address of the API server.
    pub address: IpAddr,
    /// Client ID if the service account names none.
    pub default_client: Option<String>,
    /// Tenant if the service account names none.
    pub default_tenant: Option<String>,
    /// The cluster's certificate authority file.
    pub authority: PathBuf,
}

impl IdentityBindings {
    /// Bindings with the default certificate authority.
    pub(crate) fn new(server_name: String, address: IpAddr) -> Self {
        let authority = PathBuf::from(DEFAULT_CA_FILE);
        IdentityBindings { server_name, address, default_client: None, default_tenant: None, authority }
    }
}

/// The identity that authenticates to the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AzureIdentity {
    /// A managed identity of the machine.
    Managed {
        /// Client ID or resource ID, if the machine has several.
        which: Option<String>,
        /// The tenant of the configuration.
        tenant: Option<String>,
    },
    /// An application that authenticates with a token of a federated issuer.
    Federated {
        /// The client ID of the application.
        client_id: String,
        /// Its tenant.
        tenant: String,
        /// The federated token.
        assertion: ClientAssertion,
    },
    /// A service account's identity, through the API server.
    Bound {
        /// The client ID.
        client_id: String,
        /// Its tenant.
        tenant: Option<String>,
        /// The service account's token.
        token: Secret<String>,
        /// The endpoint.
        bindings: IdentityBindings,
    },
    /// A client ID and secret that the registry accepts directly.
    // I207
    ServicePrincipal {
        /// The client ID.
        client_id: String,
        /// The secret.
        secret: Secret<String>,
    },
}

/// A token that authenticates an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientAssertion {
    /// The service account's token.
    ServiceAccount(Secret<String>),
    /// A mounted token file.
    File(PathBuf),
}

impl AzureIdentity {
    /// Selects the identity. Unlike upstream, a service account's token is never ignored: it is used, or an error.
    ///
    /// # Errors
    /// If no identity is configured.
    // I201, I202
    pub(crate) fn select(
        config: &CloudConfig,
        bindings: Option<&IdentityBindings>,
        mirrored: bool,
        request: &CredentialProviderRequest,
    ) -> Result<Self, RegistryError> {
        let token = &request.service_account_token;
        let annotation = |name: &str| {
            request.service_account_annotations.get(name).cloned().filter(|value| !value.is_empty())
        };
        let missing = |name: &str| {
            RegistryError::ServiceAccount(format!("service account is missing annotation `{name}`"))
        };
        if let (Some(bindings), false) = (bindings, mirrored) {
            if token.is_empty() {
                let what = "identity bindings require a service account token, but the kubelet sent none";
                return Err(RegistryError::ServiceAccount(what.to_owned()));
            }
            let client_id = annotation(CLIENT_ANNOTATION).or_else(|| bindings.default_client.clone());
            return Ok(AzureIdentity::Bound {
                client_id: client_id.ok_or_else(|| missing(CLIENT_ANNOTATION))?,
                tenant: annotation(TENANT_ANNOTATION)
                    .or_else(|| bindings.default_tenant.clone())
                    .or_else(|| config.tenant.clone()),
                token: token.clone(),
                bindings: bindings.clone(),
            });
        }
        if !token.is_empty() && !mirrored {
            return Ok(AzureIdentity::Federated {
                client_id: annotation(CLIENT_ANNOTATION).ok_or_else(|| missing(CLIENT_ANNOTATION))?,
                tenant: annotation(TENANT_ANNOTATION).ok_or_else(|| missing(TENANT_ANNOTATION))?,
                assertion: ClientAssertion::ServiceAccount(token.clone()),
            });
        }
        AzureIdentity::from_node_config(config)
    }

    fn from_node_config(config: &CloudConfig) -> Result<Self, RegistryError> {
        if config.managed_identity {
            return Ok(AzureIdentity::Managed {
                which: config.user_assigned_identity.clone(),
                tenant: config.tenant.clone(),
            });
        }
        let (client_id, tenant) = (config.client_id.clone(), config.tenant.clone());
        if let (Some(client_id), Some(file)) = (&client_id, &config.federated_token_file) {
            let tenant = tenant.ok_or_else(|| no_identity("federated token without a tenant"))?;
            return Ok(AzureIdentity::Federated {
                client_id: client_id.clone(),
                tenant,
                assertion: ClientAssertion::File(file.into()),
            });
        }
        match (client_id, config.client_secret.clone()) {
            (Some(client_id), Some(secret)) => Ok(AzureIdentity::ServicePrincipal { client_id, secret }),
            _ => Err(no_identity(
                "neither useManagedIdentityExtension nor aadClientId with aadClientSecret is configured",
            )),
        }
    }

    /// The tenant of the token exchange.
    pub(crate) fn tenant(&self) -> &str {
        match self {
            AzureIdentity::Managed { tenant, .. } | AzureIdentity::Bound { tenant, .. } => {
                tenant.as_deref().unwrap_or_default()
            }
            AzureIdentity::Federated { tenant, .. } => tenant,
            AzureIdentity::ServicePrincipal { .. } => "",
        }
    }

    /// Requests this identity's access token for Azure registries.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub(super) fn access_token(
        &self,
        context: &ProviderContext,
        cloud: &AzureCloud,
    ) -> Result<Secret<String>, RegistryError> {
        match self {
            AzureIdentity::Managed { which, .. } => managed_identity_token(context, which.as_deref()),
            AzureIdentity::Federated { client_id, tenant, assertion: proof } => {
                let token = match proof {
                    ClientAssertion::ServiceAccount(token) => token.clone(),
                    ClientAssertion::File(path) => context.read_file(path)?,
                };
                if !is_tenant(tenant) {
                    return Err(RegistryError::ServiceAccount(format!("invalid tenant `{tenant}`")));
                }
                let url = cloud.authority.join(&format!("/{tenant}/oauth2/v2.0/token"));
                request_token(context, ENTRA_SERVICE, &assertion_form(client_id, &token).request(url))
            }
            AzureIdentity::Bound { client_id, token, bindings, .. } => {
                let url = HttpUrl::parse(&format!("https://{}", bindings.server_name))
                    .map_err(|error| RegistryError::Usage(format!("invalid --ib-sni-name: {error}")))?;
                let request = HttpRequest {
                    direct: true,
                    connect_to: Some(bindings.address),
                    authorities: Some(bindings.authority.clone()),
                    ..assertion_form(client_id, token).request(url)
                };
                request_token(context, BINDINGS_SERVICE, &request)
            }
            AzureIdentity::ServicePrincipal { .. } => {
                Err(no_identity("service principals do not use access tokens"))
            }
        }
    }
}

/// Names only, never a secret.
impl fmt::Display for AzureIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AzureIdentity::Managed { which: None, .. } => write!(f, "managed identity of this machine"),
            AzureIdentity::Managed { which: Some(which), .. } => {
                write!(f, "managed identity `{which}` of this machine")
            }
            AzureIdentity::Federated { client_id, assertion: ClientAssertion::ServiceAccount(_), .. } => {
                write!(f, "application `{client_id}`, with the service account's token")
            }
            AzureIdentity::Federated { client_id, assertion: ClientAssertion::File(path), .. } => {
                write!(f, "application `{client_id}`, with the token in `{}`", path.display())
            }
            AzureIdentity::Bound { client_id, bindings, .. } => {
                write!(f, "identity `{client_id}` bound to the service account at `{}`", bindings.server_name)
            }
            AzureIdentity::ServicePrincipal { client_id, .. } => write!(f, "service principal `{client_id}`"),
        }
    }
}

fn no_identity(tried: &str) -> RegistryError {
    RegistryError::NoCredentials { service: "Azure", tried: tried.to_owned() }
}

/// Whether a text is safe as a path segment.
fn is_tenant(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        && text != ".."
}

fn assertion_form(client_id: &str, token: &Secret<String>) -> Form {
    Form::new()
        .field("grant_type", "client_credentials")
        .field("client_id", client_id)
        .field("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
        .field("client_assertion", token.expose())
        .field("scope", &format!("{RESOURCE}/.default"))
}

fn managed_identity_token(
    context: &ProviderContext,
    which: Option<&str>,
) -> Result<Secret<String>, RegistryError> {
    let base = match context.variable("AZURE_POD_IDENTITY_AUTHORITY_HOST") {
        Some(text) => text,
        None if Cloud::detect(&context.sysfs).may_be(Cloud::Microsoft) => DEFAULT_METADATA_URL,
        None => return Err(no_identity("this machine is not on Azure")),
    };
    let base = HttpUrl::parse(base).map_err(|error| {
        RegistryError::Environment(format!("invalid AZURE_POD_IDENTITY_AUTHORITY_HOST: {error}"))
    })?;
    let mut form = Form::new().field("api-version", "2018-02-01").field("resource", RESOURCE);
    if let Some(which) = which {
        let is_resource = which.to_ascii_lowercase().contains("/subscriptions/");
        form = form.field(if is_resource { "msi_res_id" } else { "client_id" }, which);
    }
    let url = base.join(&format!("/metadata/identity/oauth2/token?{}", form.text()));
    request_token(
        context,
        METADATA_SERVICE,
        &HttpRequest::to_metadata_server("GET", url).header("metadata", "true"),
    )
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: Secret<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OAuthError {
    error: String,
    error_description: String,
}

fn request_token(
    context: &ProviderContext,
    service: &'static str,
    request: &HttpRequest,
) -> Result<Secret<String>, RegistryError> {
    let response: HttpResponse = context.send(service, request)?;
    if response.status != 200 {
        let fault: OAuthError = serde_json::from_slice(response.body.expose()).unwrap_or_default();
        return Err(rejection(service, request, &response, &fault.error, &fault.error_description));
    }
    let token: Result<TokenResponse, _> = serde_json::from_slice(response.body.expose());
    match token {
        Ok(token) if !token.access_token.is_empty() => {
            context.journal.note("token", format!("access token from {service}"));
            Ok(token.access_token)
        }
        _ => Err(RegistryError::InvalidResponse { service, what: "malformed access token" }),
    }
}

impl IdentityBindings {
    /// Trusts the certificate authorities in this file instead of the default.
    #[must_use]
    pub(crate) fn with_authority(mut self, path: &Path) -> Self {
        path.clone_into(&mut self.authority);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(token: &str, annotations: &[(&str, &str)]) -> CredentialProviderRequest {
        CredentialProviderRequest {
            image: "foo.azurecr.io/x".into(),
            service_account_token: Secret::new(token.into()),
            service_account_annotations: annotations
                .iter()
                .map(|(k, v)| ((*k).into(), (*v).into()))
                .collect(),
        }
    }

    #[test]
    fn selects_identity_in_order_and_never_ignores_a_token() {
        // I201, I202
        let both = [(CLIENT_ANNOTATION, "client"), (TENANT_ANNOTATION, "tenant")];
        let managed = CloudConfig { managed_identity: true, ..CloudConfig::default() };
        let principal = CloudConfig {
            client_id: Some("id".into()),
            client_secret: Some(Secret::new("canary-secret".into())),
            ..CloudConfig::default()
        };
        let federated = CloudConfig {
            federated_token_file: Some("/token".into()),
            tenant: Some("t".into()),
            ..principal.clone()
        };
        let bindings = IdentityBindings::new("sni.example".into(), [10, 0, 0, 1].into());
        for (config, bound, mirrored, request_under_test, expected) in [
            (&managed, false, false, request("", &[]), "managed identity of this machine"),
            (
                &managed,
                false,
                false,
                request("t", &both),
                "application `client`, with the service account's token",
            ),
            (
                &principal,
                false,
                false,
                request("t", &both),
                "application `client`, with the service account's token",
            ),
            (&managed, false, true, request("t", &both), "managed identity of this machine"),
            (
                &managed,
                true,
                false,
                request("t", &both),
                "identity `client` bound to the service account at `sni.example`",
            ),
            (&managed, true, true, request("t", &both), "managed identity of this machine"),
            (&principal, false, false, request("", &[]), "service principal `id`"),
            (&federated, false, false, request("", &[]), "application `id`, with the token in `/token`"),
        ] {
            let chosen =
                AzureIdentity::select(config, bound.then_some(&bindings), mirrored, &request_under_test)
                    .unwrap();
            assert_eq!(chosen.to_string(), expected);
            assert!(!format!("{chosen:?}").contains("canary"));
        }
        for (bound, annotations) in [(false, &both[..1]), (false, &both[1..]), (false, &[]), (true, &[])] {
            let request_under_test = request("t", annotations);
            assert!(
                AzureIdentity::select(&managed, bound.then_some(&bindings), false, &request_under_test)
                    .is_err()
            );
        }
        assert!(AzureIdentity::select(&managed, Some(&bindings), false, &request("", &both)).is_err());
        assert!(AzureIdentity::select(&CloudConfig::default(), None, false, &request("", &[])).is_err());
    }

    #[test]
    fn rejects_tenants_that_are_not_one_path_segment() {
        for (tenant, good) in
            [("a-b.c", true), ("", false), ("..", false), ("a/b", false), ("a?b", false), ("a\r\nb", false)]
        {
            assert_eq!(is_tenant(tenant), good, "{tenant:?}");
        }
    }
}
