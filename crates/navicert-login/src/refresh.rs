//! Renews a session with its refresh token. Happens only under the entry's lock, with the token that was read after the lock
//! was acquired: providers that rotate refresh tokens end the session when an old one is used again.

use navicert_types::Secret;

use crate::cache::Entry;
use crate::check::{Expectation, check};
use crate::error::LoginError;
use crate::provider::{OAuthFailure, ProviderClient, Repeat, TokenAnswer, TokenFailure, classify};
use crate::request::TokenKind;

/// How a refresh ended.
#[derive(Debug)]
pub(crate) enum RefreshOutcome {
    /// The session has new tokens.
    Renewed(Box<Entry>),
    /// The provider ended the session, and why.
    Ended(String),
    /// The provider answered, and no token came that can be handed over. The session goes on with this refresh token: the provider may
    /// no longer accept the one before.
    Unusable {
        /// Why.
        error: LoginError,
        /// The newest refresh token.
        refresh_token: Secret<String>,
    },
}

/// Renews the session.
///
/// # Errors
/// The provider cannot be reached or answers with an error that does not end the session; the entry stays as it is.
pub(crate) async fn refresh(
    client: &ProviderClient<'_>,
    entry: &Entry,
) -> Result<RefreshOutcome, LoginError> {
    client.recall(&entry.memo);
    let Some(token) = entry.refresh_token.clone() else {
        return Ok(RefreshOutcome::Ended("no refresh token".to_owned()));
    };
    let scopes = entry.scope.clone().unwrap_or_default();
    let mut memo = entry.memo.clone();
    let first = send(client, &token, memo.refresh_needs_scope.then_some(scopes.as_str())).await;
    let mut answer = match resolve(client, first)? {
        Ok(answer) => answer,
        Err(why) => return Ok(RefreshOutcome::Ended(why)),
    };
    let needs_id_token = client.request.base_token_kind() == TokenKind::Id;
    if needs_id_token && answer.id_token.is_none() && !memo.refresh_needs_scope && !scopes.is_empty() {
        // Some providers send an ID token only if the scopes are named again.
        let newest = answer.refresh_token.clone().unwrap_or(token.clone());
        let second = send(client, &newest, Some(&scopes)).await;
        answer = match resolve(client, second) {
            Ok(Ok(second)) => {
                TokenAnswer { refresh_token: second.refresh_token.clone().or(Some(newest)), ..second }
            }
            Ok(Err(why)) => return Ok(RefreshOutcome::Ended(why)),
            Err(error) => return Ok(RefreshOutcome::Unusable { error, refresh_token: newest }),
        };
        memo.refresh_needs_scope = answer.id_token.is_some();
    }
    if needs_id_token && answer.id_token.is_none() {
        return Ok(RefreshOutcome::Ended("the refresh brought no ID token".to_owned()));
    }
    let mut previous = entry.clone();
    previous.memo = memo;
    let expectation = Expectation { previous: Some(&previous), ..Expectation::default() };
    let newest = answer.refresh_token.clone().unwrap_or(token);
    let mut renewed = match check(client, &entry.key, answer, expectation).await {
        Ok(renewed) => renewed,
        Err(error) => return Ok(RefreshOutcome::Unusable { error, refresh_token: newest }),
    };
    client.learned(&mut renewed.memo);
    renewed.history.refreshes = renewed.history.refreshes.saturating_add(1);
    Ok(RefreshOutcome::Renewed(Box::new(renewed)))
}

async fn send(
    client: &ProviderClient<'_>,
    token: &Secret<String>,
    scope: Option<&str>,
) -> Result<TokenAnswer, TokenFailure> {
    let mut fields = vec![("grant_type", "refresh_token"), ("refresh_token", token.expose().as_str())];
    fields.extend(scope.map(|scope| ("scope", scope)));
    client.token_request(&fields, Repeat::Refresh).await
}

/// An answer, the reason why the session has ended, or an error that leaves it as it is.
fn resolve(
    client: &ProviderClient<'_>,
    result: Result<TokenAnswer, TokenFailure>,
) -> Result<Result<TokenAnswer, String>, LoginError> {
    match result {
        Ok(answer) => Ok(Ok(answer)),
        Err(TokenFailure::OAuth(failure)) if failure.ends_session() => Ok(Err(reason(&failure))),
        Err(TokenFailure::OAuth(failure)) => {
            Err(classify(&failure, client.request, None, "", "refresh_token"))
        }
        Err(TokenFailure::Login(error)) => Err(error),
    }
}

fn reason(failure: &OAuthFailure) -> String {
    if failure.description.is_empty() { failure.code.clone() } else { failure.description.clone() }
}
