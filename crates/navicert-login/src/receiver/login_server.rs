//! What each request of a login does: the start link, the callback, the last page.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, SET_COOKIE};
use http::{HeaderMap, Method, Request, Response, request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body as _, Incoming};
use navicert_types::Secret;
use tokio::sync::{Notify, oneshot, watch};

use super::callback::{Verdict, judge};
use super::connection::{ConnectionState, Handler};
use super::guard::{Rejection, Trust, check_head};
use super::site::{LoginSite, Place};
use super::{AnswerError, MAX_WRONG_STATES, PendingLogin, ResponseMode};
use crate::pages::{self, Notice, OutcomePage};

/// The body of a `form_post` answer.
const MAX_BODY_BYTES: usize = 64 << 10;

pub(super) type Answer = Result<Secret<String>, AnswerError>;
type PageResponse = Response<Full<Bytes>>;

/// The server of one login, or of one redirect.
#[derive(Debug)]
pub(super) struct LoginServer {
    site: LoginSite,
    address: SocketAddr,
    /// Where the start link leads.
    target: Secret<String>,
    /// Absent if the start link is all there is.
    login: Option<PendingLogin>,
    progress: Mutex<Progress>,
    outcome: watch::Sender<Option<OutcomePage>>,
    last_response: Notify,
}

#[derive(Debug)]
struct Progress {
    is_start_used: bool,
    wrong_states: u32,
    /// Receives the answer; taken by the first one.
    waiting: Option<oneshot::Sender<Answer>>,
}

impl LoginServer {
    /// The server of a login, and its answer.
    pub(super) fn for_login(
        site: LoginSite,
        address: SocketAddr,
        login: PendingLogin,
    ) -> (Self, oneshot::Receiver<Answer>) {
        let (sender, answer) = oneshot::channel();
        let target = login.authorization_url.clone();
        (Self::new(site, address, target, Some((login, sender))), answer)
    }

    /// The server of a redirect.
    pub(super) fn for_redirect(site: LoginSite, address: SocketAddr, target: Secret<String>) -> Self {
        Self::new(site, address, target, None)
    }

    fn new(
        site: LoginSite,
        address: SocketAddr,
        target: Secret<String>,
        login: Option<(PendingLogin, oneshot::Sender<Answer>)>,
    ) -> Self {
        let (login, waiting) = login.unzip();
        let progress = Mutex::new(Progress { is_start_used: false, wrong_states: 0, waiting });
        let (outcome, _) = watch::channel(None);
        LoginServer { site, address, target, login, progress, outcome, last_response: Notify::new() }
    }

    /// Shows the end of the login to the browser that brought the answer.
    pub(super) fn publish(&self, page: OutcomePage) {
        self.outcome.send_replace(Some(page));
    }

    /// Waits until the browser has its last page.
    pub(super) async fn last_response(&self) {
        self.last_response.notified().await;
    }

    async fn route(&self, request: Request<Incoming>, connection: &ConnectionState) -> PageResponse {
        let (head, body) = request.into_parts();
        match check_head(&head, self.site.authorities()) {
            Ok(()) => {}
            Err(Rejection::ForeignHost) => return pages::notice(Notice::ForeignHost),
            Err(Rejection::NotANavigation) => return pages::notice(Notice::NotANavigation),
        }
        match (self.site.place(head.uri.path()), &self.login) {
            (Place::Callback, Some(login)) => self.callback(&head, body, login, connection).await,
            (Place::Start | Place::Done, _) if head.method != Method::GET => {
                pages::notice(Notice::MethodNotAllowed)
            }
            (Place::Start, _) => self.start(&head.headers, connection),
            (Place::Done, Some(_)) => self.done(connection),
            (Place::Done | Place::Callback, None) | (Place::Unknown, _) => pages::notice(Notice::NotFound),
        }
    }

    /// `/start/<id>`: sends the browser to the provider.
    // L902
    fn start(&self, headers: &HeaderMap, connection: &ConnectionState) -> PageResponse {
        let is_known_browser = connection.trust == Trust::SameUser || self.site.has_cookie(headers);
        {
            let mut progress = self.progress();
            if self.login.is_some() && progress.waiting.is_none() {
                return pages::notice(Notice::AlreadyAnswered);
            }
            if progress.is_start_used && !is_known_browser {
                return pages::notice(Notice::LinkUsed);
            }
            progress.is_start_used = true;
        }
        let mut response = pages::redirect(self.target.expose());
        let mode = self.login.as_ref().map(|login| login.response_mode).unwrap_or_default();
        for cookie in self.site.set_cookies(mode) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
        if self.login.is_none() {
            connection.is_last.store(true, Ordering::Relaxed);
        }
        response
    }

    /// The provider's answer. Whatever is rejected before the answer is taken leaves the login as it was.
    // L911
    async fn callback(
        &self,
        head: &request::Parts,
        body: Incoming,
        login: &PendingLogin,
        connection: &ConnectionState,
    ) -> PageResponse {
        let parameters = match (&head.method, login.response_mode) {
            (&Method::GET, _) => Bytes::copy_from_slice(head.uri.query().unwrap_or_default().as_bytes()),
            (&Method::POST, ResponseMode::FormPost) => match read_form(&head.headers, body).await {
                Ok(form) => form,
                Err(rejected) => return pages::notice(rejected),
            },
            _ => return pages::notice(Notice::MethodNotAllowed),
        };
        if connection.trust == Trust::NeedsCookie && !self.site.has_cookie(&head.headers) {
            return pages::notice(Notice::AnotherBrowser);
        }
        let answer = match judge(&parameters, login) {
            Verdict::Ambiguous => return pages::notice(Notice::Ambiguous),
            Verdict::NoState => return pages::notice(Notice::NoAnswer),
            Verdict::WrongState => return self.wrong_state(),
            Verdict::Answer(answer) => answer,
        };
        let Some(waiting) = self.progress().waiting.take() else {
            return pages::notice(Notice::AlreadyAnswered);
        };
        let mut outcome = self.outcome.subscribe();
        connection.is_waiting.store(true, Ordering::Relaxed);
        connection.is_received.store(true, Ordering::Relaxed);
        let _ = waiting.send(answer);
        let published = outcome.wait_for(Option::is_some).await.ok().and_then(|page| page.clone());
        connection.is_waiting.store(false, Ordering::Relaxed);
        match published.as_ref().and_then(OutcomePage::redirect_url) {
            Some(url) => {
                connection.is_last.store(true, Ordering::Relaxed);
                pages::redirect(url)
            }
            // L912: neither code nor state stays in the address of a page.
            None => pages::redirect(self.site.done_path()),
        }
    }

    fn wrong_state(&self) -> PageResponse {
        let mut progress = self.progress();
        progress.wrong_states = progress.wrong_states.saturating_add(1);
        if progress.wrong_states >= MAX_WRONG_STATES
            && let Some(waiting) = progress.waiting.take()
        {
            let _ = waiting.send(Err(AnswerError::Strangers { address: self.address }));
        }
        pages::notice(Notice::WrongState)
    }

    /// `/done/<id>`: the end of the login.
    fn done(&self, connection: &ConnectionState) -> PageResponse {
        match &*self.outcome.borrow() {
            Some(page) => {
                connection.is_last.store(true, Ordering::Relaxed);
                pages::outcome(page)
            }
            None => pages::notice(Notice::NotFound),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for LoginServer {
    async fn respond(&self, request: Request<Incoming>, connection: &ConnectionState) -> PageResponse {
        // A request without a body is complete.
        connection.is_received.store(request.body().is_end_stream(), Ordering::Relaxed);
        let response = self.route(request, connection).await;
        connection.is_received.store(true, Ordering::Relaxed);
        response
    }

    fn last_response_sent(&self) {
        self.last_response.notify_one();
    }
}

async fn read_form(headers: &HeaderMap, body: Incoming) -> Result<Bytes, Notice> {
    const FORM: &str = "application/x-www-form-urlencoded";
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| HeaderValue::to_str(value).ok());
    let media_type = media_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    if !media_type.trim().eq_ignore_ascii_case(FORM) {
        return Err(Notice::NotAForm);
    }
    let body = Limited::new(body, MAX_BODY_BYTES).collect().await;
    body.map(http_body_util::Collected::to_bytes).map_err(|_| Notice::TooLarge)
}
