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
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode, request};
use http_body::Body as _;
use navicert_client::transport::{Timer, TokioTimer, Transport};

use crate::listener::CloseConnection;
use crate::problem::Problem;

pub use headers::host_of;
pub use stream::{Inbound, ReplyBody};

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
    way: Way,
    lasts: Option<Duration>,
}

/// Whose credential goes with a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    /// The transport's.
    #[default]
    Ours,
    /// The client's own, among the headers; the transport has none (S277).
    Theirs,
}

impl Identity {
    /// The transport's own credential says it all.
    pub fn of_transport() -> Self {
        Identity::default()
    }

    /// These headers, besides the transport's credential. A name may occur more than once.
    pub fn with_headers(headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        Identity { headers, ..Identity::default() }
    }

    /// The client's own credential, passed on through a transport that has none ([`Forwarder::with_bare`]). What the API
    /// server says to it, a 401 too, is the client's to hear.
    pub fn of_client(authorization: HeaderValue) -> Self {
        let headers = vec![(http::header::AUTHORIZATION, authorization)];
        Identity { headers, way: Way::Theirs, lasts: None }
    }

    /// One more header that only we may write.
    #[must_use]
    pub fn and(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// An answer or tunnel that lasts longer than this breaks off (S255).
    #[must_use]
    pub fn lasting(mut self, longest: Option<Duration>) -> Self {
        self.lasts = longest;
        self
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
    /// Whether cookies cross (S242).
    pub cookies: bool,
}

/// What becomes of `Impersonate-*` headers that a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientImpersonation {
    /// 403: silence would let the client believe it acts as somebody else (S239).
    Refused,
    /// They are the API server's to judge; only its four names pass.
    Forwarded,
    /// [`Identify::identify`] judges them; only the four names get that far, and none further.
    Judged,
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
            cookies: false,
        }
    }
}

/// Sends clients' requests to one API server.
#[derive(Clone, Debug)]
pub struct Forwarder {
    upstream: Transport,
    bare: Option<Transport>,
    rules: Rules,
    timer: Arc<dyn Timer>,
    is_turned_down: Arc<AtomicBool>,
}

impl Forwarder {
    /// Forwards through this transport, which should not ask for compression of its own.
    pub fn new(upstream: Transport, rules: Rules) -> Self {
        let timer = Arc::new(TokioTimer);
        Forwarder { upstream, bare: None, rules, timer, is_turned_down: Arc::default() }
    }

    /// With a second way to the same server for [`Identity::of_client`]: a transport that carries no credential.
    #[must_use]
    pub fn with_bare(mut self, bare: Option<Transport>) -> Self {
        self.bare = bare;
        self
    }

    /// With another sense of time.
    #[must_use]
    pub fn with_timer(mut self, timer: Arc<dyn Timer>) -> Self {
        self.timer = timer;
        self
    }

    /// Whether the API server's last word about our own credential was no (S246).
    pub fn is_turned_down(&self) -> bool {
        self.is_turned_down.load(Ordering::Relaxed)
    }

    /// The way to the API server, with our own credential.
    pub fn upstream(&self) -> &Transport {
        &self.upstream
    }

    /// Answers a request, whatever becomes of it.
    pub async fn forward(&self, inbound: Inbound, who: &impl Identify) -> Box<Response<ReplyBody>> {
        let asked_upgrade = headers::find(&inbound.head().headers, &http::header::UPGRADE).is_some();
        let outcome = self.pass(inbound, who).await;
        let mut reply = outcome.unwrap_or_else(|problem| {
            tracing::debug!(%problem, "request refused");
            Box::new(problem.response())
        });
        if asked_upgrade && reply.status() != StatusCode::SWITCHING_PROTOCOLS {
            // Whatever the client sent behind a request for another protocol is no second request (S252).
            reply.extensions_mut().insert(CloseConnection);
        }
        reply
    }

    /// The spine. What is handed along is on the heap, and what is rare makes no room for itself in every request.
    async fn pass(&self, inbound: Inbound, who: &impl Identify) -> Result<Box<Response<ReplyBody>>, Problem> {
        let Inbound { mut request, body } = inbound;
        let head = &mut request.head;
        headers::check(head, &self.rules)?;
        let upgrade = upgrade::Asked::by(head, &body)?;
        let identity = who.identify(head).await?;
        let client = upgrade.as_ref().map(|_| upgrade::client_side(head));
        stream::leave(head, headers::target(head)?);
        headers::clean_request(&mut head.headers, &self.rules);
        if let Some(upgrade) = &upgrade {
            upgrade.write(&mut head.headers);
        }
        headers::write_identity(&mut head.headers, identity.headers);
        let upstream = match identity.way {
            Way::Ours => &self.upstream,
            Way::Theirs => self.bare.as_ref().ok_or(Problem::Unauthorized)?,
        };
        if !body.is_end_stream() {
            request.body = Box::pin(stream::carried(body)).await?;
        }
        let mut answer = upstream.pass(request).await.map_err(|error| {
            tracing::warn!(%error, "request not answered by the API server");
            Problem::of_transport(&error, self.rules.with_details)
        })?;
        self.check_answer(&answer, upgrade.is_some(), identity.way)?;
        let late = identity.lasts.map(|longest| self.timer.sleep(longest));
        match (upgrade, client) {
            (Some(upgrade), Some(client)) => upgrade.join(client, answer, late),
            _ => {
                stream::reply(&mut answer, late);
                Ok(answer)
            }
        }
    }

    /// Answers that must not be passed on (S246, S252).
    fn check_answer<B>(&self, answer: &Response<B>, upgrade: bool, way: Way) -> Result<(), Problem> {
        let status = answer.status();
        let is_ours = way == Way::Ours;
        let turned_down = is_ours && status == StatusCode::UNAUTHORIZED;
        if is_ours && self.is_turned_down.load(Ordering::Relaxed) != turned_down {
            self.is_turned_down.store(turned_down, Ordering::Relaxed);
            match turned_down {
                true => tracing::error!("the API server turned our own credential down"),
                false => tracing::info!("the API server accepts our own credential again"),
            }
        }
        if turned_down && self.rules.unauthorized == Unauthorized::BadGateway {
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
