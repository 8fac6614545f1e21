//! Sends `TokenReview` requests and evaluates the response as kube-apiserver does. For tokens of unknown issuers,
//! such as service account tokens.
// S208–S216, S276

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited};
use navicert_client::transport::{Body, ResponseBody, Timer, Transport, TransportError};
use navicert_types::token_review::{
    KIND, TokenReviewRequest, TokenReviewResponse, TokenReviewVersion, UserInfo,
};

/// Maximum attempts on a response of 429, 500 or 504, or a failed connection.
// S215
const MAX_ATTEMPTS: u32 = 5;
/// Maximum number of `Retry-After` responses honored per attempt.
const MAX_RETRY_AFTER_RESPONSES: u32 = 10;
/// Delay before the second attempt; grows by half each time.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
/// Time limit of a review with all retries.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a response.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// Client of one token review server.
#[derive(Clone, Debug)]
pub struct TokenReviewClient {
    transport: Transport,
    path: String,
    version: TokenReviewVersion,
    /// Audiences of a token when the server's response names none.
    implicit_audiences: Vec<String>,
    /// Audiences of reviews that name none of their own.
    pub(crate) required_audiences: Vec<String>,
    timer: Arc<dyn Timer>,
}

/// Result of a token review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewOutcome {
    /// The token is valid.
    Authenticated {
        /// Its user.
        user: UserInfo,
        /// The requested audiences that the token is valid for.
        audiences: Vec<String>,
    },
    /// The token is invalid, or not valid for the requested audiences.
    Unauthenticated,
}

/// A token review failed. No message contains the token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenReviewError {
    /// The request could not be sent.
    #[error("failed to send the TokenReview request")]
    Transport(#[source] TransportError),
    /// The server responded with an error status.
    #[error("TokenReview request failed with status {0}")]
    Status(u16),
    /// The response is not a TokenReview.
    #[error("invalid TokenReview response: {0}")]
    Malformed(&'static str),
    /// The server reported an error.
    #[error("TokenReview server reported an error: {0}")]
    Unknown(String),
    /// The time limit was exceeded.
    #[error("TokenReview request timed out")]
    Timeout,
}

impl TokenReviewClient {
    /// Sends reviews to the API server, as a delegated authenticator does.
    pub fn for_api_server(
        transport: Transport,
        implicit_audiences: Vec<String>,
        timer: Arc<dyn Timer>,
    ) -> Self {
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        TokenReviewClient::new(transport, path, TokenReviewVersion::V1, implicit_audiences, timer)
    }

    /// Sends reviews to this path in this version. `implicit_audiences` are the audiences of a server whose response names
    /// none.
    // S214
    pub fn new(
        transport: Transport,
        path: &str,
        version: TokenReviewVersion,
        implicit_audiences: Vec<String>,
        timer: Arc<dyn Timer>,
    ) -> Self {
        let (path, required_audiences) = (path.to_owned(), Vec::new());
        TokenReviewClient { transport, path, version, implicit_audiences, required_audiences, timer }
    }

    /// Sets the audiences that a [`TokenReviewer`](crate::proxy::service_accounts::TokenReviewer) requires: a token must be
    /// valid for one of them. By default the API server's own.
    #[must_use]
    pub fn with_required_audiences(mut self, audiences: Vec<String>) -> Self {
        self.required_audiences = audiences;
        self
    }

    /// Reviews a token. With `required`, the token must be valid for one of these audiences.
    ///
    /// # Errors
    /// The review failed.
    pub async fn review(&self, token: &str, required: &[String]) -> Result<ReviewOutcome, TokenReviewError> {
        let audiences = required.iter().map(|audience| Cow::Borrowed(audience.as_str())).collect();
        let request = TokenReviewRequest { version: self.version, token: Cow::Borrowed(token), audiences };
        let message = request.to_json();
        let deadline = self.timer.sleep(REVIEW_TIMEOUT);
        tokio::select! {
            biased;
            review = self.send_with_retries(message.as_bytes()) => self.evaluate(review?, required),
            () = deadline => Err(TokenReviewError::Timeout),
        }
    }

    /// Sends until a response arrives or a retry is pointless.
    async fn send_with_retries(&self, message: &[u8]) -> Result<TokenReviewResponse, TokenReviewError> {
        let mut pause = INITIAL_BACKOFF;
        let mut attempt = 1;
        loop {
            let error = match self.send_honoring_retry_after(message).await {
                Ok(review) => return Ok(review),
                Err(error) => error,
            };
            let is_retryable = match &error {
                TokenReviewError::Status(code) => [429, 500, 504].contains(code),
                TokenReviewError::Transport(error) => !is_permanent(error),
                _ => false,
            };
            if !is_retryable || attempt == MAX_ATTEMPTS {
                return Err(error);
            }
            attempt += 1;
            self.timer.sleep(pause).await;
            pause = pause.saturating_mul(3) / 2;
        }
    }

    /// Sends, and repeats after `Retry-After` responses.
    async fn send_honoring_retry_after(
        &self,
        message: &[u8],
    ) -> Result<TokenReviewResponse, TokenReviewError> {
        let mut retries = 0;
        loop {
            let response = self.send(message).await?;
            let code = response.status().as_u16();
            if response.status().is_success() {
                return self.read(response).await;
            }
            match retry_after(&response).filter(|_| code == 429 || code >= 500) {
                Some(pause) if retries < MAX_RETRY_AFTER_RESPONSES => {
                    retries += 1;
                    self.timer.sleep(pause).await;
                }
                _ => return Err(TokenReviewError::Status(code)),
            }
        }
    }

    async fn send(&self, message: &[u8]) -> Result<Response<ResponseBody>, TokenReviewError> {
        let mut request = Request::new(Body::from(message.to_vec()));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() =
            self.path.parse().map_err(|_| TokenReviewError::Malformed("invalid request path"))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(http::header::ACCEPT, HeaderValue::from_static("application/json, */*"));
        self.transport.send(request).await.map_err(TokenReviewError::Transport)
    }

    async fn read(&self, response: Response<ResponseBody>) -> Result<TokenReviewResponse, TokenReviewError> {
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await;
        let body = body.map_err(|_| TokenReviewError::Malformed("incomplete or too large"))?.to_bytes();
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Err(TokenReviewError::Malformed("empty or not a JSON object"));
        }
        let review: TokenReviewResponse =
            serde_json::from_slice(&body).map_err(|_| TokenReviewError::Malformed("not a TokenReview"))?;
        match (review.kind.as_str(), review.api_version.as_str()) {
            ("", "") => Ok(review),
            (KIND, version) if version == self.version.api_version() => Ok(review),
            _ => Err(TokenReviewError::Malformed("unexpected kind or version")),
        }
    }

    // S213, S214
    fn evaluate(
        &self,
        review: TokenReviewResponse,
        required: &[String],
    ) -> Result<ReviewOutcome, TokenReviewError> {
        let status = review.status;
        let audiences = if required.is_empty() {
            Vec::new()
        } else {
            let granted =
                if status.audiences.is_empty() { self.implicit_audiences.clone() } else { status.audiences };
            let matching: Vec<String> =
                granted.into_iter().filter(|audience| required.contains(audience)).collect();
            if matching.is_empty() {
                return Ok(ReviewOutcome::Unauthenticated);
            }
            matching
        };
        match (status.authenticated, status.error.is_empty()) {
            (true, _) => Ok(ReviewOutcome::Authenticated { user: status.user, audiences }),
            (false, true) => Ok(ReviewOutcome::Unauthenticated),
            (false, false) => Err(TokenReviewError::Unknown(status.error)),
        }
    }
}

/// Errors that a retry does not fix.
fn is_permanent(error: &TransportError) -> bool {
    matches!(
        error,
        TransportError::Credentials(_)
            | TransportError::CertificateRejected { .. }
            | TransportError::Identity(_)
            | TransportError::Path(_)
            | TransportError::OtherServer { .. }
    )
}

fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}
