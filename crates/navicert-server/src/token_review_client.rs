//! Asking another server whose a token is, and reading its answer as kube-apiserver would (S208–S216). For tokens that are
//! not ours to judge, such as those of service accounts (S276).

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited};
use navicert_client::transport::{Body, ResponseBody, Timer, Transport, TransportError};
use navicert_types::token_review::{Answer, KIND, Question, UserInfo, Version};

/// How often a server is asked that says it is overwhelmed, broken or late (S215).
const ATTEMPTS: u32 = 5;
/// How often it is asked that names a time to come back.
const RETURNS: u32 = 10;
/// Before the second attempt; each pause is half as long again as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// For all of it.
const LIMIT: Duration = Duration::from_secs(30);
/// A larger answer is none.
const MOST_BYTES: usize = 1 << 20;

/// Asks one server.
#[derive(Clone, Debug)]
pub struct TokenReviewClient {
    transport: Transport,
    path: String,
    version: Version,
    /// For whom a token is that the server accepts without saying for whom.
    implicit: Vec<String>,
    timer: Arc<dyn Timer>,
}

/// What a server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reviewed {
    /// Somebody's.
    Authenticated {
        /// Whose.
        user: UserInfo,
        /// For whom, of those that were asked about.
        audiences: Vec<String>,
    },
    /// Nobody's, or not for those that were asked about.
    Nobody,
}

/// Why nothing is known about a token. No text here holds any of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// There is no answer.
    #[error("the server that reviews tokens cannot be asked")]
    Transport(#[source] TransportError),
    /// The answer is a refusal, whatever is in it.
    #[error("the server that reviews tokens answered {0}")]
    Status(u16),
    /// The answer is none.
    #[error("the server that reviews tokens gave no TokenReview: {0}")]
    Malformed(&'static str),
    /// The server could not find out.
    #[error("the server that reviews tokens could not say whose it is: {0}")]
    Unknown(String),
    /// It took too long.
    #[error("the server that reviews tokens took too long")]
    Late,
}

impl TokenReviewClient {
    /// Asks the API server itself, as a delegated authenticator does.
    pub fn of_api_server(transport: Transport, implicit: Vec<String>, timer: Arc<dyn Timer>) -> Self {
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        TokenReviewClient::new(transport, path, Version::V1, implicit, timer)
    }

    /// Asks at this path, in this version. `implicit` are the audiences of a server that does not name any (S214).
    pub fn new(
        transport: Transport,
        path: &str,
        version: Version,
        implicit: Vec<String>,
        timer: Arc<dyn Timer>,
    ) -> Self {
        TokenReviewClient { transport, path: path.to_owned(), version, implicit, timer }
    }

    /// Whose token is this? `wanted`: only if it is for one of these.
    ///
    /// # Errors
    /// Nobody can say.
    pub async fn review(&self, token: &str, wanted: &[String]) -> Result<Reviewed, ReviewError> {
        let audiences = wanted.iter().map(|audience| Cow::Borrowed(audience.as_str())).collect();
        let question = Question { version: self.version, token: Cow::Borrowed(token), audiences };
        let message = question.to_json();
        let late = self.timer.sleep(LIMIT);
        tokio::select! {
            biased;
            answer = self.insist(message.as_bytes()) => self.judge(answer?, wanted),
            () = late => Err(ReviewError::Late),
        }
    }

    /// Asks until there is an answer to be had, or no hope of one.
    async fn insist(&self, message: &[u8]) -> Result<Answer, ReviewError> {
        let mut pause = FIRST_PAUSE;
        let mut attempt = 1;
        loop {
            let error = match self.ask_and_return(message).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let may_help = match &error {
                ReviewError::Status(code) => [429, 500, 504].contains(code),
                ReviewError::Transport(error) => !is_our_own(error),
                _ => false,
            };
            if !may_help || attempt == ATTEMPTS {
                return Err(error);
            }
            attempt += 1;
            self.timer.sleep(pause).await;
            pause = pause.saturating_mul(3) / 2;
        }
    }

    /// Asks, and comes back as often as the server asks for it.
    async fn ask_and_return(&self, message: &[u8]) -> Result<Answer, ReviewError> {
        let mut returns = 0;
        loop {
            let response = self.ask(message).await?;
            let code = response.status().as_u16();
            if response.status().is_success() {
                return self.read(response).await;
            }
            match retry_after(&response).filter(|_| code == 429 || code >= 500) {
                Some(pause) if returns < RETURNS => {
                    returns += 1;
                    self.timer.sleep(pause).await;
                }
                _ => return Err(ReviewError::Status(code)),
            }
        }
    }

    async fn ask(&self, message: &[u8]) -> Result<Response<ResponseBody>, ReviewError> {
        let mut request = Request::new(Body::from(message.to_vec()));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.path.parse().map_err(|_| ReviewError::Malformed("no path to ask at"))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(http::header::ACCEPT, HeaderValue::from_static("application/json, */*"));
        self.transport.send(request).await.map_err(ReviewError::Transport)
    }

    async fn read(&self, response: Response<ResponseBody>) -> Result<Answer, ReviewError> {
        let body = Limited::new(response.into_body(), MOST_BYTES).collect().await;
        let body = body.map_err(|_| ReviewError::Malformed("it breaks off or is too large"))?.to_bytes();
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Err(ReviewError::Malformed("it is empty or no JSON object"));
        }
        let answer: Answer = serde_json::from_slice(&body)
            .map_err(|_| ReviewError::Malformed("it is no JSON of that form"))?;
        match (answer.kind.as_str(), answer.api_version.as_str()) {
            ("", "") => Ok(answer),
            (KIND, version) if version == self.version.api_version() => Ok(answer),
            _ => Err(ReviewError::Malformed("it is another kind or version than was asked for")),
        }
    }

    /// S213, S214
    fn judge(&self, answer: Answer, wanted: &[String]) -> Result<Reviewed, ReviewError> {
        let status = answer.status;
        let audiences = if wanted.is_empty() {
            Vec::new()
        } else {
            let got = if status.audiences.is_empty() { self.implicit.clone() } else { status.audiences };
            let both: Vec<String> = got.into_iter().filter(|audience| wanted.contains(audience)).collect();
            if both.is_empty() {
                return Ok(Reviewed::Nobody);
            }
            both
        };
        match (status.authenticated, status.error.is_empty()) {
            (true, _) => Ok(Reviewed::Authenticated { user: status.user, audiences }),
            (false, true) => Ok(Reviewed::Nobody),
            (false, false) => Err(ReviewError::Unknown(status.error)),
        }
    }
}

/// What asking again does not change.
fn is_our_own(error: &TransportError) -> bool {
    matches!(
        error,
        TransportError::Credentials(_)
            | TransportError::CertificateRefused { .. }
            | TransportError::Identity(_)
            | TransportError::Path(_)
            | TransportError::OtherServer { .. }
    )
}

fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}
