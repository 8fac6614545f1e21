//! The request: a token, and for whom it should be. It borrows from the message: on the way of every API request, copies
//! would be the larger part of the work.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;

use super::{KIND, Version};

/// What is asked. Its `Debug` does not show the token.
pub struct Question<'m> {
    /// In which version.
    pub version: Version,
    /// The token; never empty.
    pub token: Cow<'m, str>,
    /// For whom it should be; empty: for the API server itself.
    pub audiences: Vec<Cow<'m, str>>,
}

/// Why a message is no question (S217). No text here holds any of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// Not JSON, or fields of other types.
    #[error("the body is no TokenReview in JSON")]
    Malformed,
    /// Another or no kind.
    #[error("kind: expected `TokenReview`")]
    Kind,
    /// Another or no version.
    #[error("apiVersion: expected `authentication.k8s.io/v1` or `authentication.k8s.io/v1beta1`")]
    Version,
    /// No token.
    #[error("spec.token: required field is missing")]
    NoToken,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'m> {
    #[serde(borrow, default)]
    api_version: Option<Text<'m>>,
    #[serde(borrow, default)]
    kind: Option<Text<'m>>,
    #[serde(borrow, default)]
    spec: Option<Spec<'m>>,
}

#[derive(Deserialize)]
struct Spec<'m> {
    #[serde(borrow, default)]
    token: Option<Text<'m>>,
    #[serde(borrow, default)]
    audiences: Option<Vec<Text<'m>>>,
}

/// Borrowed unless it has escapes.
#[derive(Deserialize)]
struct Text<'m>(#[serde(borrow)] Cow<'m, str>);

impl<'m> Question<'m> {
    /// Reads a message. Fields it does not know are passed over; a repeated one is an error.
    ///
    /// ```
    /// use navicert_types::token_review::{Question, Version};
    ///
    /// let message = br#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"t"}}"#;
    /// let question = Question::parse(message).unwrap();
    /// assert_eq!((question.version, &*question.token), (Version::V1, "t"));
    /// ```
    ///
    /// # Errors
    /// It is no `TokenReview` with a token.
    pub fn parse(message: &'m [u8]) -> Result<Self, QuestionError> {
        if message.trim_ascii_start().first() != Some(&b'{') {
            return Err(QuestionError::Malformed);
        }
        let message: Message<'m> = serde_json::from_slice(message).map_err(|_| QuestionError::Malformed)?;
        if message.kind.is_none_or(|kind| kind.0 != KIND) {
            return Err(QuestionError::Kind);
        }
        let version = message.api_version.and_then(|version| Version::of(&version.0));
        let version = version.ok_or(QuestionError::Version)?;
        let (token, audiences) = message.spec.map_or((None, None), |spec| (spec.token, spec.audiences));
        let token = token.map(|token| token.0).filter(|token| !token.is_empty());
        let audiences = audiences.unwrap_or_default().into_iter().map(|audience| audience.0).collect();
        Ok(Question { version, token: token.ok_or(QuestionError::NoToken)?, audiences })
    }

    /// The message, as kube-apiserver writes it (S209).
    pub fn to_json(&self) -> zeroize::Zeroizing<String> {
        let spec = if self.audiences.is_empty() {
            serde_json::json!({"token": self.token})
        } else {
            serde_json::json!({"token": self.token, "audiences": self.audiences})
        };
        let message = serde_json::json!({
            "kind": KIND, "apiVersion": self.version.api_version(), "metadata": {}, "spec": spec,
            "status": {"user": {}},
        });
        zeroize::Zeroizing::new(message.to_string())
    }
}

impl fmt::Debug for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Question { version, token: _, audiences } = self;
        f.debug_struct("Question")
            .field("version", version)
            .field("audiences", audiences)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S209, S217
    #[test]
    fn what_api_servers_send_is_understood_and_what_is_no_question_is_not() {
        for version in Version::ALL {
            let sent = Question { version, token: "a\"b".into(), audiences: vec!["api".into()] };
            let json = sent.to_json();
            let read = Question::parse(json.as_bytes()).unwrap();
            assert_eq!((read.version, &*read.token, read.audiences), (version, "a\"b", sent.audiences));
        }
        let old = r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1",
            "metadata":{"creationTimestamp":null},"spec":{"token":"t","audiences":null},"status":{"user":{}},"more":[1]}"#;
        assert!(Question::parse(old.as_bytes()).unwrap().audiences.is_empty());
        let head = r#""kind":"TokenReview","apiVersion":"authentication.k8s.io/v1""#;
        for (message, error) in [
            ("".to_owned(), QuestionError::Malformed),
            ("[]".to_owned(), QuestionError::Malformed),
            (
                format!("[\"{}\",\"TokenReview\",[\"t\"]]", Version::V1.api_version()),
                QuestionError::Malformed,
            ),
            ("{}".to_owned(), QuestionError::Kind),
            (format!("{{{head}}}x"), QuestionError::Malformed),
            (format!("{{{head},\"spec\":{{\"token\":5}}}}"), QuestionError::Malformed),
            (format!("{{{head},\"spec\":{{\"token\":\"a\",\"token\":\"b\"}}}}"), QuestionError::Malformed),
            (format!("{{{head}}}"), QuestionError::NoToken),
            (format!("{{{head},\"spec\":{{\"token\":\"\"}}}}"), QuestionError::NoToken),
            (format!("{{{head},\"spec\":{{\"Token\":\"t\"}}}}"), QuestionError::NoToken),
            (r#"{"kind":"Pod","apiVersion":"v1","spec":{}}"#.to_owned(), QuestionError::Kind),
            (
                r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1alpha1","spec":{}}"#
                    .to_owned(),
                QuestionError::Version,
            ),
            (r#"{"kind":"TokenReview","spec":{"token":"t"}}"#.to_owned(), QuestionError::Version),
        ] {
            assert_eq!(Question::parse(message.as_bytes()).unwrap_err(), error, "{message}");
        }
    }

    #[test]
    fn a_question_does_not_show_its_token() {
        let question = Question { version: Version::V1, token: "s3cret".into(), audiences: Vec::new() };
        assert!(!format!("{question:?}").contains("s3cret"));
    }
}
