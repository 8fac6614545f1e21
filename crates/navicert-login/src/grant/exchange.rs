//! Token exchange (RFC 8693): another token for one that the environment provides.

use super::GrantRun;
use crate::cache::Entry;
use crate::check::Expectation;
use crate::error::LoginError;
use crate::provider::Repeat;

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";

impl GrantRun<'_> {
    pub(super) async fn token_exchange(&self) -> Result<Entry, LoginError> {
        let exchange = &self.request.exchange;
        let missing = || LoginError::Usage("missing --subject-token".to_owned());
        let subject = self.subject_token(exchange.subject.as_ref().ok_or_else(missing)?).await?;
        let subject_type = exchange.subject_type.as_deref().unwrap_or(JWT);
        let actor = match &exchange.actor {
            Some((source, kind)) => Some((self.subject_token(source).await?, kind.as_str())),
            None => None,
        };
        let mut fields = vec![
            ("grant_type", GRANT_TYPE),
            ("subject_token", subject.expose().as_str()),
            ("subject_token_type", subject_type),
        ];
        if let Some((token, kind)) = &actor {
            fields.push(("actor_token", token.expose()));
            fields.push(("actor_token_type", kind));
        }
        fields.extend(exchange.requested_type.as_deref().map(|kind| ("requested_token_type", kind)));
        let parameters = &self.request.parameters;
        fields.extend(parameters.audiences.iter().map(|audience| ("audience", audience.as_str())));
        fields.extend(parameters.resources.iter().map(|resource| ("resource", resource.as_str())));
        fields.extend(parameters.extra.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let scope = self.request.extra_scopes.join(" ");
        if !scope.is_empty() {
            fields.push(("scope", &scope));
        }
        match self.client.token_request(&fields, Repeat::Always).await {
            Ok(answer) if answer.issued_token_type.is_none() => Err(LoginError::ProviderError {
                host: self.request.host().to_owned(),
                code: "token exchange without `issued_token_type`".to_owned(),
                description: String::new(),
            }),
            Ok(answer) => {
                let expectation = Expectation { is_exchanged: true, ..Expectation::default() };
                self.finish(answer, expectation).await
            }
            Err(failure) => Err(self.token_error(failure, "", GRANT_TYPE).await),
        }
    }
}
