//! Authorization code without a listener: the person opens the address anywhere, and pastes the code or the address of the
//! last page.

use navicert_go::percent::{self, Plus};
use navicert_types::Secret;

use super::parameters::redirects_to_localhost;
use super::{GrantRun, prompt};
use crate::cache::Entry;
use crate::error::LoginError;
use crate::provider::Metadata;
use crate::receiver::AnswerError;

/// The longest code.
const MAX_CODE_CHARS: usize = 4096;

impl GrantRun<'_> {
    pub(super) async fn keyboard(&self) -> Result<Entry, LoginError> {
        if !self.person.can_type {
            return Err(LoginError::LoginNeeded {
                host: self.request.host().to_owned(),
                command: self.request.command_line(),
            });
        }
        let metadata = self.client.metadata().await?;
        let redirect_uri = self.pasted_redirect_uri();
        let secrets = self.login_secrets(&metadata)?;
        let url = self.authorization_url(&metadata, &secrets, &redirect_uri).await?;
        let messages = &self.context.messages;
        messages.show(&format!("To log in to {}, open {}", self.request.host(), url.expose()));
        messages.show(
            "The last page does not load, which is expected. Paste its whole address, or the code that the provider shows.",
        );
        let pasted = prompt::read_line("Address or code: ", self.context, self.request.login_limit())?;
        let code = match parse_pasted(&pasted, &secrets.state, &metadata)? {
            Ok(code) => code,
            Err(error) => return Err(self.answer_error(error, &metadata, &redirect_uri)),
        };
        self.exchange_code(&code, &secrets, &redirect_uri).await
    }

    fn pasted_redirect_uri(&self) -> String {
        match &self.request.browser.redirect_url {
            Some(url) => url.clone(),
            None if redirects_to_localhost(self.request) => "http://localhost:1".to_owned(),
            None => "http://127.0.0.1:1/callback".to_owned(),
        }
    }
}

/// The code in pasted text: the code itself, or the address of the last page, whose state and issuer are checked.
pub(super) fn parse_pasted(
    pasted: &Secret<String>,
    state: &Secret<String>,
    metadata: &Metadata,
) -> Result<Result<Secret<String>, AnswerError>, LoginError> {
    let text = pasted.expose().trim().trim_matches(['"', '\'']);
    let is_code = |code: &str| {
        (1..=MAX_CODE_CHARS).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if !text.contains("://") {
        return if is_code(text) { Ok(Ok(Secret::new(text.to_owned()))) } else { Err(LoginError::Pasted) };
    }
    let (_, query) = text.split_once('?').ok_or(LoginError::Pasted)?;
    let query = query.split('#').next().unwrap_or_default();
    let single = |wanted: &str| -> Result<Option<String>, LoginError> {
        let mut found = None;
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if name != wanted {
                continue;
            }
            let decoded = percent::decode(value, Plus::Space).ok_or(LoginError::Pasted)?;
            let decoded = String::from_utf8(decoded.into_owned()).map_err(|_| LoginError::Pasted)?;
            if found.replace(decoded).is_some() {
                return Err(LoginError::Pasted);
            }
        }
        Ok(found)
    };
    let answered = single("state")?.unwrap_or_default();
    let is_same =
        aws_lc_rs::constant_time::verify_slices_are_equal(answered.as_bytes(), state.expose().as_bytes());
    if is_same.is_err() {
        return Err(LoginError::Pasted);
    }
    let issuer = single("iss")?;
    let is_missing = issuer.is_none() && metadata.authorization_response_iss_parameter_supported;
    if is_missing || issuer.as_ref().is_some_and(|issuer| *issuer != metadata.issuer) {
        return Ok(Err(AnswerError::MixUp { answered: issuer, expected: metadata.issuer.clone() }));
    }
    if let Some(error) = single("error")? {
        return Ok(Err(AnswerError::Provider { error, description: single("error_description")? }));
    }
    match single("code")? {
        Some(code) if is_code(&code) => Ok(Ok(Secret::new(code))),
        _ => Err(LoginError::Pasted),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::request::{Form, LoginRequest};

    fn metadata(sends_issuer: bool) -> Metadata {
        let document = json!({
            "issuer": "https://i", "token_endpoint": "https://i/t", "jwks_uri": "https://i/k",
            "authorization_response_iss_parameter_supported": sends_issuer,
        });
        let request = LoginRequest::new(Form::Own, "https://i", "c");
        Metadata::read(document.to_string().as_bytes(), "", &request).unwrap()
    }

    fn parse(text: &str, sends_issuer: bool) -> Result<Result<Secret<String>, AnswerError>, LoginError> {
        let secret = |text: &str| Secret::new(text.to_owned());
        parse_pasted(&secret(text), &secret("st"), &metadata(sends_issuer))
    }

    // L741, L742
    #[test]
    fn accepts_a_code_or_the_address_of_the_last_page() {
        for text in [
            " abc ",
            "'abc'",
            "http://127.0.0.1:1/callback?code=abc&state=st",
            "\"http://x/?state=st&iss=https%3A%2F%2Fi&code=abc#f\"",
        ] {
            assert_eq!(parse(text, false).unwrap().unwrap().expose(), "abc", "{text}");
        }
    }

    // L741, L1228
    #[test]
    fn rejects_other_states_repeated_parameters_and_other_issuers() {
        for text in [
            "",
            "two words",
            "http://x/callback",
            "http://x/?code=abc",
            "http://x/?code=abc&state=other",
            "http://x/?code=abc&state=st&state=st",
            "http://x/?code=a&code=b&state=st",
            "http://x/?code=&state=st",
            "http://x/?code=%zz&state=st",
        ] {
            assert_eq!(parse(text, false).unwrap_err(), LoginError::Pasted, "{text}");
        }
        let mix_up = |text: &str, sends: bool| {
            matches!(parse(text, sends).unwrap().unwrap_err(), AnswerError::MixUp { .. })
        };
        assert!(mix_up("http://x/?code=a&state=st&iss=https://evil", false));
        assert!(mix_up("http://x/?code=a&state=st", true));
        let error = parse("http://x/?error=access_denied&error_description=a+b&state=st", false);
        let expected =
            AnswerError::Provider { error: "access_denied".to_owned(), description: Some("a b".to_owned()) };
        assert_eq!(error.unwrap().unwrap_err(), expected);
    }
}
