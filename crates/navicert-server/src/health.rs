//! `/healthz`, `/livez`, `/readyz` and `/metrics` on a separate listener, so that no path or header of a client
//! request bypasses authentication.
// S225, S259

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use navicert_authn::ReloadableAuthenticator;
use navicert_authn::config::AuthnReloader;

use crate::forward::ReplyBody;
use crate::listener::{Handler, Peer};
use crate::metrics::Registry;

/// A readiness condition.
pub trait Check: Send + Sync {
    /// Name in `/readyz?verbose`: short, without white space.
    fn name(&self) -> &str;

    /// Whether the condition holds. Called at every probe, so it must only look at known state.
    ///
    /// # Errors
    /// What is wrong, without secrets.
    fn check(&self) -> Result<(), String>;

    /// A remark for a condition that holds, without secrets.
    fn note(&self) -> Option<String> {
        None
    }
}

/// All readiness conditions of a server.
#[derive(Clone, Default)]
pub struct Health(Arc<State>);

#[derive(Default)]
struct State {
    checks: Mutex<Vec<Arc<dyn Check>>>,
    is_stopping: AtomicBool,
}

impl Health {
    /// Adds a condition.
    pub fn register(&self, check: Arc<dyn Check>) {
        self.0.checks.lock().unwrap_or_else(PoisonError::into_inner).push(check);
    }

    /// Makes readiness fail while in-flight requests are drained.
    pub(crate) fn begin_shutdown(&self) {
        self.0.is_stopping.store(true, Ordering::Release);
    }

    /// Whether all conditions hold, and one line per condition in kube-apiserver's format. Further lines of a reason are
    /// indented, so that a list of rules can be copied and no reason looks like a condition.
    pub fn report(&self) -> (bool, String) {
        let checks = self.0.checks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (mut is_ready, mut text) = (true, String::new());
        let mut add_line =
            |name: &str, verdict: Result<(), String>, note: Option<String>| match (verdict, note) {
                (Ok(()), None) => text += &format!("[+]{name} ok\n"),
                (Ok(()), Some(note)) => text += &format!("[+]{name} ok: {}\n", indented(&note)),
                (Err(why), _) => {
                    is_ready = false;
                    text += &format!("[-]{name} failed: {}\n", indented(&why));
                }
            };
        let is_stopping = self.0.is_stopping.load(Ordering::Acquire);
        add_line("shutdown", if is_stopping { Err("shutting down".to_owned()) } else { Ok(()) }, None);
        for check in checks {
            add_line(check.name(), check.check(), check.note());
        }
        (is_ready, text)
    }
}

fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n  ")
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Health").finish_non_exhaustive()
    }
}

/// Which issuers must be ready for readiness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequiredIssuers {
    /// None.
    None,
    /// At least one, if any is configured.
    #[default]
    Any,
    /// All.
    All,
}

/// Readiness of the issuers.
#[derive(Debug)]
pub struct IssuersCheck {
    authenticator: Arc<ReloadableAuthenticator>,
    required: RequiredIssuers,
}

impl IssuersCheck {
    /// Checks these issuers.
    pub fn new(authenticator: Arc<ReloadableAuthenticator>, awaited: RequiredIssuers) -> Self {
        IssuersCheck { authenticator, required: awaited }
    }
}

impl Check for IssuersCheck {
    fn name(&self) -> &'static str {
        "issuers"
    }

    fn check(&self) -> Result<(), String> {
        let all = self.authenticator.health();
        let missing: Vec<_> = all.iter().filter(|(_, health)| !health.is_ready).collect();
        let is_ready = match self.required {
            RequiredIssuers::None => true,
            RequiredIssuers::Any => all.is_empty() || missing.len() < all.len(),
            RequiredIssuers::All => missing.is_empty(),
        };
        if is_ready {
            return Ok(());
        }
        let problems = missing.iter().map(|(url, health)| {
            format!("{url}: {}", health.last_error.as_deref().unwrap_or("keys not fetched yet"))
        });
        Err(problems.collect::<Vec<_>>().join("; "))
    }
}

/// Notes when the configuration files are invalid, or wait for an issuer, and the previous configuration is in use. Never fails
/// readiness.
#[derive(Debug)]
pub struct ConfigurationCheck(pub Arc<AuthnReloader>);

impl Check for ConfigurationCheck {
    fn name(&self) -> &'static str {
        "configuration"
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn note(&self) -> Option<String> {
        if let Some(why) = self.0.problem() {
            return Some(format!("configuration files are invalid, previous configuration in use: {why}"));
        }
        let why = self.0.waiting_for()?;
        Some(format!("new configuration waits, previous configuration in use: {why}"))
    }
}

/// Serves probes and metrics. Holds no secrets and changes nothing.
#[derive(Debug)]
pub struct InspectionHandler {
    health: Health,
    metrics: Registry,
}

impl InspectionHandler {
    /// Serves this state.
    pub fn new(health: Health, metrics: Registry) -> Self {
        InspectionHandler { health, metrics }
    }

    fn respond(&self, method: &Method, path: &str, query: Option<&str>) -> Response<ReplyBody> {
        if ![Method::GET, Method::HEAD].contains(method) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed, use GET\n".to_owned());
        }
        let is_verbose = query.is_some_and(|query| {
            query.split('&').any(|part| part == "verbose" || part.starts_with("verbose="))
        });
        match path {
            "/healthz" | "/livez" => text(StatusCode::OK, "ok".to_owned()),
            "/readyz" => {
                let (is_ready, mut lines) = self.health.report();
                lines += if is_ready { "readyz check passed\n" } else { "readyz check failed\n" };
                match (is_ready, is_verbose) {
                    (true, false) => text(StatusCode::OK, "ok".to_owned()),
                    (true, true) => text(StatusCode::OK, lines),
                    (false, _) => text(StatusCode::SERVICE_UNAVAILABLE, lines),
                }
            }
            "/metrics" => {
                let mut page = text(StatusCode::OK, self.metrics.render());
                let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                page.headers_mut().insert(CONTENT_TYPE, kind);
                page
            }
            _ => text(
                StatusCode::NOT_FOUND,
                "not found, use /healthz, /livez, /readyz or /metrics\n".to_owned(),
            ),
        }
    }
}

impl Handler for InspectionHandler {
    async fn handle(&self, request: Request<Incoming>, _: &Peer) -> Response<ReplyBody> {
        self.respond(request.method(), request.uri().path(), request.uri().query())
    }
}

fn text(code: StatusCode, text: String) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::full(Bytes::from(text)));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing;

    impl Check for Failing {
        fn name(&self) -> &'static str {
            "rules"
        }

        fn check(&self) -> Result<(), String> {
            Err("lacks\n- one\n- two\n".to_owned())
        }
    }

    // S225
    #[test]
    fn readiness_names_failed_checks_and_liveness_ignores_them() {
        let (health, metrics) = (Health::default(), Registry::default());
        let inspection = InspectionHandler::new(health.clone(), metrics);
        let code = |path: &str| inspection.respond(&Method::GET, path, None).status().as_u16();
        assert_eq!(
            (code("/healthz"), code("/livez"), code("/readyz"), code("/metrics")),
            (200, 200, 200, 200)
        );
        assert_eq!((code("/"), code("/readyz/"), code("/debug")), (404, 404, 404));
        health.register(Arc::new(Failing));
        assert_eq!((code("/healthz"), code("/readyz")), (200, 503));
        assert_eq!(health.report().1, "[+]shutdown ok\n[-]rules failed: lacks\n  - one\n  - two\n");
        health.begin_shutdown();
        assert!(health.report().1.contains("[-]shutdown failed: shutting down"));
        assert_eq!(inspection.respond(&Method::POST, "/healthz", None).status(), 405);
    }
}
