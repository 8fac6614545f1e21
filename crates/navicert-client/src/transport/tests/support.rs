//! Shared by the transport tests: a scripted credential source, and helpers to send requests and read responses.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use navicert_testkit::{Ca, HttpServer, wait};
use navicert_types::Clock;
use navicert_types::clock::ManualClock;

use crate::context::ClientContext;
use crate::credential::{
    BoxFuture, ClientIdentity, Credential, CredentialError, CredentialSource, Generation, Rejection,
    RequestOrigin, TokenFileError,
};
use crate::kubeconfig::OsFileSystem;
use crate::metrics::{Metrics, Recorder};
use crate::transport::{
    Body, ManualTimer, ResponseBody, Transport, TransportError, TransportSettings, Trust,
};

/// A time in 2027, when the test kit's certificates are valid.
pub(super) const NOW: i64 = 1_800_000_000;

/// Returns its current credential; rejecting the current generation moves on to the next credential of the script and
/// counts as one refresh, as with a plugin.
#[derive(Debug, Default)]
pub(super) struct ScriptedSource(Mutex<ScriptState>);

#[derive(Debug, Default)]
struct ScriptState {
    current: Option<Arc<Credential>>,
    next: VecDeque<Credential>,
    lookups: usize,
    rejections: Vec<Rejection>,
    refreshes: usize,
    fails: bool,
    hint: Option<&'static str>,
}

impl ScriptedSource {
    /// Starts with the first of these; each rejection moves on to the next.
    pub(super) fn new(credentials: impl IntoIterator<Item = Credential>) -> Arc<Self> {
        let script = ScriptedSource::default();
        let mut credentials = credentials.into_iter();
        if let Some(first) = credentials.next() {
            script.replace(first);
        }
        script.state().next = credentials.collect();
        Arc::new(script)
    }

    /// Replaces the credential, as after an expiry.
    pub(super) fn replace(&self, credential: Credential) {
        let mut state = self.state();
        state.replace(credential);
    }

    /// Makes every refresh fail.
    pub(super) fn fail_refreshes(&self) {
        self.state().fails = true;
    }

    /// How often a credential was requested.
    pub(super) fn lookups(&self) -> usize {
        self.state().lookups
    }

    /// How often a rejection caused a refresh.
    pub(super) fn refreshes(&self) -> usize {
        self.state().refreshes
    }

    /// Every rejection it received.
    pub(super) fn rejections(&self) -> Vec<Rejection> {
        self.state().rejections.clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ScriptState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScriptState {
    fn replace(&mut self, credential: Credential) {
        let generation = self.current.as_ref().map_or(Generation::FIRST, |current| current.generation.next());
        self.current = Some(Arc::new(Credential { generation, ..credential }));
    }
}

impl CredentialSource for ScriptedSource {
    fn cached(&self) -> Option<Arc<Credential>> {
        let mut state = self.state();
        state.lookups += 1;
        state.current.clone()
    }

    fn get(&self, _: RequestOrigin) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        let current = self.cached().ok_or_else(error);
        Box::pin(async move { current })
    }

    fn refresh_rejected(
        &self,
        generation: Generation,
        reason: Rejection,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        let mut state = self.state();
        state.rejections.push(reason);
        let current = state.current.clone().filter(|current| current.generation != generation);
        let outcome = match current {
            Some(newer) => Ok(Some(newer)),
            None if state.fails => {
                state.refreshes += 1;
                Err(error())
            }
            None => {
                let next = state.next.pop_front();
                Ok(next.and_then(|next| {
                    state.refreshes += 1;
                    state.replace(next);
                    state.current.clone()
                }))
            }
        };
        Box::pin(async move { outcome })
    }

    fn hint(&self) -> Option<&str> {
        self.state().hint
    }
}

fn error() -> CredentialError {
    TokenFileError::Empty { path: "token".into() }.into()
}

/// A bearer token without a certificate.
pub(super) fn bearer(token: &str) -> Credential {
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
    value.set_sensitive(true);
    Credential { authorization: Some(value), ..Credential::anonymous() }
}

/// A client certificate without a token.
pub(super) fn certificate(identity: &navicert_testkit::Identity) -> Credential {
    let chain = identity.chain().to_vec();
    let identity = ClientIdentity::from_der(chain, identity.key_der()).unwrap();
    Credential { identity: Some(Arc::new(identity)), ..Credential::anonymous() }
}

/// A transport with its manual clock and timer.
pub(super) struct Fixture {
    pub(super) transport: Transport,
    pub(super) clock: Arc<ManualClock>,
    pub(super) timer: ManualTimer,
    pub(super) metrics: Arc<Metrics>,
}

/// A transport that trusts this CA.
pub(super) fn fixture(server: &HttpServer, ca: &Ca, source: Arc<dyn CredentialSource>) -> Fixture {
    rig_with(settings(server, ca), source)
}

pub(super) fn settings(server: &HttpServer, ca: &Ca) -> TransportSettings {
    TransportSettings { trust: Trust::Pem(ca.pem().into_bytes()), ..TransportSettings::new(server.url()) }
}

pub(super) fn rig_with(settings: TransportSettings, source: Arc<dyn CredentialSource>) -> Fixture {
    let (clock, timer) = (Arc::new(ManualClock::at(NOW)), ManualTimer::default());
    let metrics = Arc::new(Metrics::new());
    let client_context = ClientContext {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        timer: Arc::new(timer.clone()),
        files: Arc::new(OsFileSystem),
        recorder: Arc::clone(&metrics) as Arc<dyn Recorder>,
        ..ClientContext::system()
    };
    Fixture { transport: Transport::new(settings, source, client_context).unwrap(), clock, timer, metrics }
}

impl Fixture {
    pub(super) async fn get(&self, path: &str) -> Result<Response<ResponseBody>, TransportError> {
        self.send(request(path)).await
    }

    pub(super) async fn send(
        &self,
        request: Request<Body>,
    ) -> Result<Response<ResponseBody>, TransportError> {
        wait::within("an answer", self.transport.send(request)).await
    }

    /// Sends a GET request; returns the status and the complete body.
    pub(super) async fn read(&self, path: &str) -> (u16, String) {
        let response = self.get(path).await.unwrap_or_else(|error| panic!("{path}: {error:?}"));
        (response.status().as_u16(), text(response).await)
    }
}

pub(super) fn request(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

pub(super) async fn text(response: Response<ResponseBody>) -> String {
    let body = wait::within("a whole body", response.into_body().collect()).await.unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}

/// An error with its debug output and all sources.
pub(super) fn shown(error: &dyn std::error::Error) -> String {
    format!("{} {error:?}", navicert_types::error_chain(error))
}
