//! Protocol upgrades (exec, attach, port-forward over SPDY or WebSocket): copies bytes both ways once the API server
//! has responded 101.
// S249–S252

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use http::{Request, Response, StatusCode, Version, request};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use navicert_client::transport::Timer;
use tokio::io::AsyncWriteExt as _;

use super::stream::EarlyEnd;
use super::{ReplyBody, headers};
use crate::listener::TunnelSlot;
use crate::problem::Problem;

/// Time limit for closing both sides of a tunnel that ends early.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

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

    /// Rejects a response other than a 101 for the requested protocol. Errors are relayed like other responses.
    pub(super) fn check_response<B>(&self, response: &Response<B>) -> Result<(), Problem> {
        let agreed = response
            .headers()
            .get(UPGRADE)
            .is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(self.protocol.as_bytes()));
        if response.status() != StatusCode::SWITCHING_PROTOCOLS || !agreed {
            return Err(Problem::BadUpstreamResponse(
                "invalid response of the API server to an upgrade request",
            ));
        }
        Ok(())
    }

    /// Connects both sides, until one of them closes or `early_end` completes.
    pub(super) fn connect(
        self,
        client: ClientSide,
        mut response: Box<Response<ReplyBody>>,
        early_end: Option<EarlyEnd>,
        timer: Arc<dyn Timer>,
    ) -> Box<Response<ReplyBody>> {
        let server = hyper::upgrade::on(&mut *response);
        tokio::spawn(async move {
            // The client's side exists only after our 101 is sent; the server's is ready.
            if let (Ok(client), Ok(server)) = tokio::join!(client.upgrade, server) {
                tunnel(client, server, early_end, &*timer).await;
            }
            drop(client.slot);
        });
        let mut reply = Box::new(Response::new(ReplyBody::empty()));
        *reply.status_mut() = response.status();
        *reply.headers_mut() = std::mem::take(response.headers_mut());
        headers::strip_response(reply.headers_mut());
        self.write(reply.headers_mut());
        reply
    }
}

/// Whether the API server rejected the upgrade.
pub(super) fn is_error<B>(response: &Response<B>) -> bool {
    response.status().is_client_error() || response.status().is_server_error()
}

/// The client's side of a tunnel.
pub(super) struct ClientSide {
    /// Available after the 101.
    upgrade: OnUpgrade,
    /// Held until the tunnel ends.
    slot: Option<TunnelSlot>,
}

impl ClientSide {
    pub(super) fn take(head: &mut request::Parts) -> Self {
        let mut request = Request::new(());
        std::mem::swap(request.extensions_mut(), &mut head.extensions);
        let slot = request.extensions_mut().remove();
        ClientSide { upgrade: hyper::upgrade::on(request), slot }
    }
}

/// Copies until both directions are closed, with half-close, or until `early_end` completes. Does not inspect the data.
async fn tunnel(client: Upgraded, server: Upgraded, early_end: Option<EarlyEnd>, timer: &dyn Timer) {
    let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
    let copied = tokio::select! {
        copied = tokio::io::copy_bidirectional_with_sizes(
            &mut client,
            &mut server,
            TUNNEL_BUFFER_BYTES,
            TUNNEL_BUFFER_BYTES,
        ) => copied,
        () = ended(early_end) => {
            // Both sides learn that the connection was closed on purpose (TLS `close_notify`).
            tokio::select! {
                _ = async { tokio::join!(client.shutdown(), server.shutdown()) } => {}
                () = timer.sleep(CLOSE_TIMEOUT) => {}
            }
            return;
        }
    };
    if let Err(error) = copied {
        tracing::debug!(event = "upgrade_failed", %error, "upgraded connection closed with an error");
    }
}

async fn ended(early_end: Option<EarlyEnd>) {
    match early_end {
        Some(early_end) => {
            early_end.await;
        }
        None => std::future::pending().await,
    }
}
