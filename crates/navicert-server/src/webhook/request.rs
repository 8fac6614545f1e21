//! Reads and parses a TokenReview request, within limits of size and time.
// S217

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use navicert_types::token_review::{TokenReviewRequest, TokenReviewRequestError};

use super::WebhookSettings;
use crate::fairness::{Admission, BodyReservation, FlowId};
use crate::limits::ready_soon;
use crate::problem::Problem;

/// Reads the body. One that arrived with its head is in the connection's read buffer already; only a body that is still to
/// come is counted towards the client's share of memory, and has a time limit.
pub(super) async fn read_body(
    body: Incoming,
    settings: &WebhookSettings,
    flow: FlowId,
    admission: &Admission,
) -> Result<Bytes, Problem> {
    let limit = settings.max_body_bytes;
    let announced = body.size_hint().lower();
    if announced > limit as u64 {
        return Err(Problem::BodyTooLarge);
    }
    let mut receiving = ReceivedBody { body, limit, first: Bytes::new(), joined: None, reserved: None };
    if let Some(received) = ready_soon(pin!(receiving.receive())).await {
        return received;
    }
    let bytes = usize::try_from(announced).unwrap_or(usize::MAX).max(receiving.len());
    receiving.reserved = Some(admission.reserve_body(flow, bytes)?);
    let received = tokio::time::timeout(settings.body_timeout, receiving.receive()).await;
    received.unwrap_or(Err(Problem::BodyTimeout))
}

/// A body and what has arrived of it.
struct ReceivedBody<'a> {
    body: Incoming,
    /// Maximum size.
    limit: usize,
    /// The first frame; most bodies have no other.
    first: Bytes,
    /// All frames, if there are several.
    joined: Option<BytesMut>,
    reserved: Option<BodyReservation<'a>>,
}

impl ReceivedBody<'_> {
    /// Receives the rest. If this future is dropped early, another call continues where it stopped.
    async fn receive(&mut self) -> Result<Bytes, Problem> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|_| Problem::Malformed("incomplete request body"))?;
            let Ok(data) = frame.into_data() else { continue };
            self.append(data)?;
            if self.body.is_end_stream() {
                break;
            }
        }
        let first = std::mem::take(&mut self.first);
        Ok(self.joined.take().map_or(first, BytesMut::freeze))
    }

    /// Copies only from the second frame on.
    fn append(&mut self, data: Bytes) -> Result<(), Problem> {
        let bytes = self.len().saturating_add(data.len());
        if bytes > self.limit {
            return Err(Problem::BodyTooLarge);
        }
        if let Some(reserved) = &mut self.reserved {
            reserved.grow_to(bytes)?;
        }
        match &mut self.joined {
            Some(joined) => joined.extend_from_slice(&data),
            None if self.first.is_empty() => self.first = data,
            None => {
                let mut joined = BytesMut::with_capacity(bytes);
                joined.extend_from_slice(&self.first);
                joined.extend_from_slice(&data);
                self.joined = Some(joined);
            }
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.joined.as_ref().map_or(self.first.len(), BytesMut::len)
    }
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
