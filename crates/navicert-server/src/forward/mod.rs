//! One request from a client to an API server and back, shared by everything that stands between the two.
//!
//! ```text
//! check ──▶ identify ──▶ clean ──▶ identity headers ──▶ transport ──▶ stream | upgrade
//! one meaning  the       nothing      written last,        the credential   chunk by chunk,
//! only         caller's  hop-by-hop   never strippable     joins here       bytes after a 101
//!              step      survives     (S240)
//! ```
//!
//! [`Forwarder::forward`] is the spine. Stages never call each other.

mod headers;
mod stream;
mod upgrade;

use std::future::Future;

use http::header::{HeaderName, HeaderValue};
use http::{Request, Response, StatusCode, request};
use hyper::body::Incoming;
use navicert_client::transport::Transport;

use crate::listener::CloseConnection;
use crate::problem::Problem;

pub use headers::host_of;
pub use stream::ReplyBody;

/// Who may pass, and as whom: the step that differs between a proxy and a gateway.
pub trait Identify: Send + Sync {
    /// Looks at a request's head as it came in (but already known to have one meaning only), and decides.
    ///
    /// # Errors
    /// The [`Problem`] the client is answered with; nothing reaches the API server.
    fn identify(&self, head: &request::Parts) -> impl Future<Output = Result<Identity, Problem>> + Send;
}

/// What a request is sent with: headers that are written last, after everything else has been removed (S240).
///
/// Only [`Identify::identify`] makes one for a request, so a request that nobody looked at is never forwarded.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Identity {
    /// The transport's own credential says it all.
    pub fn of_transport() -> Self {
        Identity::default()
    }

    /// These headers, besides the transport's credential. A name may occur more than once.
    pub fn with_headers(headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        Identity { headers }
    }
}

/// What is forwarded and what is not.
#[derive(Clone, Debug)]
pub struct Rules {
    /// What becomes of `Impersonate-*` headers that a client sends.
    pub impersonation: ClientImpersonation,
    /// Further names (or, ending in `-`, beginnings of names) of headers that say who is calling; refused like
    /// `X-Remote-*`. In lower case (S241).
    pub identity_headers: Vec<String>,
    /// What a 401 of the API server becomes.
    pub unauthorized: Unauthorized,
    /// Whether clients are told why the API server cannot be reached. Only for the user's own (S273).
    pub with_details: bool,
}

/// What becomes of `Impersonate-*` headers that a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientImpersonation {
    /// 403: silence would let the client believe it acts as somebody else (S239).
    Refused,
    /// They are the API server's to judge; only its four names pass.
    Forwarded,
}

/// What a 401 of the API server becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unauthorized {
    /// 502: it is our credential that was turned down, not the client's (S246).
    BadGateway,
    /// It is passed on: the credential is the client's own user's.
    Relayed,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            impersonation: ClientImpersonation::Refused,
            identity_headers: Vec::new(),
            unauthorized: Unauthorized::BadGateway,
            with_details: false,
        }
    }
}

/// Sends clients' requests to one API server.
#[derive(Clone, Debug)]
pub struct Forwarder {
    upstream: Transport,
    rules: Rules,
}

impl Forwarder {
    /// Forwards through this transport, which should not ask for compression of its own.
    pub fn new(upstream: Transport, rules: Rules) -> Self {
        Forwarder { upstream, rules }
    }

    /// Answers a request, whatever becomes of it.
    pub async fn forward(&self, request: Request<Incoming>, who: &impl Identify) -> Response<ReplyBody> {
        let asked_upgrade = request.headers().contains_key(http::header::UPGRADE);
        let outcome = Box::pin(self.pass(request, who)).await;
        let mut reply = outcome.unwrap_or_else(|problem| {
            tracing::debug!(%problem, "request refused");
            problem.response()
        });
        if asked_upgrade && reply.status() != StatusCode::SWITCHING_PROTOCOLS {
            // Whatever the client sent behind a request for another protocol is no second request (S252).
            reply.extensions_mut().insert(CloseConnection);
        }
        reply
    }

    /// The spine.
    async fn pass(
        &self,
        request: Request<Incoming>,
        who: &impl Identify,
    ) -> Result<Response<ReplyBody>, Problem> {
        headers::check(&request, &self.rules)?;
        let upgrade = upgrade::Asked::by(&request)?;
        let (mut head, body) = request.into_parts();
        let identity = who.identify(&head).await?;
        let client = upgrade.as_ref().map(|_| upgrade::client_side(&mut head));
        let target = headers::target(&head)?;
        headers::clean_request(&mut head.headers);
        if let Some(upgrade) = &upgrade {
            upgrade.write(&mut head.headers);
        }
        headers::write_identity(&mut head.headers, identity.headers);
        let outbound = stream::outbound(head, target, body).await?;
        let answer = self.upstream.send(outbound).await.map_err(|error| {
            tracing::warn!(%error, "request not answered by the API server");
            Problem::of_transport(&error, self.rules.with_details)
        })?;
        self.check_answer(&answer, upgrade.is_some())?;
        match (upgrade, client) {
            (Some(upgrade), Some(client)) => upgrade.join(client, answer),
            _ => Ok(stream::reply(answer)),
        }
    }

    /// Answers that must not be passed on (S246, S252).
    fn check_answer<B>(&self, answer: &Response<B>, upgrade: bool) -> Result<(), Problem> {
        let status = answer.status();
        if status == StatusCode::UNAUTHORIZED && self.rules.unauthorized == Unauthorized::BadGateway {
            tracing::error!("the API server turned our own credential down");
            return Err(Problem::BadAnswer("the API server turned the proxy's credential down"));
        }
        if status == StatusCode::SWITCHING_PROTOCOLS && !upgrade {
            return Err(Problem::BadAnswer("the API server switched protocols without being asked"));
        }
        if status.is_redirection() && !headers::is_harmless_redirection(answer) {
            return Err(Problem::BadAnswer(
                "the API server answered with a redirection, which is not followed",
            ));
        }
        Ok(())
    }
}
