//! How a server is doing, for whoever routes requests to it: `/healthz`, `/readyz` and `/metrics`, on a listener of their
//! own, so that no path and no header of a client ever leads past authentication (S225, S259).

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use navicert_authn::Live;
use navicert_authn::config::Reloader;

use crate::forward::ReplyBody;
use crate::listener::{Handler, Peer};
use crate::metrics::Registry;

/// One thing that has to be well before requests are sent here.
pub trait Check: Send + Sync {
    /// What it is called in `/readyz?verbose`: short, without white space.
    fn name(&self) -> &str;

    /// Whether it is well; asked at every probe, so it only looks at what is known.
    ///
    /// # Errors
    /// What is wrong, in a sentence without secrets.
    fn check(&self) -> Result<(), String>;

    /// Something to know although it is well, in a sentence without secrets.
    fn note(&self) -> Option<String> {
        None
    }
}

/// Everything that has to be well. Whoever has a condition joins here, once.
#[derive(Clone, Default)]
pub struct Health(Arc<State>);

#[derive(Default)]
struct State {
    checks: Mutex<Vec<Arc<dyn Check>>>,
    is_stopping: AtomicBool,
}

impl Health {
    /// From now on this has to be well too.
    pub fn join(&self, check: Arc<dyn Check>) {
        self.0.checks.lock().unwrap_or_else(PoisonError::into_inner).push(check);
    }

    /// From now on nobody should send requests here: what is being answered is finished, and then it ends.
    pub fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::Release);
    }

    /// The verdict, and a line for each thing, as kube-apiserver writes them.
    pub fn look(&self) -> (bool, String) {
        let checks = self.0.checks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (mut is_well, mut text) = (true, String::new());
        let mut told = |name: &str, verdict: Result<(), String>, note: Option<String>| match (verdict, note) {
            (Ok(()), None) => text += &format!("[+]{name} ok\n"),
            (Ok(()), Some(note)) => text += &format!("[+]{name} ok: {}\n", note.replace('\n', " ")),
            (Err(why), _) => {
                is_well = false;
                text += &format!("[-]{name} failed: {}\n", why.replace('\n', " "));
            }
        };
        let is_stopping = self.0.is_stopping.load(Ordering::Acquire);
        told("shutdown", if is_stopping { Err("shutting down".to_owned()) } else { Ok(()) }, None);
        for check in checks {
            told(check.name(), check.check(), check.note());
        }
        (is_well, text)
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Health").finish_non_exhaustive()
    }
}

/// Which issuers have to be ready before requests are sent here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AwaitedIssuers {
    /// None of them.
    None,
    /// At least one, if there are any.
    #[default]
    Any,
    /// All of them.
    All,
}

/// Issuers as a condition.
#[derive(Debug)]
pub struct Issuers {
    live: Arc<Live>,
    awaited: AwaitedIssuers,
}

impl Issuers {
    /// These issuers.
    pub fn new(live: Arc<Live>, awaited: AwaitedIssuers) -> Self {
        Issuers { live, awaited }
    }
}

impl Check for Issuers {
    fn name(&self) -> &'static str {
        "issuers"
    }

    fn check(&self) -> Result<(), String> {
        let all = self.live.health();
        let missing: Vec<_> = all.iter().filter(|(_, health)| !health.is_ready).collect();
        let is_well = match self.awaited {
            AwaitedIssuers::None => true,
            AwaitedIssuers::Any => all.is_empty() || missing.len() < all.len(),
            AwaitedIssuers::All => missing.is_empty(),
        };
        if is_well {
            return Ok(());
        }
        let told = missing.iter().map(|(url, health)| {
            format!("{url}: {}", health.last_error.as_deref().unwrap_or("not asked yet"))
        });
        Err(told.collect::<Vec<_>>().join("; "))
    }
}

/// The configuration: there is always one in use, but it may not be what the files say.
#[derive(Debug)]
pub struct Configuration(pub Arc<Reloader>);

impl Check for Configuration {
    fn name(&self) -> &'static str {
        "configuration"
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn note(&self) -> Option<String> {
        let why = self.0.problem()?;
        Some(format!("the files that are there now are not in use, those before them are: {why}"))
    }
}

/// Answers whoever looks after servers. It holds no secret and changes nothing.
#[derive(Debug)]
pub struct Inspection {
    health: Health,
    figures: Registry,
}

impl Inspection {
    /// Tells of these.
    pub fn new(health: Health, figures: Registry) -> Self {
        Inspection { health, figures }
    }

    fn answer(&self, method: &Method, path: &str, query: Option<&str>) -> Response<ReplyBody> {
        if ![Method::GET, Method::HEAD].contains(method) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
        }
        let is_verbose = query.is_some_and(|query| {
            query.split('&').any(|part| part == "verbose" || part.starts_with("verbose="))
        });
        match path {
            "/healthz" | "/livez" => text(StatusCode::OK, "ok".to_owned()),
            "/readyz" => {
                let (is_ready, mut lines) = self.health.look();
                lines += if is_ready { "readyz check passed\n" } else { "readyz check failed\n" };
                match (is_ready, is_verbose) {
                    (true, false) => text(StatusCode::OK, "ok".to_owned()),
                    (true, true) => text(StatusCode::OK, lines),
                    (false, _) => text(StatusCode::SERVICE_UNAVAILABLE, lines),
                }
            }
            "/metrics" => {
                let mut page = text(StatusCode::OK, self.figures.render());
                let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                page.headers_mut().insert(CONTENT_TYPE, kind);
                page
            }
            _ => text(StatusCode::NOT_FOUND, "/healthz, /livez, /readyz or /metrics\n".to_owned()),
        }
    }
}

impl Handler for Inspection {
    async fn handle(&self, request: Request<Incoming>, _: &Peer) -> Response<ReplyBody> {
        self.answer(request.method(), request.uri().path(), request.uri().query())
    }
}

fn text(code: StatusCode, text: String) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::whole(Bytes::from(text)));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sick;

    impl Check for Sick {
        fn name(&self) -> &'static str {
            "sick"
        }

        fn check(&self) -> Result<(), String> {
            Err("has a\ncold".to_owned())
        }
    }

    // S225
    #[test]
    fn readiness_names_what_is_wrong_and_liveness_does_not_care() {
        let (health, figures) = (Health::default(), Registry::default());
        let inspection = Inspection::new(health.clone(), figures);
        let code = |path: &str| inspection.answer(&Method::GET, path, None).status().as_u16();
        assert_eq!(
            (code("/healthz"), code("/livez"), code("/readyz"), code("/metrics")),
            (200, 200, 200, 200)
        );
        assert_eq!((code("/"), code("/readyz/"), code("/debug")), (404, 404, 404));
        health.join(Arc::new(Sick));
        assert_eq!((code("/healthz"), code("/readyz")), (200, 503));
        assert_eq!(health.look().1, "[+]shutdown ok\n[-]sick failed: has a cold\n");
        health.stop();
        assert!(health.look().1.contains("[-]shutdown failed: shutting down"));
        assert_eq!(inspection.answer(&Method::POST, "/healthz", None).status(), 405);
    }
}
