//! Amazon ECR: `ecr-credential-provider`.
//!
//! ```text
//! host ──▶ endpoint ──▶ credentials ──▶ (sts) ──▶ token
//!          which API    environment, web identity, profile, container, IMDS
//! ```

mod credentials;
mod endpoint;
mod sign;
mod sts;
mod token;
pub(crate) mod xml;

use std::collections::BTreeMap;
use std::path::Path;

use navicert_types::image_credential::CredentialProviderRequest;

pub(crate) use credentials::AwsCredentials;
pub(crate) use endpoint::Endpoints;

use crate::context::ProviderContext;
use crate::error::RegistryError;
use crate::host::{EcrHost, Host, authority};
use crate::lifetime::cache_duration;
use crate::provider::{ProviderCredentials, RegistryProvider};

/// Annotation with the role of a service account.
// I181
pub(crate) const ROLE_ANNOTATION: &str = "eks.amazonaws.com/ecr-role-arn";
/// Variable with the role of service accounts without the annotation.
const ROLE_VARIABLE: &str = "AWS_ECR_ROLE_ARN";
/// Session name, shown in CloudTrail.
// I181
const SESSION_NAME: &str = "ecr-credential-provider";

/// The provider for Amazon ECR.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ecr {
    /// Custom hosts in front of ECR, in lower case and with their port, each with its region.
    pub custom_hosts: BTreeMap<String, String>,
}

/// A matched registry, with the key of its credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EcrRegistry {
    key: String,
    host: EcrHost,
}

impl RegistryProvider for Ecr {
    type Registry = EcrRegistry;

    fn match_image(
        &self,
        context: &ProviderContext,
        image: &str,
    ) -> Result<Result<EcrRegistry, String>, RegistryError> {
        // Custom hosts are compared in full, including the port.
        let named = authority(image);
        let custom = self
            .custom_hosts
            .get(&named)
            .and_then(|region| EcrHost::in_region(region))
            .map(|host| (named, host));
        let (key, found) = match (custom, Host::from_image(image)) {
            (Some(custom), _) => custom,
            (None, Err(error)) => return Ok(Err(error.to_string())),
            (None, Ok(host)) => match EcrHost::from_host(&host) {
                Some(found) => (host.key().to_owned(), found),
                None => return Ok(Err(format!("`{}` is not an Amazon ECR registry", host.name()))),
            },
        };
        match &found {
            EcrHost::Public => context.journal.note("registry", "ECR Public, region us-east-1"),
            EcrHost::Private { region, partition, fips, dual_stack, .. } => {
                let fips = if *fips { ", fips" } else { "" };
                let dual_stack = if *dual_stack { ", dual-stack" } else { "" };
                context.journal.note(
                    "registry",
                    format!("ECR, region {region}, partition {}{fips}{dual_stack}", partition.id),
                );
            }
        }
        Ok(Ok(EcrRegistry { key, host: found }))
    }

    fn credentials(
        &self,
        context: &ProviderContext,
        registry: &EcrRegistry,
        request: &CredentialProviderRequest,
    ) -> Result<ProviderCredentials, RegistryError> {
        let endpoints = Endpoints::new(context, &registry.host)?;
        let credentials = credentials(context, &endpoints, request)?;
        let token = token::authorization_token(context, &endpoints, &credentials)?;
        let cache_for = cache_duration(token.expires, context.clock.now());
        if cache_for.is_zero() {
            context.journal.warn(match token.expires {
                Some(expires) => format!("ECR token expires at {expires} and is not cached"),
                None => "ECR token has no expiry and is not cached".to_owned(),
            });
        }
        Ok(ProviderCredentials::single(&registry.key, &token.username, token.password, cache_for))
    }
}

/// Credentials of the service account's role if it has one, of this machine otherwise. A role that cannot be assumed
/// is an error: a pod never falls back to the node's permissions.
// I181
fn credentials(
    context: &ProviderContext,
    endpoints: &Endpoints,
    request: &CredentialProviderRequest,
) -> Result<AwsCredentials, RegistryError> {
    let annotated = request.service_account_annotations.get(ROLE_ANNOTATION).map(String::as_str);
    let role = annotated.filter(|role| !role.is_empty()).or_else(|| context.variable(ROLE_VARIABLE));
    let token = &request.service_account_token;
    match (token.is_empty(), role) {
        (false, Some(role)) => {
            context.journal.note("identity", format!("service account token for role `{role}`"));
            sts::assume_role_with_web_identity(context, endpoints, role, SESSION_NAME, token)
        }
        (false, None) => {
            context.journal.note(
                "identity",
                format!("this machine's credentials: neither `{ROLE_ANNOTATION}` nor {ROLE_VARIABLE} names a role for the service account"),
            );
            credentials::resolve(context, endpoints)
        }
        (true, _) => credentials::resolve(context, endpoints),
    }
}

/// A path from an environment variable, or a default below the home directory.
fn path_or_home<'a>(
    context: &'a ProviderContext,
    variable: &str,
    below_home: &str,
) -> Option<std::borrow::Cow<'a, Path>> {
    match context.variable(variable) {
        Some(path) => Some(Path::new(path).into()),
        None => context.variable("HOME").map(|home| Path::new(home).join(below_home).into()),
    }
}
