//! A [`Fetch`] whose answers a test decides on, and that remembers what it was asked.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fetch::{BoxFuture, Fetch, FetchError, FetchLimits, FetchRequest, Fetched, Stage};
#[cfg(test)]
use crate::config::CompiledIssuer;

/// Answers by address; what has no answer cannot be connected to.
#[derive(Debug, Default)]
pub struct ScriptedFetch(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    answers: HashMap<String, Result<Fetched, Stage>>,
    asked: Vec<Asked>,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The address.
    pub url: String,
    /// Whether a bearer token came with it.
    pub has_bearer: bool,
    /// The limits.
    pub limits: FetchLimits,
    /// How many roots there are; 0: the system's.
    pub roots: usize,
}

impl ScriptedFetch {
    /// Answers so from now on.
    pub fn answer(&self, url: &str, status: u16, body: &str) {
        self.answer_with(url, status, &[], body);
    }

    /// Answers so from now on, with headers.
    pub fn answer_with(&self, url: &str, status: u16, headers: &[(&str, &str)], body: &str) {
        let mut answer = Fetched::new(status, url, body.as_bytes());
        answer.headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.lock().answers.insert(url.to_owned(), Ok(answer));
    }

    /// Fails so from now on.
    pub fn fail(&self, url: &str, stage: Stage) {
        self.lock().answers.insert(url.to_owned(), Err(stage));
    }

    /// How often an address was asked for.
    pub fn count(&self, url: &str) -> usize {
        self.lock().asked.iter().filter(|asked| asked.url == url).count()
    }

    /// Everything that was asked for, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.lock().asked.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fetch for ScriptedFetch {
    fn get<'f>(&'f self, request: FetchRequest<'f>) -> BoxFuture<'f, Result<Fetched, FetchError>> {
        let mut state = self.lock();
        state.asked.push(Asked {
            url: request.url.to_owned(),
            has_bearer: request.bearer.is_some(),
            limits: request.limits,
            roots: request.roots.len(),
        });
        let answer = match state.answers.get(request.url) {
            Some(Ok(answer)) => Ok(answer.clone()),
            Some(Err(stage)) => Err(FetchError::new(*stage, format!("no way to `{}`", request.url))),
            None => Err(FetchError::new(Stage::Connect, format!("nobody is at `{}`", request.url))),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// An issuer with this URL and nothing special about it.
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
