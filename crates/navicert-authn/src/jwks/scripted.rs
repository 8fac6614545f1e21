//! A [`Fetch`] with scripted responses that records its requests, for tests.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fetch::{BoxFuture, Fetch, FetchError, FetchLimits, FetchRequest, FetchResponse, FetchStage};
#[cfg(test)]
use crate::config::CompiledIssuer;

/// Responses by URL; a URL without a response fails to connect.
#[derive(Debug, Default)]
pub struct ScriptedFetch(Mutex<Script>);

#[derive(Debug, Default)]
struct Script {
    answers: HashMap<String, Result<FetchResponse, FetchStage>>,
    requests: Vec<RecordedRequest>,
}

/// A recorded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// The URL.
    pub url: String,
    /// Whether it carried a bearer token.
    pub has_bearer: bool,
    /// Its limits.
    pub limits: FetchLimits,
    /// Number of trust roots; 0: the system roots.
    pub roots: usize,
}

impl ScriptedFetch {
    /// Sets the response of a URL.
    pub fn answer(&self, url: &str, status: u16, body: &str) {
        self.answer_with(url, status, &[], body);
    }

    /// Sets the response of a URL, with headers.
    pub fn answer_with(&self, url: &str, status: u16, headers: &[(&str, &str)], body: &str) {
        let mut answer = FetchResponse::new(status, url, body.as_bytes());
        answer.headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.lock().answers.insert(url.to_owned(), Ok(answer));
    }

    /// Makes requests to a URL fail at this stage.
    pub fn fail(&self, url: &str, stage: FetchStage) {
        self.lock().answers.insert(url.to_owned(), Err(stage));
    }

    /// Number of requests to a URL.
    pub fn count(&self, url: &str) -> usize {
        self.lock().requests.iter().filter(|asked| asked.url == url).count()
    }

    /// Every request, in order.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.lock().requests.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fetch for ScriptedFetch {
    fn get<'f>(&'f self, request: FetchRequest<'f>) -> BoxFuture<'f, Result<FetchResponse, FetchError>> {
        let mut state = self.lock();
        state.requests.push(RecordedRequest {
            url: request.url.to_owned(),
            has_bearer: request.bearer.is_some(),
            limits: request.limits,
            roots: request.roots.len(),
        });
        let answer = match state.answers.get(request.url) {
            Some(Ok(answer)) => Ok(answer.clone()),
            Some(Err(stage)) => Err(FetchError::new(*stage, format!("no route to `{}`", request.url))),
            None => {
                Err(FetchError::new(FetchStage::Connect, format!("connection to `{}` refused", request.url)))
            }
        };
        Box::pin(std::future::ready(answer))
    }
}

/// An issuer with this URL and default settings.
#[cfg(test)]
pub(crate) fn issuer(url: &str) -> CompiledIssuer {
    CompiledIssuer {
        url: url.to_owned(),
        discovery_url: None,
        certificate_authority: Vec::new(),
        audiences: vec!["aud1".to_owned()],
        egress: None,
    }
}
