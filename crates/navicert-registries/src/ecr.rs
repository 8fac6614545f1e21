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
mod xml;

use std::collections::BTreeMap;
use std::path::Path;

use navicert_types::image_credential::CredentialProviderRequest;

pub use credentials::AwsCredentials;
pub use endpoint::{AwsService, Endpoints};
pub use sign::{SignedRequest, sign};
pub use token::AuthorizationToken;

use crate::context::ProviderContext;
use crate::error::RegistryError;
use crate::host::{EcrHost, Host, authority};
use crate::lifetime::cache_duration;
use crate::provider::{ProviderCredentials, RegistryProvider};

/// The annotation by which a service account names its role.
// I181
pub const ROLE_ANNOTATION: &str = "eks.amazonaws.com/ecr-role-arn";
/// The role when the service account names none.
const ROLE_VARIABLE: &str = "AWS_ECR_ROLE_ARN";
/// What CloudTrail shows.
// I181
const SESSION_NAME: &str = "ecr-credential-provider";

/// The provider for Amazon ECR.
#[derive(Clone, Debug, Default)]
pub struct Ecr {
    /// Hosts that their operator says are ECR's, in lower case and with their port, each with its region.
    pub custom_hosts: BTreeMap<String, String>,
}

/// A registry, and under which key its credential is found again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EcrRegistry {
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
        // What its operator wrote is compared whole, port and all.
        let named = authority(image);
        let told = self
            .custom_hosts
            .get(&named)
            .and_then(|region| EcrHost::in_region(region))
            .map(|host| (named, host));
        let (key, found) = match (told, Host::from_image(image)) {
            (Some(told), _) => told,
            (None, Err(error)) => return Ok(Err(error.to_string())),
            (None, Ok(host)) => match EcrHost::from_host(&host) {
                Some(found) => (host.key().to_owned(), found),
                None => return Ok(Err(format!("`{}` is no registry of Amazon ECR", host.name()))),
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
        let kept = cache_duration(token.expires, context.clock.now());
        if kept.is_zero() {
            context.journal.warn(match token.expires {
                Some(expires) => format!("ECR's token is good until {expires} only and is not remembered"),
                None => "ECR's token has no expiry and is not remembered".to_owned(),
            });
        }
        Ok(ProviderCredentials::single(&registry.key, &token.username, token.password, kept))
    }
}

/// The service account's role if it has one, this machine's credentials otherwise. A role that cannot be
/// assumed is an error: a pod does not fall back to the node's rights.
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
            context.journal.note("identity", format!("the service account's token, for role `{role}`"));
            sts::assume_role_with_web_identity(context, endpoints, role, SESSION_NAME, token)
        }
        (false, None) => {
            context.journal.note(
                "identity",
                format!("this machine's: neither `{ROLE_ANNOTATION}` nor {ROLE_VARIABLE} names a role for the service account"),
            );
            credentials::resolve(context, endpoints)
        }
        (true, _) => credentials::resolve(context, endpoints),
    }
}

/// A path in the environment, or one below the home folder.
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
