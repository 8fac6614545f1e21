//! Web identity: a role assumed with a token file, as IAM roles for service accounts (IRSA) mount it.

use std::path::Path;

use super::{SourceResult, session_name};
use crate::context::ProviderContext;
use crate::ecr::endpoint::Endpoints;
use crate::ecr::sts;
use crate::error::RegistryError;

pub(super) fn find(context: &ProviderContext, endpoints: &Endpoints) -> SourceResult {
    let Some(file) = context.variable("AWS_WEB_IDENTITY_TOKEN_FILE") else {
        return Ok(Err("AWS_WEB_IDENTITY_TOKEN_FILE is not set".to_owned()));
    };
    let Some(role) = context.variable("AWS_ROLE_ARN") else {
        let what = "AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not";
        return Err(RegistryError::Environment(what.to_owned()));
    };
    let token = context.read_file(Path::new(file))?;
    context.journal.note("identity", format!("token in `{file}` for role `{role}`"));
    sts::assume_role_with_web_identity(context, endpoints, role, session_name(context), &token).map(Ok)
}
