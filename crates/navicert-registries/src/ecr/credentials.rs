//! AWS credential sources, in the order of AWS's own tools: environment, web identity, shared files, container agent,
//! instance metadata.
//!
//! A source that is not configured is skipped and recorded. A configured source that fails ends the search, because
//! the next source would be another identity.
// I178

mod container;
mod environment;
mod imds;
mod profile;
mod web_identity;

use navicert_types::{Secret, Timestamp};
use serde::Deserialize;

use super::endpoint::Endpoints;
use crate::context::ProviderContext;
use crate::error::RegistryError;
use crate::http::HttpResponse;

/// AWS access key and secret key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AwsCredentials {
    /// Access key ID; not secret.
    pub access_key_id: String,
    /// Secret access key.
    pub secret_access_key: Secret<String>,
    /// Session token of temporary credentials.
    pub session_token: Option<Secret<String>>,
    /// Expiry of temporary credentials.
    pub expires: Option<Timestamp>,
}

/// Why a source is not configured.
type NotConfigured = String;

/// Result of a source.
type SourceResult = Result<Result<AwsCredentials, NotConfigured>, RegistryError>;

/// A source: its name and lookup function.
type CredentialSource = (&'static str, fn(&ProviderContext, &Endpoints) -> SourceResult);

const SOURCES: [CredentialSource; 5] = [
    ("environment", |context, _| environment::find(context)),
    ("web identity", web_identity::find),
    ("profile", profile::find),
    ("container", |context, _| container::find(context)),
    ("instance metadata", |context, _| imds::find(context)),
];

/// Returns the credentials of the first configured source.
pub(super) fn resolve(
    context: &ProviderContext,
    endpoints: &Endpoints,
) -> Result<AwsCredentials, RegistryError> {
    let mut tried = Vec::new();
    for (name, find) in SOURCES {
        match find(context, endpoints)? {
            Ok(credentials) => {
                context
                    .journal
                    .note("identity", format!("{name}: access key `{}`", credentials.access_key_id));
                return Ok(credentials);
            }
            Err(absent) => {
                context.journal.note("identity", format!("{name}: {absent}"));
                tried.push(absent);
            }
        }
    }
    Err(RegistryError::NoCredentials { service: "AWS", tried: tried.join("; ") })
}

/// Credentials document of metadata servers and `credential_process`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CredentialsDocument {
    access_key_id: Option<String>,
    secret_access_key: Option<Secret<String>>,
    #[serde(alias = "SessionToken")]
    token: Option<Secret<String>>,
    expiration: Option<String>,
    code: Option<String>,
}

impl CredentialsDocument {
    fn read(service: &'static str, bytes: &[u8]) -> Result<AwsCredentials, RegistryError> {
        let invalid = |what| RegistryError::InvalidResponse { service, what };
        let document: CredentialsDocument =
            serde_json::from_slice(bytes).map_err(|_| invalid("malformed credentials"))?;
        if document.code.as_deref().is_some_and(|code| code != "Success") {
            return Err(invalid("code is not `Success`"));
        }
        let (Some(access_key_id), Some(secret_access_key)) =
            (document.access_key_id, document.secret_access_key)
        else {
            return Err(invalid("missing access key"));
        };
        let session_token = document.token.filter(|token| !token.is_empty());
        let expires = document.expiration.and_then(|text| text.parse().ok());
        Ok(AwsCredentials { access_key_id, secret_access_key, session_token, expires })
    }

    fn from_response(
        service: &'static str,
        response: &HttpResponse,
    ) -> Result<AwsCredentials, RegistryError> {
        CredentialsDocument::read(service, response.body.expose())
    }
}

/// Role session name from the environment, or the default.
fn session_name(context: &ProviderContext) -> &str {
    context.variable("AWS_ROLE_SESSION_NAME").unwrap_or("ecr-credential-provider")
}
