//! Subject tokens: from a file, a variable or the token service of a CI system. Read at each use.

use http::HeaderValue;
use navicert_types::Secret;
use navicert_types::tree::{Syntax, parse};
use zeroize::Zeroizing;

use super::GrantRun;
use crate::error::LoginError;
use crate::request::TokenSource;

impl GrantRun<'_> {
    pub(super) async fn subject_token(&self, source: &TokenSource) -> Result<Secret<String>, LoginError> {
        let token = match source {
            TokenSource::File(path) => {
                let bytes = std::fs::read(path).map(Zeroizing::new).map_err(|error| {
                    LoginError::SubjectToken(format!(
                        "failed to read the token file `{}`: {error}",
                        path.display()
                    ))
                })?;
                Secret::new(String::from_utf8_lossy(&bytes).trim().to_owned())
            }
            TokenSource::Variable(name) => {
                let missing = || LoginError::SubjectToken(format!("missing environment variable `{name}`"));
                Secret::new(self.context.text_variable(name).ok_or_else(missing)?.trim().to_owned())
            }
            TokenSource::GithubActions => self.github_token().await?,
        };
        if token.is_empty() {
            return Err(LoginError::SubjectToken(format!("the token of {} is empty", source.as_text())));
        }
        Ok(token)
    }

    async fn github_token(&self) -> Result<Secret<String>, LoginError> {
        let variables = ["ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"]
            .map(|name| self.context.text_variable(name));
        let [Some(url), Some(bearer)] = variables else {
            return Err(LoginError::SubjectToken(
                "no token service of GitHub Actions; the job needs `permissions: id-token: write`".to_owned(),
            ));
        };
        let audience = self.request.parameters.audiences.first().map_or("", String::as_str);
        let mut form = crate::provider::Form::new();
        if !audience.is_empty() {
            form.add("audience", audience);
        }
        let separator = if url.contains('?') { "&" } else { "?" };
        let url = if audience.is_empty() { url } else { format!("{url}{separator}{}", form.as_str()) };
        let bearer = Zeroizing::new(format!("bearer {bearer}"));
        let invalid = |_| LoginError::SubjectToken("invalid ACTIONS_ID_TOKEN_REQUEST_TOKEN".to_owned());
        let mut header = HeaderValue::try_from(bearer.as_str()).map_err(invalid)?;
        header.set_sensitive(true);
        let answer = self.client.http.get_with_bearer(&url, header).await.map_err(|failure| failure.error)?;
        let body = parse(&answer.body, Syntax::Json).ok().filter(|_| answer.status == 200);
        let value = body.as_ref().and_then(|body| body.as_mapping()?.last("value")?.value.as_str());
        let missing = || {
            LoginError::SubjectToken(format!(
                "the token service of GitHub Actions answered {} without a token",
                answer.status
            ))
        };
        value.map(|value| Secret::new(value.to_owned())).ok_or_else(missing)
    }
}
