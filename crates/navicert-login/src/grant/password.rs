//! Resource owner password credentials: only if the flags ask for it. The password is never stored.

use navicert_types::Secret;

use super::{GrantRun, prompt, requested_scopes};
use crate::cache::Entry;
use crate::check::Expectation;
use crate::error::LoginError;
use crate::provider::{Repeat, read_secret};

impl GrantRun<'_> {
    pub(super) async fn password(&self) -> Result<Entry, LoginError> {
        let password = self.read_password()?;
        let metadata = self.client.metadata().await?;
        let scope = requested_scopes(self.request, &metadata);
        let username = self.request.username.as_deref().unwrap_or_default();
        let parameters = &self.request.parameters;
        let mut fields = vec![
            ("grant_type", "password"),
            ("username", username),
            ("password", password.expose().as_str()),
            ("scope", scope.as_str()),
        ];
        fields.extend(parameters.audiences.iter().map(|audience| ("audience", audience.as_str())));
        fields.extend(parameters.resources.iter().map(|resource| ("resource", resource.as_str())));
        match self.client.token_request(&fields, Repeat::Never).await {
            Ok(answer) => self.finish(answer, Expectation::default()).await,
            Err(failure) => Err(self.token_error(failure, "", "password").await),
        }
    }

    fn read_password(&self) -> Result<Secret<String>, LoginError> {
        if let Some(source) = &self.request.password {
            return read_secret(source);
        }
        if !self.person.can_type {
            return Err(LoginError::LoginNeeded {
                host: self.request.host().to_owned(),
                command: self.request.command_line(),
            });
        }
        let username = self.request.username.as_deref().unwrap_or_default();
        let text = format!("Password of {username} at {}: ", self.request.host());
        prompt::read_hidden(&text, self.context, self.request.login_limit())
    }
}
