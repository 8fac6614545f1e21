//! The request: a token and the audiences to check. It borrows from the message because it is on the path of every API
//! request, where copying would dominate the cost.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;

use super::{KIND, TokenReviewVersion};

/// A `TokenReview` request. Its `Debug` does not show the token.
pub struct TokenReviewRequest<'m> {
    /// The API version of the request.
    pub version: TokenReviewVersion,
    /// The token; never empty.
    pub token: Cow<'m, str>,
    /// The requested audiences; empty for the API server itself.
    pub audiences: Vec<Cow<'m, str>>,
}

/// Why a message is not a `TokenReview` request. No variant contains message content.
// S217
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenReviewRequestError {
    /// Not JSON, or a field has the wrong type.
    #[error("the body is not a JSON TokenReview")]
    Malformed,
    /// `kind` is missing or different.
    #[error("kind: expected `TokenReview`")]
    Kind,
    /// `apiVersion` is missing or unsupported.
    #[error("apiVersion: expected `authentication.k8s.io/v1` or `authentication.k8s.io/v1beta1`")]
    Version,
    /// `spec.token` is missing or empty.
    #[error("spec.token: missing required field")]
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

/// A string, borrowed unless it contains escapes.
#[derive(Deserialize)]
struct Text<'m>(#[serde(borrow)] Cow<'m, str>);

impl<'m> TokenReviewRequest<'m> {
    /// Parses a message. Unknown fields are ignored; a duplicate field is an error.
    ///
    /// ```
    /// use navicert_types::token_review::{TokenReviewRequest, TokenReviewVersion};
    ///
    /// let message = br#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"t"}}"#;
    /// let request = TokenReviewRequest::parse(message).unwrap();
    /// assert_eq!((request.version, &*request.token), (TokenReviewVersion::V1, "t"));
    /// ```
    ///
    /// # Errors
    /// The message is not a `TokenReview` with a token.
    pub fn parse(message: &'m [u8]) -> Result<Self, TokenReviewRequestError> {
        if message.trim_ascii_start().first() != Some(&b'{') {
            return Err(TokenReviewRequestError::Malformed);
        }
        let message: Message<'m> =
            serde_json::from_slice(message).map_err(|_| TokenReviewRequestError::Malformed)?;
        if message.kind.is_none_or(|kind| kind.0 != KIND) {
            return Err(TokenReviewRequestError::Kind);
        }
        let version =
            message.api_version.and_then(|version| TokenReviewVersion::from_api_version(&version.0));
        let version = version.ok_or(TokenReviewRequestError::Version)?;
        let (token, audiences) = message.spec.map_or((None, None), |spec| (spec.token, spec.audiences));
        let token = token.map(|token| token.0).filter(|token| !token.is_empty());
        let audiences = audiences.unwrap_or_default().into_iter().map(|audience| audience.0).collect();
        Ok(TokenReviewRequest { version, token: token.ok_or(TokenReviewRequestError::NoToken)?, audiences })
    }

    /// The message as kube-apiserver writes it.
    // S209
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

impl fmt::Debug for TokenReviewRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TokenReviewRequest { version, token: _, audiences } = self;
        f.debug_struct("TokenReviewRequest")
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
    fn parses_api_server_requests_and_rejects_other_messages() {
        for version in TokenReviewVersion::ALL {
            let sent = TokenReviewRequest { version, token: "a\"b".into(), audiences: vec!["api".into()] };
            let json = sent.to_json();
            let read = TokenReviewRequest::parse(json.as_bytes()).unwrap();
            assert_eq!((read.version, &*read.token, read.audiences), (version, "a\"b", sent.audiences));
        }
        let old = r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1",
            "metadata":{"creationTimestamp":null},"spec":{"token":"t","audiences":null},"status":{"user":{}},"more":[1]}"#;
        assert!(TokenReviewRequest::parse(old.as_bytes()).unwrap().audiences.is_empty());
        let head = r#""kind":"TokenReview","apiVersion":"authentication.k8s.io/v1""#;
        for (message, error) in [
            ("".to_owned(), TokenReviewRequestError::Malformed),
            ("[]".to_owned(), TokenReviewRequestError::Malformed),
            (
                format!("[\"{}\",\"TokenReview\",[\"t\"]]", TokenReviewVersion::V1.api_version()),
                TokenReviewRequestError::Malformed,
            ),
            ("{}".to_owned(), TokenReviewRequestError::Kind),
            (format!("{{{head}}}x"), TokenReviewRequestError::Malformed),
            (format!("{{{head},\"spec\":{{\"token\":5}}}}"), TokenReviewRequestError::Malformed),
            (
                format!("{{{head},\"spec\":{{\"token\":\"a\",\"token\":\"b\"}}}}"),
                TokenReviewRequestError::Malformed,
            ),
            (format!("{{{head}}}"), TokenReviewRequestError::NoToken),
            (format!("{{{head},\"spec\":{{\"token\":\"\"}}}}"), TokenReviewRequestError::NoToken),
            (format!("{{{head},\"spec\":{{\"Token\":\"t\"}}}}"), TokenReviewRequestError::NoToken),
            (r#"{"kind":"Pod","apiVersion":"v1","spec":{}}"#.to_owned(), TokenReviewRequestError::Kind),
            (
                r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1alpha1","spec":{}}"#
                    .to_owned(),
                TokenReviewRequestError::Version,
            ),
            (r#"{"kind":"TokenReview","spec":{"token":"t"}}"#.to_owned(), TokenReviewRequestError::Version),
        ] {
            assert_eq!(TokenReviewRequest::parse(message.as_bytes()).unwrap_err(), error, "{message}");
        }
    }

    #[test]
    fn debug_of_a_request_does_not_show_the_token() {
        let request = TokenReviewRequest {
            version: TokenReviewVersion::V1,
            token: "s3cret".into(),
            audiences: Vec::new(),
        };
        assert!(!format!("{request:?}").contains("s3cret"));
    }
}
