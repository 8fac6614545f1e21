//! Reads and parses a TokenReview request, within limits of size and time.
// S217

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use navicert_types::token_review::{TokenReviewRequest, TokenReviewRequestError};

use super::WebhookSettings;
use crate::limits::with_timeout;
use crate::problem::Problem;

/// Reads the body. Copies only if it arrives in several frames.
pub(super) async fn read_body(mut body: Incoming, settings: &WebhookSettings) -> Result<Bytes, Problem> {
    let limit = settings.max_body_bytes;
    let announced = body.size_hint().lower();
    if announced > limit as u64 {
        return Err(Problem::BodyTooLarge);
    }
    let reading = async {
        let mut whole: Option<BytesMut> = None;
        let mut first = Bytes::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Problem::Malformed("incomplete request body"))?;
            let Ok(data) = frame.into_data() else { continue };
            let so_far = whole.as_ref().map_or(first.len(), BytesMut::len);
            if so_far.saturating_add(data.len()) > limit {
                return Err(Problem::BodyTooLarge);
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
    with_timeout(settings.body_timeout, reading).await.unwrap_or(Err(Problem::BodyTimeout))
}

/// Parses the TokenReview.
pub(super) fn parse_review(body: &[u8]) -> Result<TokenReviewRequest<'_>, Problem> {
    TokenReviewRequest::parse(body).map_err(|error| {
        Problem::Malformed(match error {
            TokenReviewRequestError::Malformed => "the body is not a JSON TokenReview",
            TokenReviewRequestError::Kind => "kind: expected `TokenReview`",
            TokenReviewRequestError::Version => {
                "apiVersion: expected `authentication.k8s.io/v1` or `authentication.k8s.io/v1beta1`"
            }
            TokenReviewRequestError::NoToken => "spec.token: missing required field",
        })
    })
}
