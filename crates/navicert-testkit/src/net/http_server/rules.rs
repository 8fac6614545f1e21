//! Selects the answer to a request: one-time answers first, then permanent ones, then the default.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use super::record::Request;
use crate::net::answer::Answer;

/// An answer that takes time to find.
pub(super) type PendingAnswer = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// An answer, or how to find one.
#[derive(Clone)]
pub(super) enum Choice {
    Fixed(Box<Answer>),
    Chosen(Arc<dyn Fn(&Request) -> Answer + Send + Sync>),
    Awaited(Arc<dyn Fn(Request) -> PendingAnswer + Send + Sync>),
}

impl Choice {
    /// Whether the answer is sent before the request's body is read.
    pub(super) fn before_body(&self) -> bool {
        matches!(self, Choice::Fixed(answer) if answer.before_body)
    }

    pub(super) async fn answer(&self, request: Request) -> Answer {
        match self {
            Choice::Fixed(answer) => (**answer).clone(),
            Choice::Chosen(choose) => choose(&request),
            Choice::Awaited(choose) => choose(request).await,
        }
    }
}

pub(super) struct Rules {
    once: VecDeque<(String, Choice)>,
    standing: Vec<(String, Choice)>,
    otherwise: Choice,
}

impl Rules {
    pub(super) fn new(otherwise: Choice) -> Self {
        Rules { once: VecDeque::new(), standing: Vec::new(), otherwise }
    }

    pub(super) fn stand(&mut self, pattern: &str, choice: Choice) {
        self.standing.retain(|(known, _)| known != pattern);
        self.standing.push((pattern.to_owned(), choice));
    }

    pub(super) fn once(&mut self, pattern: &str, choice: Choice) {
        self.once.push_back((pattern.to_owned(), choice));
    }

    pub(super) fn forget(&mut self) {
        self.once.clear();
        self.standing.clear();
    }

    /// Finds the answer for a path; a one-time answer is removed.
    pub(super) fn choose(&mut self, path: &str) -> Choice {
        let first = self.once.iter().position(|(pattern, _)| matches(pattern, path));
        if let Some((_, choice)) = first.and_then(|index| self.once.remove(index)) {
            return choice;
        }
        let standing = self.standing.iter().rev().find(|(pattern, _)| matches(pattern, path));
        standing.map_or_else(|| self.otherwise.clone(), |(_, choice)| choice.clone())
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns = self.once.iter().map(|(pattern, _)| pattern);
        formatter
            .debug_list()
            .entries(patterns.chain(self.standing.iter().map(|(pattern, _)| pattern)))
            .finish()
    }
}

/// A pattern is a path; a `*` at its end matches any rest.
fn matches(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => pattern == path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_for_once_come_first_then_the_latest_standing_one_then_the_servers_own() {
        let fixed = |status| Choice::Fixed(Box::new(Answer::status(status)));
        let mut rules = Rules::new(fixed(404));
        rules.stand("/api/*", fixed(200));
        rules.stand("/api/v1", fixed(201));
        rules.once("*", fixed(500));
        rules.once("/api/v1", fixed(501));
        let mut status = |path: &str| match rules.choose(path) {
            Choice::Fixed(answer) => answer.status.as_u16(),
            Choice::Chosen(_) | Choice::Awaited(_) => 0,
        };
        assert_eq!(status("/api/v1"), 500);
        assert_eq!(status("/other"), 404);
        assert_eq!(status("/api/v1"), 501);
        assert_eq!(status("/api/v1"), 201);
        assert_eq!(status("/api/v2"), 200);
        assert_eq!(status("/api"), 404, "`/api/*` needs the slash");
    }
}
