//! The HTTP layer: records a request, finds its answer and sends it.

use std::convert::Infallible;
use std::sync::Arc;

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};

use super::accept::Line;
use super::record::{BodyState, Request};
use super::state::Shared;
use crate::net::answer::{Action, Answer, AnswerBody};
use crate::net::tunnel::Tunnel;

type HyperRequest = http::Request<Incoming>;

/// Limits of kube-apiserver: 1 MiB, and what Go adds to it for each protocol. It has no limit on the number of headers;
/// hyper allocates room for this many.
const MAX_HEADER_BYTES: usize = (1 << 20) + 4096;
const MAX_HEADER_LIST_BYTES: u32 = (1 << 20) + 320;
const MAX_HTTP1_HEADERS: usize = 2_000;

pub(super) async fn http1<S>(stream: S, line: Line, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| handle(request, line.clone(), Arc::clone(&shared)));
    // A failed connection appears in the log as closed; no other report is needed.
    let _ = hyper::server::conn::http1::Builder::new()
        .max_headers(MAX_HTTP1_HEADERS)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
}

pub(super) async fn http2<S>(stream: S, line: Line, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| handle(request, line.clone(), Arc::clone(&shared)));
    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .max_header_list_size(MAX_HEADER_LIST_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn handle(
    mut request: HyperRequest,
    line: Line,
    shared: Arc<Shared>,
) -> Result<Response<AnswerBody>, Infallible> {
    let index = shared.record(head(&request, line.id));
    let choice = shared.choose(request.uri().path());
    if choice.before_body() {
        shared.change_request(index, |record| record.body_state = BodyState::Unread);
    } else {
        read_body(request.body_mut(), &shared, index).await;
    }
    let answer = choice.answer(shared.request(index)).await;
    if let Some(gate) = &answer.gate {
        gate.pass().await;
    }
    Ok(give(answer, request, &line).await)
}

async fn give(answer: Answer, request: HyperRequest, line: &Line) -> Response<AnswerBody> {
    match &answer.action {
        Action::Respond => {}
        Action::Cut(how) => {
            line.cut.send_replace(Some(*how));
            std::future::pending::<()>().await;
        }
        Action::Upgrade(tunnel) => return upgrade(&answer, tunnel.clone(), request, line.clone()),
    }
    let mut response = Response::new(AnswerBody::new(answer.parts));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response
}

/// Answers 101 with the protocol the client named, and leaves the connection to the tunnel.
fn upgrade(answer: &Answer, tunnel: Tunnel, request: HyperRequest, line: Line) -> Response<AnswerBody> {
    let protocol = request.headers().get(UPGRADE).cloned();
    let upgraded = hyper::upgrade::on(request);
    tokio::spawn(async move {
        let mut cuts = line.cut.subscribe();
        let Ok(stream) = upgraded.await else { return };
        tokio::select! {
            () = tunnel.run(TokioIo::new(stream)) => {}
            () = line.until_cut(&mut cuts) => {}
        }
    });
    let mut response = Response::new(AnswerBody::new(Vec::new()));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers.clone();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    response.headers_mut().insert(UPGRADE, protocol.unwrap_or(HeaderValue::from_static("unnamed")));
    response
}

fn head(request: &HyperRequest, connection: usize) -> Request {
    Request {
        connection,
        method: request.method().clone(),
        target: request.uri().path_and_query().map_or_else(|| request.uri().to_string(), ToString::to_string),
        version: request.version(),
        headers: request.headers().clone(),
        body: Vec::new(),
        body_state: BodyState::Arriving,
        trailers: HeaderMap::new(),
        client: None,
    }
}

/// Keeps the record current as the body comes in, so that a test can wait for a part of it.
async fn read_body(body: &mut Incoming, shared: &Shared, index: usize) {
    let mut reading = Reading { shared, index, state: BodyState::Broken };
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return };
        match frame.into_data() {
            Ok(data) => shared.change_request(index, |record| record.body.extend_from_slice(&data)),
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                shared.change_request(index, |record| record.trailers = trailers);
            }
        }
    }
    reading.state = BodyState::Complete;
}

/// Notes how a body ended, also when hyper drops the handler because the client is gone.
struct Reading<'a> {
    shared: &'a Shared,
    index: usize,
    state: BodyState,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let state = self.state;
        self.shared.change_request(self.index, |record| record.body_state = state);
    }
}
