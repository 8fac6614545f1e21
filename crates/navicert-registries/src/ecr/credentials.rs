//! Where AWS credentials come from, in the order of AWS's own tools: environment, web identity, shared files,
//! the container's agent, the machine's metadata.
//!
//! A source that is not set up is passed over with a note; one that is set up and fails ends the search, because the
//! next one would be somebody else.
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

/// A key to sign with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsCredentials {
    /// Its name; no secret.
    pub access_key_id: String,
    /// The key.
    pub secret_access_key: Secret<String>,
    /// What has to come with it if it is temporary.
    pub session_token: Option<Secret<String>>,
    /// Until when it is good.
    pub expires: Option<Timestamp>,
}

/// What a source that is not set up says about itself.
type NotConfigured = String;

/// A source's answer.
type SourceResult = Result<Result<AwsCredentials, NotConfigured>, RegistryError>;

/// A source: its name, and how it is asked.
type CredentialSource = (&'static str, fn(&ProviderContext, &Endpoints) -> SourceResult);

const SOURCES: [CredentialSource; 5] = [
    ("environment", |context, _| environment::find(context)),
    ("web identity", web_identity::find),
    ("profile", profile::find),
    ("container", |context, _| container::find(context)),
    ("instance metadata", |context, _| imds::find(context)),
];

/// The first source that has credentials.
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

/// What metadata servers and `credential_process` programs print.
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
        let wrong = |what| RegistryError::Answer { service, what };
        let document: CredentialsDocument =
            serde_json::from_slice(bytes).map_err(|_| wrong("what is no credentials"))?;
        if document.code.as_deref().is_some_and(|code| code != "Success") {
            return Err(wrong("a code other than `Success`"));
        }
        let (Some(access_key_id), Some(secret_access_key)) =
            (document.access_key_id, document.secret_access_key)
        else {
            return Err(wrong("credentials without a key"));
        };
        let session_token = document.token.filter(|token| !token.is_empty());
        let expires = document.expiration.and_then(|text| text.parse().ok());
        Ok(AwsCredentials { access_key_id, secret_access_key, session_token, expires })
    }

    fn from_response(service: &'static str, reply: &HttpResponse) -> Result<AwsCredentials, RegistryError> {
        CredentialsDocument::read(service, reply.body.expose())
    }
}

/// The name of a session when nobody chose one.
fn session_name(context: &ProviderContext) -> &str {
    context.variable("AWS_ROLE_SESSION_NAME").unwrap_or("ecr-credential-provider")
}
