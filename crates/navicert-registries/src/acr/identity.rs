//! As whom the registry is asked, and that identity's token from Azure.
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
const METADATA_SERVICE: &str = "Azure's metadata server";
const ENTRA_SERVICE: &str = "Azure's directory";
const BINDINGS_SERVICE: &str = "the identity-binding endpoint";
const DEFAULT_METADATA_URL: &str = "http://169.254.169.254";
/// The cluster's certificate authority on a node of AKS.
const DEFAULT_CA_FILE: &str = "/etc/kubernetes/certs/ca.crt";

/// How tokens are had through the API server: identity bindings of AKS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityBindings {
    /// The name the endpoint answers to.
    pub server_name: String,
    /// Where the API server is.
    pub address: IpAddr,
    /// The identity when the service account names none.
    pub default_client: Option<String>,
    /// The tenant when the service account names none.
    pub default_tenant: Option<String>,
    /// The certificate authority of the cluster.
    pub authority: PathBuf,
}

impl IdentityBindings {
    /// Bindings with the usual certificate authority.
    pub fn new(server_name: String, address: IpAddr) -> Self {
        let authority = PathBuf::from(DEFAULT_CA_FILE);
        IdentityBindings { server_name, address, default_client: None, default_tenant: None, authority }
    }
}

/// As whom the registry is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AzureIdentity {
    /// The machine's own, or one of several.
    Managed {
        /// Which one: a client id or a resource id.
        which: Option<String>,
        /// The tenant of the configuration.
        tenant: Option<String>,
    },
    /// An application that proves itself with a token of somebody it trusts.
    Federated {
        /// The application.
        client_id: String,
        /// Its tenant.
        tenant: String,
        /// Where the token is.
        assertion: ClientAssertion,
    },
    /// A service account, through the API server.
    Bound {
        /// The identity.
        client_id: String,
        /// Its tenant.
        tenant: Option<String>,
        /// The service account's token.
        token: Secret<String>,
        /// Where.
        bindings: IdentityBindings,
    },
    /// A name and a secret that the registry takes as they are.
    // I207
    ServicePrincipal {
        /// The name.
        client_id: String,
        /// The secret.
        secret: Secret<String>,
    },
}

/// A token that proves to be an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAssertion {
    /// The service account's.
    ServiceAccount(Secret<String>),
    /// A mounted one.
    File(PathBuf),
}

impl AzureIdentity {
    /// I201. Unlike upstream, a service account's token is never ignored: it is used or it is an error.
    ///
    /// # Errors
    /// If nobody can be meant.
    // I202
    pub fn select(
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
            RegistryError::ServiceAccount(format!("the service account has no annotation `{name}`"))
        };
        if let (Some(bindings), false) = (bindings, mirrored) {
            if token.is_empty() {
                let what = "identity bindings need a service account's token, and the kubelet sent none";
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
            let tenant = tenant.ok_or_else(|| no_identity("a federated token without a tenant"))?;
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

    /// The tenant whose token is exchanged.
    pub fn tenant(&self) -> &str {
        match self {
            AzureIdentity::Managed { tenant, .. } | AzureIdentity::Bound { tenant, .. } => {
                tenant.as_deref().unwrap_or_default()
            }
            AzureIdentity::Federated { tenant, .. } => tenant,
            AzureIdentity::ServicePrincipal { .. } => "",
        }
    }

    /// This identity's token for Azure's registries.
    ///
    /// # Errors
    /// [`ProviderError`].
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
                    return Err(RegistryError::ServiceAccount(format!("`{tenant}` is no tenant")));
                }
                let url = cloud.authority.join(&format!("/{tenant}/oauth2/v2.0/token"));
                request_token(context, ENTRA_SERVICE, &assertion_form(client_id, &token).request(url))
            }
            AzureIdentity::Bound { client_id, token, bindings, .. } => {
                let url = HttpUrl::parse(&format!("https://{}", bindings.server_name))
                    .map_err(|error| RegistryError::Usage(format!("--ib-sni-name: {error}")))?;
                let request = HttpRequest {
                    direct: true,
                    connect_to: Some(bindings.address),
                    authorities: Some(bindings.authority.clone()),
                    ..assertion_form(client_id, token).request(url)
                };
                request_token(context, BINDINGS_SERVICE, &request)
            }
            AzureIdentity::ServicePrincipal { .. } => {
                Err(no_identity("a service principal's secret is used as it is"))
            }
        }
    }
}

/// Never a secret: names only.
impl fmt::Display for AzureIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AzureIdentity::Managed { which: None, .. } => write!(f, "this machine's managed identity"),
            AzureIdentity::Managed { which: Some(which), .. } => {
                write!(f, "this machine's managed identity `{which}`")
            }
            AzureIdentity::Federated { client_id, assertion: ClientAssertion::ServiceAccount(_), .. } => {
                write!(f, "application `{client_id}`, by the service account's token")
            }
            AzureIdentity::Federated { client_id, assertion: ClientAssertion::File(path), .. } => {
                write!(f, "application `{client_id}`, by the token in `{}`", path.display())
            }
            AzureIdentity::Bound { client_id, bindings, .. } => {
                write!(
                    f,
                    "identity `{client_id}`, bound to the service account, at `{}`",
                    bindings.server_name
                )
            }
            AzureIdentity::ServicePrincipal { client_id, .. } => write!(f, "service principal `{client_id}`"),
        }
    }
}

fn no_identity(tried: &str) -> RegistryError {
    RegistryError::NoCredentials { service: "Azure", tried: tried.to_owned() }
}

/// It becomes part of a path.
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
    let base = HttpUrl::parse(base)
        .map_err(|error| RegistryError::Environment(format!("AZURE_POD_IDENTITY_AUTHORITY_HOST: {error}")))?;
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
    let reply: HttpResponse = context.send(service, request)?;
    if reply.status != 200 {
        let fault: OAuthError = serde_json::from_slice(reply.body.expose()).unwrap_or_default();
        return Err(rejection(service, request, &reply, &fault.error, &fault.error_description));
    }
    let token: Result<TokenResponse, _> = serde_json::from_slice(reply.body.expose());
    match token {
        Ok(token) if !token.access_token.is_empty() => {
            context.journal.note("token", format!("an access token from {service}"));
            Ok(token.access_token)
        }
        _ => Err(RegistryError::Answer { service, what: "what is no access token" }),
    }
}

/// For bindings whose certificate authority is elsewhere.
impl IdentityBindings {
    /// Trusts this file's authorities instead.
    #[must_use]
    pub fn with_authority(mut self, path: &Path) -> Self {
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
    fn an_identity_is_chosen_in_order_and_a_token_is_never_ignored() {
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
        for (config, bound, mirrored, asked, expected) in [
            (&managed, false, false, request("", &[]), "this machine's managed identity"),
            (
                &managed,
                false,
                false,
                request("t", &both),
                "application `client`, by the service account's token",
            ),
            (
                &principal,
                false,
                false,
                request("t", &both),
                "application `client`, by the service account's token",
            ),
            (&managed, false, true, request("t", &both), "this machine's managed identity"),
            (
                &managed,
                true,
                false,
                request("t", &both),
                "identity `client`, bound to the service account, at `sni.example`",
            ),
            (&managed, true, true, request("t", &both), "this machine's managed identity"),
            (&principal, false, false, request("", &[]), "service principal `id`"),
            (&federated, false, false, request("", &[]), "application `id`, by the token in `/token`"),
        ] {
            let chosen = AzureIdentity::select(config, bound.then_some(&bindings), mirrored, &asked).unwrap();
            assert_eq!(chosen.to_string(), expected);
            assert!(!format!("{chosen:?}").contains("canary"));
        }
        for (bound, annotations) in [(false, &both[..1]), (false, &both[1..]), (false, &[]), (true, &[])] {
            let asked = request("t", annotations);
            assert!(AzureIdentity::select(&managed, bound.then_some(&bindings), false, &asked).is_err());
        }
        assert!(AzureIdentity::select(&managed, Some(&bindings), false, &request("", &both)).is_err());
        assert!(AzureIdentity::select(&CloudConfig::default(), None, false, &request("", &[])).is_err());
    }

    #[test]
    fn a_tenant_is_part_of_a_path_and_nothing_more() {
        for (tenant, good) in
            [("a-b.c", true), ("", false), ("..", false), ("a/b", false), ("a?b", false), ("a\r\nb", false)]
        {
            assert_eq!(is_tenant(tenant), good, "{tenant:?}");
        }
    }
}
