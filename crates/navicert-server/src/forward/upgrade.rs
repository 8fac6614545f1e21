//! Requests for another protocol (exec, attach, port-forward over SPDY or WebSocket): bytes are copied both ways, and only
//! after the API server has answered 101 (S249–S252).

use http::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use http::{Request, Response, StatusCode, Version, request};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;

use super::stream::Late;
use super::{ReplyBody, headers, stream};
use crate::problem::Problem;

/// The buffer of each direction.
const BUFFER: usize = 32 * 1024;

/// A protocol that a client asked for and that we pass on.
#[derive(Debug)]
pub(super) struct Asked {
    protocol: HeaderValue,
}

impl Asked {
    /// What a request asks for; nothing, if it is none of the protocols that Kubernetes speaks. Such a wish is the
    /// server's to ignore, so it is not passed on.
    pub(super) fn by(head: &request::Parts, body: &Incoming) -> Result<Option<Self>, Problem> {
        let Some(protocol) = headers::find(&head.headers, &UPGRADE) else { return Ok(None) };
        let is_known = [&b"websocket"[..], b"spdy/3.1"]
            .iter()
            .any(|name| protocol.as_bytes().eq_ignore_ascii_case(name));
        let is_listed = headers::connection_tokens(&head.headers).iter().any(|token| token == "upgrade");
        if !is_known || !is_listed || head.version != Version::HTTP_11 {
            return Ok(None);
        }
        if !body.is_end_stream() {
            return Err(Problem::Malformed("a request for another protocol cannot have a body"));
        }
        Ok(Some(Asked { protocol: protocol.clone() }))
    }

    /// Asks the server for the same, after everything hop-by-hop has been taken off.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, self.protocol.clone());
    }

    /// Passes the answer on. A 101 of the protocol that was asked for joins the two connections; a refusal is relayed;
    /// anything else is no answer to this question.
    pub(super) fn join(
        self,
        client: OnUpgrade,
        mut answer: Box<Response<ReplyBody>>,
        late: Option<Late>,
    ) -> Result<Box<Response<ReplyBody>>, Problem> {
        let status = answer.status();
        if status.is_client_error() || status.is_server_error() {
            stream::reply(&mut answer, late);
            return Ok(answer);
        }
        let agreed = answer
            .headers()
            .get(UPGRADE)
            .is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(self.protocol.as_bytes()));
        if status != StatusCode::SWITCHING_PROTOCOLS || !agreed {
            return Err(Problem::BadAnswer("the API server gave an invalid answer to an upgrade request"));
        }
        let server = hyper::upgrade::on(&mut *answer);
        tokio::spawn(async move {
            // Our 101 has to be out before the client's half exists; the server's half is there already.
            if let (Ok(client), Ok(server)) = tokio::join!(client, server) {
                let late = async {
                    match late {
                        Some(late) => late.await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = copy(client, server) => {}
                    () = late => tracing::debug!("upgraded connection ended: it has lasted long enough"),
                }
            }
        });
        let mut reply = Box::new(Response::new(ReplyBody::empty()));
        *reply.status_mut() = status;
        *reply.headers_mut() = std::mem::take(answer.headers_mut());
        headers::clean_response(reply.headers_mut());
        self.write(reply.headers_mut());
        Ok(reply)
    }
}

/// The client's half, as soon as it has been told 101.
pub(super) fn client_side(head: &mut request::Parts) -> OnUpgrade {
    let mut request = Request::new(());
    std::mem::swap(request.extensions_mut(), &mut head.extensions);
    hyper::upgrade::on(request)
}

/// Until both directions have ended; the end of one is passed on as such (half-close). No frame is looked into.
async fn copy(client: Upgraded, server: Upgraded) {
    let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
    if let Err(error) =
        tokio::io::copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER, BUFFER).await
    {
        tracing::debug!(%error, "upgraded connection ended");
    }
}
