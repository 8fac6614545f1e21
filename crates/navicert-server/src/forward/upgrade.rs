//! Protocol upgrades (exec, attach, port-forward over SPDY or WebSocket): copies bytes both ways once the API server
//! has responded 101.
// S249–S252

use http::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use http::{Request, Response, StatusCode, Version, request};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;

use super::stream::Deadline;
use super::{ReplyBody, headers, stream};
use crate::problem::Problem;

/// Buffer size per direction.
const TUNNEL_BUFFER_BYTES: usize = 32 * 1024;

/// An upgrade to forward.
#[derive(Debug)]
pub(super) struct UpgradeRequest {
    protocol: HeaderValue,
}

impl UpgradeRequest {
    /// The upgrade that a request asks for; `None` if Kubernetes does not use the protocol. A server may ignore such
    /// a request, so it is not forwarded.
    pub(super) fn from_request(head: &request::Parts, body: &Incoming) -> Result<Option<Self>, Problem> {
        let Some(protocol) = headers::find(&head.headers, &UPGRADE) else { return Ok(None) };
        let is_known = [&b"websocket"[..], b"spdy/3.1"]
            .iter()
            .any(|name| protocol.as_bytes().eq_ignore_ascii_case(name));
        let is_listed = headers::connection_tokens(&head.headers).iter().any(|token| token == "upgrade");
        if !is_known || !is_listed || head.version != Version::HTTP_11 {
            return Ok(None);
        }
        if !body.is_end_stream() {
            return Err(Problem::Malformed("upgrade request must not have a body"));
        }
        Ok(Some(UpgradeRequest { protocol: protocol.clone() }))
    }

    /// Adds the upgrade headers, after hop-by-hop headers were removed.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, self.protocol.clone());
    }

    /// Handles the response: a 101 for the requested protocol connects both sides, an error is relayed, anything else
    /// is invalid.
    pub(super) fn complete(
        self,
        client: OnUpgrade,
        mut response: Box<Response<ReplyBody>>,
        deadline: Option<Deadline>,
    ) -> Result<Box<Response<ReplyBody>>, Problem> {
        let status = response.status();
        if status.is_client_error() || status.is_server_error() {
            stream::prepare_response(&mut response, deadline);
            return Ok(response);
        }
        let agreed = response
            .headers()
            .get(UPGRADE)
            .is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(self.protocol.as_bytes()));
        if status != StatusCode::SWITCHING_PROTOCOLS || !agreed {
            return Err(Problem::BadUpstreamResponse(
                "invalid response of the API server to an upgrade request",
            ));
        }
        let server = hyper::upgrade::on(&mut *response);
        tokio::spawn(async move {
            // The client's side exists only after our 101 is sent; the server's is ready.
            if let (Ok(client), Ok(server)) = tokio::join!(client, server) {
                let deadline = async {
                    match deadline {
                        Some(deadline) => deadline.await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = tunnel(client, server) => {}
                    () = deadline => tracing::debug!(
                        event = "upgrade_max_duration_reached",
                        "closed upgraded connection: maximum duration reached"
                    ),
                }
            }
        });
        let mut reply = Box::new(Response::new(ReplyBody::empty()));
        *reply.status_mut() = status;
        *reply.headers_mut() = std::mem::take(response.headers_mut());
        headers::strip_response(reply.headers_mut());
        self.write(reply.headers_mut());
        Ok(reply)
    }
}

/// The client's side, available after the 101.
pub(super) fn client_side(head: &mut request::Parts) -> OnUpgrade {
    let mut request = Request::new(());
    std::mem::swap(request.extensions_mut(), &mut head.extensions);
    hyper::upgrade::on(request)
}

/// Copies until both directions are closed, with half-close. Does not inspect the data.
async fn tunnel(client: Upgraded, server: Upgraded) {
    let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
    if let Err(error) = tokio::io::copy_bidirectional_with_sizes(
        &mut client,
        &mut server,
        TUNNEL_BUFFER_BYTES,
        TUNNEL_BUFFER_BYTES,
    )
    .await
    {
        tracing::debug!(event = "upgrade_failed", %error, "upgraded connection closed with an error");
    }
}
