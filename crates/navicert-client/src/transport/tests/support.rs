//! What the tests of the transport share: a source that follows a script, and short ways to send and read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use navicert_testkit::{Ca, HttpServer, wait};
use navicert_types::Clock;
use navicert_types::clock::ManualClock;

use crate::credential::{
    Asking, BoxFuture, Credential, CredentialError, CredentialSource, Generation, Identity, Refused,
    TokenFileError,
};
use crate::kubeconfig::Disk;
use crate::metrics::{Metrics, Recorder};
use crate::transport::{Around, Body, ManualTimer, ResponseBody, Settings, Transport, TransportError, Trust};

/// Some moment of the year 2027, when the test kit's certificates are valid.
pub(super) const NOW: i64 = 1_800_000_000;

/// Gives what it holds; a refusal of the current generation brings the next credential of its script, and counts as one
/// run, as a plugin's would.
#[derive(Debug, Default)]
pub(super) struct Script(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    current: Option<Arc<Credential>>,
    next: VecDeque<Credential>,
    asked: usize,
    refusals: Vec<Refused>,
    runs: usize,
    broken: bool,
    hint: Option<&'static str>,
}

impl Script {
    /// Holds the first of these; the others come one by one when it is refused.
    pub(super) fn of(credentials: impl IntoIterator<Item = Credential>) -> Arc<Self> {
        let script = Script::default();
        let mut credentials = credentials.into_iter();
        if let Some(first) = credentials.next() {
            script.replace(first);
        }
        script.state().next = credentials.collect();
        Arc::new(script)
    }

    /// Something else from now on, as after an expiry.
    pub(super) fn replace(&self, credential: Credential) {
        let mut state = self.state();
        state.replace(credential);
    }

    /// Every attempt to get another one fails.
    pub(super) fn break_down(&self) {
        self.state().broken = true;
    }

    /// How often anybody asked for a credential.
    pub(super) fn asked(&self) -> usize {
        self.state().asked
    }

    /// How often another credential was got because one was refused.
    pub(super) fn runs(&self) -> usize {
        self.state().runs
    }

    /// Every refusal it heard of.
    pub(super) fn refusals(&self) -> Vec<Refused> {
        self.state().refusals.clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn replace(&mut self, credential: Credential) {
        let generation = self.current.as_ref().map_or(Generation::FIRST, |current| current.generation.next());
        self.current = Some(Arc::new(Credential { generation, ..credential }));
    }
}

impl CredentialSource for Script {
    fn ready(&self) -> Option<Arc<Credential>> {
        let mut state = self.state();
        state.asked += 1;
        state.current.clone()
    }

    fn current(&self, _: Asking) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        let current = self.ready().ok_or_else(error);
        Box::pin(async move { current })
    }

    fn refused(
        &self,
        generation: Generation,
        reason: Refused,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        let mut state = self.state();
        state.refusals.push(reason);
        let current = state.current.clone().filter(|current| current.generation != generation);
        let outcome = match current {
            Some(newer) => Ok(Some(newer)),
            None if state.broken => {
                state.runs += 1;
                Err(error())
            }
            None => {
                let next = state.next.pop_front();
                Ok(next.and_then(|next| {
                    state.runs += 1;
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

/// A bearer token and nothing else.
pub(super) fn bearer(token: &str) -> Credential {
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
    value.set_sensitive(true);
    Credential { authorization: Some(value), ..Credential::anonymous() }
}

/// A client certificate and nothing else.
pub(super) fn certificate(identity: &navicert_testkit::Identity) -> Credential {
    let chain = identity.chain().to_vec();
    let identity = Identity::from_der(chain, identity.key_der()).unwrap();
    Credential { identity: Some(Arc::new(identity)), ..Credential::anonymous() }
}

/// A transport, and the clock and timer it goes by.
pub(super) struct Rig {
    pub(super) transport: Transport,
    pub(super) clock: Arc<ManualClock>,
    pub(super) timer: ManualTimer,
    pub(super) metrics: Arc<Metrics>,
}

/// A transport for a server of this CA.
pub(super) fn rig(server: &HttpServer, ca: &Ca, source: Arc<dyn CredentialSource>) -> Rig {
    rig_with(settings(server, ca), source)
}

pub(super) fn settings(server: &HttpServer, ca: &Ca) -> Settings {
    Settings { trust: Trust::Pem(ca.pem().into_bytes()), ..Settings::new(server.url()) }
}

pub(super) fn rig_with(settings: Settings, source: Arc<dyn CredentialSource>) -> Rig {
    let (clock, timer) = (Arc::new(ManualClock::at(NOW)), ManualTimer::default());
    let metrics = Arc::new(Metrics::new());
    let around = Around {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        timer: Arc::new(timer.clone()),
        files: Arc::new(Disk),
        recorder: Arc::clone(&metrics) as Arc<dyn Recorder>,
    };
    Rig { transport: Transport::new(settings, source, around).unwrap(), clock, timer, metrics }
}

impl Rig {
    pub(super) async fn get(&self, path: &str) -> Result<Response<ResponseBody>, TransportError> {
        self.send(request(path)).await
    }

    pub(super) async fn send(
        &self,
        request: Request<Body>,
    ) -> Result<Response<ResponseBody>, TransportError> {
        wait::within("an answer", self.transport.send(request)).await
    }

    /// The status and the whole body.
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

/// An error with everything behind it, as a log would show it.
pub(super) fn everything(error: &dyn std::error::Error) -> String {
    let mut shown = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(error) = source {
        shown.push_str(&format!("; {error}"));
        source = error.source();
    }
    shown
}
