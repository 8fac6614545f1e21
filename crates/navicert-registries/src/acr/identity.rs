//! As whom the registry is asked, and that identity's token from Azure (I201–I203).

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use navicert_types::Secret;
use navicert_types::image_credential::CredentialProviderRequest;
use serde::Deserialize;

use super::config::{AzureCloud, CloudConfig};
use crate::context::Context;
use crate::error::{ProviderError, refused};
use crate::form::Form;
use crate::http::{Reply, Request, Url};
use crate::machine::Cloud;

const CLIENT_ANNOTATION: &str = "kubernetes.azure.com/acr-client-id";
const TENANT_ANNOTATION: &str = "kubernetes.azure.com/acr-tenant-id";
const RESOURCE: &str = "https://containerregistry.azure.net";
const METADATA: &str = "Azure's metadata server";
const DIRECTORY: &str = "Azure's directory";
const BINDINGS: &str = "the identity-binding endpoint";
const USUAL_METADATA: &str = "http://169.254.169.254";
/// The cluster's certificate authority on a node of AKS.
const CLUSTER_AUTHORITY: &str = "/etc/kubernetes/certs/ca.crt";

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
        let authority = PathBuf::from(CLUSTER_AUTHORITY);
        IdentityBindings { server_name, address, default_client: None, default_tenant: None, authority }
    }
}

/// As whom the registry is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
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
        proof: Proof,
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
    /// A name and a secret that the registry takes as they are (I207).
    ServicePrincipal {
        /// The name.
        client_id: String,
        /// The secret.
        secret: Secret<String>,
    },
}

/// A token that proves to be an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The service account's.
    ServiceAccount(Secret<String>),
    /// A mounted one.
    File(PathBuf),
}

impl Identity {
    /// I201. Unlike upstream (I202), a service account's token is never ignored: it is used or it is an error.
    ///
    /// # Errors
    /// If nobody can be meant.
    pub fn choose(
        config: &CloudConfig,
        bindings: Option<&IdentityBindings>,
        mirrored: bool,
        request: &CredentialProviderRequest,
    ) -> Result<Self, ProviderError> {
        let token = &request.service_account_token;
        let annotation = |name: &str| {
            request.service_account_annotations.get(name).cloned().filter(|value| !value.is_empty())
        };
        let missing = |name: &str| {
            ProviderError::ServiceAccount(format!("the service account has no annotation `{name}`"))
        };
        if let (Some(bindings), false) = (bindings, mirrored) {
            if token.is_empty() {
                let what = "identity bindings need a service account's token, and the kubelet sent none";
                return Err(ProviderError::ServiceAccount(what.to_owned()));
            }
            let client_id = annotation(CLIENT_ANNOTATION).or_else(|| bindings.default_client.clone());
            return Ok(Identity::Bound {
                client_id: client_id.ok_or_else(|| missing(CLIENT_ANNOTATION))?,
                tenant: annotation(TENANT_ANNOTATION)
                    .or_else(|| bindings.default_tenant.clone())
                    .or_else(|| config.tenant.clone()),
                token: token.clone(),
                bindings: bindings.clone(),
            });
        }
        if !token.is_empty() && !mirrored {
            return Ok(Identity::Federated {
                client_id: annotation(CLIENT_ANNOTATION).ok_or_else(|| missing(CLIENT_ANNOTATION))?,
                tenant: annotation(TENANT_ANNOTATION).ok_or_else(|| missing(TENANT_ANNOTATION))?,
                proof: Proof::ServiceAccount(token.clone()),
            });
        }
        Identity::of_node(config)
    }

    fn of_node(config: &CloudConfig) -> Result<Self, ProviderError> {
        if config.managed_identity {
            return Ok(Identity::Managed {
                which: config.user_assigned_identity.clone(),
                tenant: config.tenant.clone(),
            });
        }
        let (client_id, tenant) = (config.client_id.clone(), config.tenant.clone());
        if let (Some(client_id), Some(file)) = (&client_id, &config.federated_token_file) {
            let tenant = tenant.ok_or_else(|| nobody("a federated token without a tenant"))?;
            return Ok(Identity::Federated {
                client_id: client_id.clone(),
                tenant,
                proof: Proof::File(file.into()),
            });
        }
        match (client_id, config.client_secret.clone()) {
            (Some(client_id), Some(secret)) => Ok(Identity::ServicePrincipal { client_id, secret }),
            _ => Err(nobody(
                "neither useManagedIdentityExtension nor aadClientId with aadClientSecret is configured",
            )),
        }
    }

    /// The tenant whose token is exchanged.
    pub fn tenant(&self) -> &str {
        match self {
            Identity::Managed { tenant, .. } | Identity::Bound { tenant, .. } => {
                tenant.as_deref().unwrap_or_default()
            }
            Identity::Federated { tenant, .. } => tenant,
            Identity::ServicePrincipal { .. } => "",
        }
    }

    /// This identity's token for Azure's registries.
    ///
    /// # Errors
    /// [`ProviderError`].
    pub(super) fn access_token(
        &self,
        context: &Context,
        cloud: &AzureCloud,
    ) -> Result<Secret<String>, ProviderError> {
        match self {
            Identity::Managed { which, .. } => managed(context, which.as_deref()),
            Identity::Federated { client_id, tenant, proof } => {
                let token = match proof {
                    Proof::ServiceAccount(token) => token.clone(),
                    Proof::File(path) => context.read_file(path)?,
                };
                if !is_tenant(tenant) {
                    return Err(ProviderError::ServiceAccount(format!("`{tenant}` is no tenant")));
                }
                let url = cloud.authority.join(&format!("/{tenant}/oauth2/v2.0/token"));
                ask(context, DIRECTORY, &assertion(client_id, &token).request(url))
            }
            Identity::Bound { client_id, token, bindings, .. } => {
                let url = Url::parse(&format!("https://{}", bindings.server_name))
                    .map_err(|error| ProviderError::Usage(format!("--ib-sni-name: {error}")))?;
                let request = Request {
                    direct: true,
                    connect_to: Some(bindings.address),
                    authorities: Some(bindings.authority.clone()),
                    ..assertion(client_id, token).request(url)
                };
                ask(context, BINDINGS, &request)
            }
            Identity::ServicePrincipal { .. } => Err(nobody("a service principal's secret is used as it is")),
        }
    }
}

/// Never a secret: names only.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identity::Managed { which: None, .. } => write!(f, "this machine's managed identity"),
            Identity::Managed { which: Some(which), .. } => {
                write!(f, "this machine's managed identity `{which}`")
            }
            Identity::Federated { client_id, proof: Proof::ServiceAccount(_), .. } => {
                write!(f, "application `{client_id}`, by the service account's token")
            }
            Identity::Federated { client_id, proof: Proof::File(path), .. } => {
                write!(f, "application `{client_id}`, by the token in `{}`", path.display())
            }
            Identity::Bound { client_id, bindings, .. } => {
                write!(
                    f,
                    "identity `{client_id}`, bound to the service account, at `{}`",
                    bindings.server_name
                )
            }
            Identity::ServicePrincipal { client_id, .. } => write!(f, "service principal `{client_id}`"),
        }
    }
}

fn nobody(tried: &str) -> ProviderError {
    ProviderError::NoCredentials { service: "Azure", tried: tried.to_owned() }
}

/// It becomes part of a path.
fn is_tenant(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        && text != ".."
}

fn assertion(client_id: &str, token: &Secret<String>) -> Form {
    Form::new()
        .field("grant_type", "client_credentials")
        .field("client_id", client_id)
        .field("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
        .field("client_assertion", token.expose())
        .field("scope", &format!("{RESOURCE}/.default"))
}

fn managed(context: &Context, which: Option<&str>) -> Result<Secret<String>, ProviderError> {
    let base = match context.variable("AZURE_POD_IDENTITY_AUTHORITY_HOST") {
        Some(text) => text,
        None if Cloud::of_machine(&context.system).may_be(Cloud::Microsoft) => USUAL_METADATA,
        None => return Err(nobody("this machine is not on Azure")),
    };
    let base = Url::parse(base)
        .map_err(|error| ProviderError::Environment(format!("AZURE_POD_IDENTITY_AUTHORITY_HOST: {error}")))?;
    let mut form = Form::new().field("api-version", "2018-02-01").field("resource", RESOURCE);
    if let Some(which) = which {
        let is_resource = which.to_ascii_lowercase().contains("/subscriptions/");
        form = form.field(if is_resource { "msi_res_id" } else { "client_id" }, which);
    }
    let url = base.join(&format!("/metadata/identity/oauth2/token?{}", form.text()));
    ask(context, METADATA, &Request::near("GET", url).header("metadata", "true"))
}

#[derive(Deserialize)]
struct Token {
    access_token: Secret<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fault {
    error: String,
    error_description: String,
}

fn ask(context: &Context, service: &'static str, request: &Request) -> Result<Secret<String>, ProviderError> {
    let reply: Reply = context.send(service, request)?;
    if reply.status != 200 {
        let fault: Fault = serde_json::from_slice(reply.body.expose()).unwrap_or_default();
        return Err(refused(service, request, &reply, &fault.error, &fault.error_description));
    }
    let token: Result<Token, _> = serde_json::from_slice(reply.body.expose());
    match token {
        Ok(token) if !token.access_token.is_empty() => {
            context.journal.note("token", format!("an access token from {service}"));
            Ok(token.access_token)
        }
        _ => Err(ProviderError::Answer { service, what: "what is no access token" }),
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
            let chosen = Identity::choose(config, bound.then_some(&bindings), mirrored, &asked).unwrap();
            assert_eq!(chosen.to_string(), expected);
            assert!(!format!("{chosen:?}").contains("canary"));
        }
        for (bound, annotations) in [(false, &both[..1]), (false, &both[1..]), (false, &[]), (true, &[])] {
            let asked = request("t", annotations);
            assert!(Identity::choose(&managed, bound.then_some(&bindings), false, &asked).is_err());
        }
        assert!(Identity::choose(&managed, Some(&bindings), false, &request("", &both)).is_err());
        assert!(Identity::choose(&CloudConfig::default(), None, false, &request("", &[])).is_err());
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
