//! Tokens that no issuer of ours claims: the API server may know them as a service account's. It is asked, and its answer
//! remembered for a moment (structured-authentication.md S276).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::hmac;
use navicert_client::credential::BoxFuture;
use navicert_types::Clock;
use navicert_types::token_review::UserInfo;
use tokio::sync::Semaphore;

use crate::token_review_client::{ReviewError, Reviewed, TokenReviewClient};

/// How long a yes counts, as in kube-apiserver's own cache.
const ACCEPTED_FOR: Duration = Duration::from_secs(10);
/// How long a no does.
const REFUSED_FOR: Duration = Duration::from_secs(2);
/// How many answers are remembered.
const MOST: usize = 8_192;
/// How many questions are asked at a time: a flood of strange tokens is not passed on to the API server.
const AT_A_TIME: usize = 16;

/// Asks somebody who knows whose token it is.
pub trait ReviewToken: fmt::Debug + Send + Sync {
    /// Whose it is; `None`: nobody's.
    fn review<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewFailed>>;
}

/// Nobody can say. Why is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API server did not review the token")]
pub struct ReviewFailed;

/// The API server itself, for its own audience.
impl ReviewToken for TokenReviewClient {
    fn review<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewFailed>> {
        Box::pin(async move {
            match TokenReviewClient::review(self, token, &[]).await {
                Ok(Reviewed::Authenticated { user, .. }) => Ok(Some(user)),
                Ok(Reviewed::Nobody) => Ok(None),
                // kube-apiserver has a word for every token that is none; it is not that nobody could say.
                Err(ReviewError::Unknown(_)) => Ok(None),
                Err(error) => {
                    tracing::warn!(%error, "a token cannot be reviewed");
                    Err(ReviewFailed)
                }
            }
        })
    }
}

/// A reviewer with a memory.
pub struct Accounts {
    reviewer: Arc<dyn ReviewToken>,
    key: hmac::Key,
    known: Mutex<HashMap<Name, Known>>,
    places: Semaphore,
    clock: Arc<dyn Clock>,
}

type Name = [u8; 32];

struct Known {
    person: Option<Arc<UserInfo>>,
    until: Duration,
}

impl Accounts {
    /// Nothing is remembered yet.
    pub fn new(reviewer: Arc<dyn ReviewToken>, clock: Arc<dyn Clock>) -> Self {
        let random = aws_lc_rs::rand::SystemRandom::new();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &random);
        let key = key.unwrap_or_else(|_| hmac::Key::new(hmac::HMAC_SHA256, &[]));
        Accounts { reviewer, key, known: Mutex::default(), places: Semaphore::new(AT_A_TIME), clock }
    }

    /// Whose token it is.
    ///
    /// # Errors
    /// [`ReviewFailed`]: nobody can say.
    pub async fn review(&self, token: &str) -> Result<Option<Arc<UserInfo>>, ReviewFailed> {
        let name = self.name(token);
        if let Some(known) = self.find(&name) {
            return Ok(known);
        }
        let _place = self.places.acquire().await.map_err(|_| ReviewFailed)?;
        // Somebody may have asked while we waited.
        if let Some(known) = self.find(&name) {
            return Ok(known);
        }
        let person = self.reviewer.review(token).await?.map(Arc::new);
        let keep = if person.is_some() { ACCEPTED_FOR } else { REFUSED_FOR };
        let now = self.clock.monotonic();
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.retain(|_, known| known.until > now);
            if all.len() >= MOST {
                all.clear();
            }
        }
        all.insert(name, Known { person: person.clone(), until: now.saturating_add(keep) });
        Ok(person)
    }

    fn find(&self, name: &Name) -> Option<Option<Arc<UserInfo>>> {
        let all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(name).filter(|known| known.until > self.clock.monotonic())?;
        Some(known.person.clone())
    }

    /// Never the token itself (S282).
    fn name(&self, token: &str) -> Name {
        let mut name = Name::default();
        for (to, from) in name.iter_mut().zip(hmac::sign(&self.key, token.as_bytes()).as_ref()) {
            *to = *from;
        }
        name
    }
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accounts").field("reviewer", &self.reviewer).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use navicert_types::clock::ManualClock;

    use super::*;

    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);

    impl ReviewToken for Counting {
        fn review<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewFailed>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let known = UserInfo { username: "system:serviceaccount:a:b".to_owned(), ..UserInfo::default() };
            let answer = match token {
                "good" => Ok(Some(known)),
                "down" => Err(ReviewFailed),
                _ => Ok(None),
            };
            Box::pin(async move { answer })
        }
    }

    #[tokio::test]
    async fn an_answer_counts_for_a_moment_and_a_failure_not_at_all() {
        let (clock, reviewer) = (Arc::new(ManualClock::at(0)), Arc::new(Counting::default()));
        let accounts = Accounts::new(Arc::clone(&reviewer) as _, Arc::clone(&clock) as _);
        for (token, wait, questions) in [
            ("good", 0, 1),
            ("good", 9, 1),
            ("good", 2, 2),
            ("bad", 0, 3),
            ("bad", 1, 3),
            ("bad", 2, 4),
            ("down", 0, 5),
            ("down", 0, 6),
        ] {
            clock.advance(Duration::from_secs(wait));
            let answer = accounts.review(token).await;
            assert_eq!(answer.is_err(), token == "down");
            assert_eq!(answer.is_ok_and(|person| person.is_some()), token == "good");
            assert_eq!(reviewer.0.load(Ordering::Relaxed), questions, "{token}");
        }
    }
}
