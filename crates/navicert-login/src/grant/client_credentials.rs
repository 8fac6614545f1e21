//! Client credentials: a token for the client itself.

use super::{GrantRun, requested_scopes};
use crate::cache::Entry;
use crate::check::Expectation;
use crate::error::LoginError;
use crate::provider::Repeat;

impl GrantRun<'_> {
    pub(super) async fn client_credentials(&self) -> Result<Entry, LoginError> {
        let metadata = self.client.metadata().await?;
        let scope = requested_scopes(self.request, &metadata);
        let parameters = &self.request.parameters;
        let mut fields = vec![("grant_type", "client_credentials"), ("scope", scope.as_str())];
        fields.extend(parameters.audiences.iter().map(|audience| ("audience", audience.as_str())));
        fields.extend(parameters.resources.iter().map(|resource| ("resource", resource.as_str())));
        fields.extend(parameters.extra.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        match self.client.token_request(&fields, Repeat::Always).await {
            Ok(answer) => self.finish(answer, Expectation::default()).await,
            Err(failure) => Err(self.token_error(failure, "", "client_credentials").await),
        }
    }
}
