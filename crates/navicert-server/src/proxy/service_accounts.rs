//! Reviews tokens of unknown issuers with the API server, which may know them as service account tokens, and caches
//! the result briefly.
// S276

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::hmac;
use navicert_client::credential::BoxFuture;
use navicert_types::token_review::UserInfo;
use navicert_types::{Clock, error_chain};
use tokio::sync::Semaphore;

use crate::token_review_client::{ReviewOutcome, TokenReviewClient, TokenReviewError};

/// How long a positive result is cached, as in kube-apiserver.
const ACCEPTED_TTL: Duration = Duration::from_secs(10);
/// How long a negative result is cached.
const REJECTED_TTL: Duration = Duration::from_secs(2);
/// Maximum number of cached results.
const MAX_CACHED_REVIEWS: usize = 8_192;
/// Maximum number of concurrent reviews, so that a flood of unknown tokens does not reach the API server.
const MAX_CONCURRENT_REVIEWS: usize = 16;

/// Reviews a token.
pub trait TokenReviewer: fmt::Debug + Send + Sync {
    /// The token's user; `None` if the token is invalid.
    fn review<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewFailed>>;
}

/// The review failed. The reason is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to review the token")]
pub struct ReviewFailed;

/// Reviews by the API server, for its own audience.
impl TokenReviewer for TokenReviewClient {
    fn review<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewFailed>> {
        Box::pin(async move {
            match TokenReviewClient::review(self, token, &[]).await {
                Ok(ReviewOutcome::Authenticated { user, .. }) => Ok(Some(user)),
                Ok(ReviewOutcome::Unauthenticated) => Ok(None),
                // kube-apiserver reports an error for every invalid token, so this is a negative result.
                Err(TokenReviewError::Unknown(_)) => Ok(None),
                Err(error) => {
                    tracing::warn!(
                        event = "token_review_failed",
                        error = error_chain(&error),
                        "failed to review a token with the API server"
                    );
                    Err(ReviewFailed)
                }
            }
        })
    }
}

/// Token reviews with a cache.
pub struct ServiceAccountReviews {
    reviewer: Arc<dyn TokenReviewer>,
    key: hmac::Key,
    cache: Mutex<HashMap<TokenDigest, CachedReview>>,
    permits: Semaphore,
    clock: Arc<dyn Clock>,
}

type TokenDigest = [u8; 32];

struct CachedReview {
    user: Option<Arc<UserInfo>>,
    expires_at: Duration,
}

impl ServiceAccountReviews {
    /// Starts with an empty cache.
    pub fn new(reviewer: Arc<dyn TokenReviewer>, clock: Arc<dyn Clock>) -> Self {
        let random = aws_lc_rs::rand::SystemRandom::new();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &random);
        let key = key.unwrap_or_else(|_| hmac::Key::new(hmac::HMAC_SHA256, &[]));
        ServiceAccountReviews {
            reviewer,
            key,
            cache: Mutex::default(),
            permits: Semaphore::new(MAX_CONCURRENT_REVIEWS),
            clock,
        }
    }

    /// The token's user; `None` if the token is invalid.
    ///
    /// # Errors
    /// [`ReviewFailed`]: the review failed.
    pub async fn review(&self, token: &str) -> Result<Option<Arc<UserInfo>>, ReviewFailed> {
        let name = self.digest(token);
        if let Some(known) = self.cached(&name) {
            return Ok(known);
        }
        let _place = self.permits.acquire().await.map_err(|_| ReviewFailed)?;
        // Another request may have completed the review meanwhile.
        if let Some(known) = self.cached(&name) {
            return Ok(known);
        }
        let person = self.reviewer.review(token).await?.map(Arc::new);
        let keep = if person.is_some() { ACCEPTED_TTL } else { REJECTED_TTL };
        let now = self.clock.monotonic();
        let mut all = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_CACHED_REVIEWS {
            all.retain(|_, known| known.expires_at > now);
            if all.len() >= MAX_CACHED_REVIEWS {
                all.clear();
            }
        }
        all.insert(name, CachedReview { user: person.clone(), expires_at: now.saturating_add(keep) });
        Ok(person)
    }

    fn cached(&self, name: &TokenDigest) -> Option<Option<Arc<UserInfo>>> {
        let all = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(name).filter(|known| known.expires_at > self.clock.monotonic())?;
        Some(known.user.clone())
    }

    /// Cache key: never the token itself.
    // S282
    fn digest(&self, token: &str) -> TokenDigest {
        let mut name = TokenDigest::default();
        for (to, from) in name.iter_mut().zip(hmac::sign(&self.key, token.as_bytes()).as_ref()) {
            *to = *from;
        }
        name
    }
}

impl fmt::Debug for ServiceAccountReviews {
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
    struct CountingReviewer(AtomicUsize);

    impl TokenReviewer for CountingReviewer {
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
    async fn caches_results_briefly_and_failures_never() {
        let (clock, reviewer) = (Arc::new(ManualClock::at(0)), Arc::new(CountingReviewer::default()));
        let accounts = ServiceAccountReviews::new(Arc::clone(&reviewer) as _, Arc::clone(&clock) as _);
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
