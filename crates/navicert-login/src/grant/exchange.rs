//! Token exchange (RFC 8693): another token for one that the environment provides, or for the access token of a session.

use super::GrantRun;
use crate::cache::Entry;
use crate::check::{Expectation, add_exchanged};
use crate::error::LoginError;
use crate::provider::{ProviderClient, Repeat, TokenAnswer, TokenFailure, classify};

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// Exchanges the session's access token for one of `--exchange-audience`. Without that flag nothing is done.
///
/// # Errors
/// The provider does not exchange it. The session itself is as it was.
pub(crate) async fn exchange_session(
    client: &ProviderClient<'_>,
    entry: &mut Entry,
) -> Result<(), LoginError> {
    let request = client.request;
    let (Some(audience), Some(subject)) = (&request.exchange.audience, entry.access_token.clone()) else {
        return Ok(());
    };
    let mut fields = vec![
        ("grant_type", GRANT_TYPE),
        ("subject_token", subject.expose().as_str()),
        ("subject_token_type", ACCESS_TOKEN),
        ("audience", audience),
    ];
    fields.extend(request.exchange.requested_type.as_deref().map(|kind| ("requested_token_type", kind)));
    let answer = client.token_request(&fields, Repeat::Always).await;
    let answer = answer.and_then(|answer| Ok(with_issued_type(answer, request.host())?));
    match answer {
        Ok(answer) => add_exchanged(client, &answer, entry).await,
        Err(TokenFailure::Login(error)) => Err(error),
        Err(TokenFailure::OAuth(failure)) if failure.code == "invalid_target" => Err(LoginError::Target {
            host: request.host().to_owned(),
            audience: audience.clone(),
            description: failure.description,
        }),
        Err(TokenFailure::OAuth(failure)) => Err(classify(&failure, request, None, "", GRANT_TYPE)),
    }
}

/// An answer of a token exchange must say what it contains.
fn with_issued_type(answer: TokenAnswer, host: &str) -> Result<TokenAnswer, LoginError> {
    if answer.issued_token_type.is_some() {
        return Ok(answer);
    }
    Err(LoginError::ProviderError {
        host: host.to_owned(),
        code: "token exchange without `issued_token_type`".to_owned(),
        description: String::new(),
    })
}

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
            Ok(answer) => {
                let answer = with_issued_type(answer, self.request.host())?;
                let expectation = Expectation { is_exchanged: true, ..Expectation::default() };
                self.finish(answer, expectation).await
            }
            Err(failure) => Err(self.token_error(failure, "", GRANT_TYPE).await),
        }
    }
}
