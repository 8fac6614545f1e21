//! Reads the message of a `Status` that an API server responds with, in JSON or protobuf, and leaves the response as it
//! was.

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use serde::Deserialize;

use super::ReplyBody;
use crate::problem::Problem;

/// Larger responses are no denials of the API server, and are not buffered.
const MAX_STATUS_BYTES: u64 = 16 * 1024;

/// Start of Kubernetes' protobuf encoding.
const PROTOBUF_PREFIX: &[u8] = b"k8s\0";
/// Field of the envelope that holds the object.
const ENVELOPE_RAW: u64 = 2;
/// Field of a `Status` that holds the message.
const STATUS_MESSAGE: u64 = 3;

/// The response with its body received, and the message of the `Status` in it. A response whose length is unknown or
/// above the limit is left to stream.
///
/// # Errors
/// [`Problem::BadUpstreamResponse`]: the body was not received.
pub(super) async fn read(
    response: Box<Response<ReplyBody>>,
) -> Result<(Box<Response<ReplyBody>>, Option<String>), Problem> {
    let is_short = response.body().size_hint().exact().is_some_and(|size| size <= MAX_STATUS_BYTES);
    if !is_short || response.headers().contains_key(CONTENT_ENCODING) {
        return Ok((response, None));
    }
    let (head, body) = response.into_parts();
    let body = body.collect().await;
    let body = body.map_err(|_| Problem::BadUpstreamResponse("incomplete response of the API server"))?;
    let body = body.to_bytes();
    let kind = head.headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes().to_vec()).unwrap_or_default();
    let message = message(&kind, &body);
    Ok((Box::new(Response::from_parts(head, ReplyBody::full(body))), message))
}

fn message(content_type: &[u8], body: &Bytes) -> Option<String> {
    #[derive(Deserialize)]
    struct Status {
        kind: String,
        message: String,
    }
    if content_type.starts_with(b"application/json") {
        let status: Status = serde_json::from_slice(body).ok()?;
        return Some(status.message).filter(|_| status.kind == "Status");
    }
    if content_type.starts_with(b"application/vnd.kubernetes.protobuf") {
        let envelope = body.strip_prefix(PROTOBUF_PREFIX)?;
        let message = bytes_field(bytes_field(envelope, ENVELOPE_RAW)?, STATUS_MESSAGE)?;
        return String::from_utf8(message.to_vec()).ok();
    }
    None
}

/// The first field of a protobuf message with this number, if it holds bytes.
fn bytes_field(mut message: &[u8], number: u64) -> Option<&[u8]> {
    while !message.is_empty() {
        let key = varint(&mut message)?;
        let length = match key & 7 {
            0 => {
                varint(&mut message)?;
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut message)?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (value, rest) = message.split_at_checked(length)?;
        if key >> 3 == number {
            return Some(value).filter(|_| key & 7 == 2);
        }
        message = rest;
    }
    None
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).unwrap();
        [&[(number << 3) | 2, length][..], bytes].concat()
    }

    #[test]
    fn reads_the_message_in_json_and_protobuf() {
        let read = |kind: &str, body: Vec<u8>| message(kind.as_bytes(), &Bytes::from(body));
        let json = br#"{"kind":"Status","message":"no \"x\"","code":403}"#.to_vec();
        assert_eq!(read("application/json", json.clone()).as_deref(), Some("no \"x\""));
        assert_eq!(read("text/plain", json), None);
        assert_eq!(read("application/json", br#"{"kind":"Pod","message":"no"}"#.to_vec()), None);
        let status =
            [field(1, b""), field(2, b"Failure"), field(3, b"no \"x\""), vec![0x30, 0x93, 0x03]].concat();
        let envelope = [
            PROTOBUF_PREFIX,
            &field(1, &[field(1, b"v1"), field(2, b"Status")].concat()),
            &field(2, &status),
        ];
        let kind = "application/vnd.kubernetes.protobuf";
        assert_eq!(read(kind, envelope.concat()).as_deref(), Some("no \"x\""));
        for end in 0..envelope.concat().len() {
            let cut = envelope.concat()[..end].to_vec();
            assert_eq!(read(kind, cut), None, "cut after {end} bytes");
        }
    }
}
