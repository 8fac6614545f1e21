//! Answers of token endpoints: tokens, or an error.

use std::time::Duration;

use navicert_types::{Secret, Timestamp};

use super::error::OAuthError;
use super::object::{JsonObject, clean};
use super::provider_http::HttpAnswer;

/// The answer of a token endpoint. `Debug` shows no token.
#[derive(Clone, Debug)]
pub struct TokenAnswer {
    /// `id_token`.
    pub id_token: Option<Secret<String>>,
    /// `access_token`.
    pub access_token: Option<Secret<String>>,
    /// `refresh_token`.
    pub refresh_token: Option<Secret<String>>,
    /// `scope`.
    pub scope: Option<String>,
    /// `expires_in`.
    pub expires_in: Option<Duration>,
    /// `refresh_expires_in`.
    pub refresh_expires_in: Option<Duration>,
    /// `issued_token_type`.
    pub issued_token_type: Option<String>,
    /// The provider's time.
    pub date: Option<Timestamp>,
    /// When it was received, by the local clock.
    pub received_at: Timestamp,
}

impl TokenAnswer {
    /// Reads an answer.
    ///
    /// # Errors
    /// It is not a successful answer with a JSON object, or its token is not a bearer token.
    pub fn read(answer: &HttpAnswer, host: &str) -> Result<Self, OAuthError> {
        let object = JsonObject::read(&answer.body).filter(|_| (200..300).contains(&answer.status));
        let object = object.ok_or_else(|| answer.unexpected(host))?;
        let token_type = object.text("token_type").unwrap_or_else(|| "Bearer".to_owned());
        if !token_type.eq_ignore_ascii_case("Bearer") && !token_type.eq_ignore_ascii_case("N_A") {
            return Err(OAuthError::TokenType { host: host.to_owned(), found: clean(&token_type, 32) });
        }
        Ok(TokenAnswer {
            id_token: object.secret("id_token"),
            access_token: object.secret("access_token"),
            refresh_token: object.secret("refresh_token"),
            scope: object.text("scope"),
            expires_in: object.seconds("expires_in"),
            refresh_expires_in: object.seconds("refresh_expires_in").filter(|duration| !duration.is_zero()),
            issued_token_type: object.text("issued_token_type"),
            date: answer.date,
            received_at: answer.received_at,
        })
    }
}

/// An error answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthFailure {
    /// The status; 0 for an error that came through the browser.
    pub status: u16,
    /// `error`, cut and without control characters.
    pub code: String,
    /// `error_description`, likewise.
    pub description: String,
}

impl OAuthFailure {
    /// The error of an answer; `None` for a successful one, and for one that has no `error`.
    pub fn read(answer: &HttpAnswer) -> Option<Self> {
        if answer.status < 400 {
            return None;
        }
        let object = JsonObject::read(&answer.body)?;
        let description = object.text("error_description").unwrap_or_default();
        let failure = OAuthFailure::new(&object.text("error")?, &description);
        Some(OAuthFailure { status: answer.status, ..failure })
    }

    /// The error of an authorization response.
    pub fn new(code: &str, description: &str) -> Self {
        OAuthFailure { status: 0, code: clean(code, 64), description: clean(description, 300) }
    }

    /// Whether the session has ended: only the person can get another one.
    pub fn ends_session(&self) -> bool {
        match self.code.as_str() {
            "invalid_grant" | "interaction_required" | "login_required" | "consent_required" => true,
            // dex: "Refresh token is invalid or has already been claimed by another client", "Refresh token expired".
            "invalid_request" => {
                let description = self.description.to_ascii_lowercase();
                description.starts_with("refresh token")
                    && ["invalid", "expired"].iter().any(|word| description.contains(word))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // L609, L1302
    #[test]
    fn texts_of_the_provider_are_cleaned_and_cut() {
        let failure = OAuthFailure::new("x\u{1b}[2J", &format!("\u{202e}{}\n", "d".repeat(1000)));
        assert_eq!(failure.code, "xU+001B[2J");
        assert!(failure.description.chars().count() <= 305, "{}", failure.description.len());
        assert!(!failure.description.contains(['\n', '\u{202e}']));
    }

    // L804
    #[test]
    fn rejected_refresh_token_ends_the_session_whatever_its_code() {
        for (code, description, expected) in [
            ("invalid_grant", "", true),
            (
                "invalid_request",
                "Refresh token is invalid or has already been claimed by another client.",
                true,
            ),
            ("invalid_request", "Refresh token expired.", true),
            ("invalid_request", "No refresh token is found in request.", false),
            ("invalid_request", "", false),
            ("not_allowed", "Refresh token is invalid", false),
        ] {
            assert_eq!(OAuthFailure::new(code, description).ends_session(), expected, "{code} {description}");
        }
    }
}
