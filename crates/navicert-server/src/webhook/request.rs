//! From a request's body to a question: within a limit of bytes and of time, JSON, a `TokenReview`, a token (S217).

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use navicert_types::token_review::{Question, QuestionError};

use super::Settings;
use crate::limits::within;
use crate::problem::Problem;

/// The whole body. Mostly it comes in one piece, and then nothing is copied.
pub(super) async fn read(mut body: Incoming, settings: &Settings) -> Result<Bytes, Problem> {
    let most = settings.most_bytes;
    let announced = body.size_hint().lower();
    if announced > most as u64 {
        return Err(Problem::TooLarge);
    }
    let reading = async {
        let mut whole: Option<BytesMut> = None;
        let mut first = Bytes::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Problem::Malformed("the body breaks off"))?;
            let Ok(data) = frame.into_data() else { continue };
            let so_far = whole.as_ref().map_or(first.len(), BytesMut::len);
            if so_far.saturating_add(data.len()) > most {
                return Err(Problem::TooLarge);
            }
            match &mut whole {
                Some(whole) => whole.extend_from_slice(&data),
                None if first.is_empty() => first = data,
                None => {
                    let mut both = BytesMut::with_capacity(first.len().saturating_add(data.len()));
                    both.extend_from_slice(&first);
                    both.extend_from_slice(&data);
                    whole = Some(both);
                }
            }
            if body.is_end_stream() {
                break;
            }
        }
        Ok(whole.map_or(first, BytesMut::freeze))
    };
    within(settings.body_timeout, reading).await.unwrap_or(Err(Problem::SlowBody))
}

/// What is asked.
pub(super) fn question(body: &[u8]) -> Result<Question<'_>, Problem> {
    Question::parse(body).map_err(|error| {
        Problem::Malformed(match error {
            QuestionError::Malformed => "the body is no TokenReview in JSON",
            QuestionError::Kind => "kind: expected `TokenReview`",
            QuestionError::Version => {
                "apiVersion: expected `authentication.k8s.io/v1` or `authentication.k8s.io/v1beta1`"
            }
            QuestionError::NoToken => "spec.token: required field is missing",
        })
    })
}
