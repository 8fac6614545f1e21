//! Credentials from the environment: `AWS_ACCESS_KEY_ID` and related variables.

use navicert_types::Secret;

use super::{AwsCredentials, SourceResult};
use crate::context::ProviderContext;
use crate::error::RegistryError;

pub(super) fn find(context: &ProviderContext) -> SourceResult {
    let id = context.variable("AWS_ACCESS_KEY_ID").or_else(|| context.variable("AWS_ACCESS_KEY"));
    let secret = context.variable("AWS_SECRET_ACCESS_KEY").or_else(|| context.variable("AWS_SECRET_KEY"));
    match (id, secret) {
        (Some(id), Some(secret)) => Ok(Ok(AwsCredentials {
            access_key_id: id.to_owned(),
            secret_access_key: Secret::new(secret.to_owned()),
            session_token: context.variable("AWS_SESSION_TOKEN").map(|token| Secret::new(token.to_owned())),
            expires: None,
        })),
        (None, None) => Ok(Err("AWS_ACCESS_KEY_ID is not set".to_owned())),
        // An incomplete key is a configuration error; trying another identity would hide it.
        (Some(_), None) => Err(RegistryError::Environment(
            "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not".to_owned(),
        )),
        (None, Some(_)) => Err(RegistryError::Environment(
            "AWS_SECRET_ACCESS_KEY is set, but AWS_ACCESS_KEY_ID is not".to_owned(),
        )),
    }
}
