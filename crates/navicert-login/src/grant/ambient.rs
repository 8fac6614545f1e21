//! Ambient tokens: the subject token itself is handed over, for clusters that trust its issuer.

use navicert_types::Timestamp;

use super::GrantRun;
use crate::cache::Entry;
use crate::check::unverified_claims;
use crate::error::LoginError;
use crate::request::TokenKind;

impl GrantRun<'_> {
    pub(super) async fn ambient(&self) -> Result<Entry, LoginError> {
        let missing = || LoginError::Usage("missing --subject-token".to_owned());
        let source = self.request.exchange.subject.as_ref().ok_or_else(missing)?;
        let token = self.subject_token(source).await?;
        let invalid =
            |why: &str| LoginError::SubjectToken(format!("the token of {} {why}", source.as_text()));
        let claims = unverified_claims(&token).ok_or_else(|| invalid("is not a JWT"))?;
        let expires = claims.get("exp").and_then(serde_json::Value::as_i64);
        let expires = expires.and_then(|seconds| Timestamp::from_second(seconds).ok());
        let expires = expires.ok_or_else(|| invalid("has no expiry"))?;
        let now = self.now();
        if expires <= now {
            return Err(invalid("has expired"));
        }
        // The issuer's clock is not known, and its token says when it was issued.
        let mut entry = Entry::new(self.key.clone(), now);
        entry.local_expiry = expires;
        let subject = claims.get("sub").and_then(serde_json::Value::as_str).unwrap_or_default();
        entry.subject = crate::provider::clean(subject, 200);
        entry.display.clone_from(&entry.subject);
        match self.request.token_kind {
            TokenKind::Id => entry.id_token = Some(token),
            TokenKind::Access => entry.access_token = Some(token),
        }
        // Not stored: the source is read at each use, and always newer.
        Ok(entry)
    }
}
