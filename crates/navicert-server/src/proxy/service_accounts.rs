//! Reviews tokens of unknown issuers with the API server, which may know them as service account tokens, and caches
//! the result briefly.
// S276

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::hmac;
use navicert_client::credential::BoxFuture;
use navicert_client::transport::Timer;
use navicert_io::flights::Flights;
use navicert_types::token_review::UserInfo;
use navicert_types::{Clock, error_chain};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::token_review_client::{ReviewOutcome, TokenReviewClient, TokenReviewError};

/// How long a positive result is cached, as in kube-apiserver.
const ACCEPTED_TTL: Duration = Duration::from_secs(10);
/// How long a negative result is cached.
const REJECTED_TTL: Duration = Duration::from_secs(2);
/// Maximum number of cached results of each kind.
const MAX_CACHED_REVIEWS: usize = 8_192;
/// Maximum number of concurrent reviews, so that a flood of unknown tokens does not reach the API server.
const MAX_CONCURRENT_REVIEWS: usize = 16;
/// How many of them only tokens that were valid before may use.
const RESERVED_REVIEWS: usize = 4;
/// Maximum number of requests that wait for a review; as many more if their tokens were valid before.
const MAX_WAITING_REVIEWS: usize = 256;
/// How long a review waits for its turn, and a request for the review of another request with the same token.
const MAX_REVIEW_WAIT: Duration = Duration::from_secs(1);

/// Reviews a token.
pub trait TokenReviewer: fmt::Debug + Send + Sync {
    /// The token's user; `None` if the token is invalid.
    fn review<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewFailed>>;
}

/// The review failed. The reason is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to review the token")]
pub struct ReviewFailed;

/// Reviews by the API server, for its own audience or those that the client requires.
impl TokenReviewer for TokenReviewClient {
    fn review<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewFailed>> {
        Box::pin(async move {
            match TokenReviewClient::review(self, token, &self.required_audiences).await {
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

/// Token reviews with a cache. Requests with the same token share a review. Reviews beyond the maximum wait in line, for a
/// short time and only so many of them.
pub struct ServiceAccountReviews {
    reviewer: Arc<dyn TokenReviewer>,
    key: hmac::Key,
    state: Mutex<ReviewState>,
    /// Reviews in progress.
    flights: Flights<TokenDigest, ReviewResult>,
    permits: Semaphore,
    /// For tokens that were valid before: a flood of unknown tokens does not delay them.
    reserved_permits: Semaphore,
    clock: Arc<dyn Clock>,
    timer: Arc<dyn Timer>,
}

type TokenDigest = [u8; 32];
type ReviewResult = Result<Option<Arc<UserInfo>>, ReviewFailed>;

#[derive(Default)]
struct ReviewState {
    /// Separate: invalid tokens do not evict valid ones.
    accepted: ReviewCache<Arc<UserInfo>>,
    rejected: ReviewCache<()>,
    /// Requests with a review in progress.
    waiting: usize,
}

impl ServiceAccountReviews {
    /// Starts with an empty cache.
    pub fn new(reviewer: Arc<dyn TokenReviewer>, clock: Arc<dyn Clock>, timer: Arc<dyn Timer>) -> Self {
        let random = aws_lc_rs::rand::SystemRandom::new();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &random);
        let key = key.unwrap_or_else(|_| hmac::Key::new(hmac::HMAC_SHA256, &[]));
        ServiceAccountReviews {
            reviewer,
            key,
            state: Mutex::default(),
            flights: Flights::new(),
            permits: Semaphore::new(MAX_CONCURRENT_REVIEWS - RESERVED_REVIEWS),
            reserved_permits: Semaphore::new(RESERVED_REVIEWS),
            clock,
            timer,
        }
    }

    /// The token's user; `None` if the token is invalid.
    ///
    /// # Errors
    /// [`ReviewFailed`]: the review failed, or waited too long for its turn or for the review of another request.
    pub async fn review(&self, token: &str) -> ReviewResult {
        let name = self.digest(token);
        if let Some(known) = self.state().cached(&name, self.clock.monotonic()) {
            return Ok(known);
        }
        let _waiting = self.wait(&name)?;
        let member = self.flights.join(name, || ());
        let lead = match member.try_lead() {
            Some(lead) => lead,
            None => tokio::select! {
                lead = member.lead() => lead,
                () = self.timer.sleep(MAX_REVIEW_WAIT) => return Err(ReviewFailed),
            },
        };
        if let Some(result) = member.result() {
            return result.clone();
        }
        let result = self.run(token, &name).await;
        member.finish(lead, result.clone());
        result
    }

    /// Counts a request with a review in progress until the guard is dropped.
    fn wait(&self, name: &TokenDigest) -> Result<WaitGuard<'_>, ReviewFailed> {
        let mut state = self.state();
        let reserve = if state.accepted.contains(name) { MAX_WAITING_REVIEWS } else { 0 };
        if state.waiting >= MAX_WAITING_REVIEWS + reserve {
            return Err(ReviewFailed);
        }
        state.waiting += 1;
        Ok(WaitGuard(self))
    }

    /// Reviews a token when it is its turn, and caches the result.
    async fn run(&self, token: &str, name: &TokenDigest) -> ReviewResult {
        let _permit = self.permit(name).await?;
        let user = self.reviewer.review(token).await?.map(Arc::new);
        let now = self.clock.monotonic();
        let mut state = self.state();
        match &user {
            Some(user) => state.accepted.insert(*name, Arc::clone(user), now.saturating_add(ACCEPTED_TTL)),
            None => state.rejected.insert(*name, (), now.saturating_add(REJECTED_TTL)),
        }
        Ok(user)
    }

    async fn permit(&self, name: &TokenDigest) -> Result<SemaphorePermit<'_>, ReviewFailed> {
        if let Ok(permit) = self.permits.try_acquire() {
            return Ok(permit);
        }
        let is_known = self.state().accepted.contains(name);
        let permit = tokio::select! {
            permit = self.permits.acquire() => permit,
            permit = self.reserved_permits.acquire(), if is_known => permit,
            () = self.timer.sleep(MAX_REVIEW_WAIT) => return Err(ReviewFailed),
        };
        permit.map_err(|_| ReviewFailed)
    }

    fn state(&self) -> MutexGuard<'_, ReviewState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

impl ReviewState {
    fn cached(&self, name: &TokenDigest, now: Duration) -> Option<Option<Arc<UserInfo>>> {
        let accepted = self.accepted.get(name, now).map(|user| Some(Arc::clone(user)));
        accepted.or_else(|| self.rejected.get(name, now).map(|()| None))
    }
}

/// A request with a review in progress.
struct WaitGuard<'r>(&'r ServiceAccountReviews);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.waiting = state.waiting.saturating_sub(1);
    }
}

/// A bounded cache. The oldest entry is evicted when it is full; until then expired entries tell which tokens are known.
struct ReviewCache<T> {
    entries: HashMap<TokenDigest, CachedReview<T>>,
    order: VecDeque<TokenDigest>,
}

struct CachedReview<T> {
    value: T,
    expires_at: Duration,
}

impl<T> Default for ReviewCache<T> {
    fn default() -> Self {
        ReviewCache { entries: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T> ReviewCache<T> {
    fn get(&self, name: &TokenDigest, now: Duration) -> Option<&T> {
        self.entries.get(name).filter(|known| known.expires_at > now).map(|known| &known.value)
    }

    fn contains(&self, name: &TokenDigest) -> bool {
        self.entries.contains_key(name)
    }

    fn insert(&mut self, name: TokenDigest, value: T, expires_at: Duration) {
        if self.entries.insert(name, CachedReview { value, expires_at }).is_none() {
            self.order.push_back(name);
        }
        if self.order.len() > MAX_CACHED_REVIEWS
            && let Some(oldest) = self.order.pop_front()
        {
            self.entries.remove(&oldest);
        }
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

    use navicert_client::transport::TokioTimer;
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
        let accounts = ServiceAccountReviews::new(
            Arc::clone(&reviewer) as _,
            Arc::clone(&clock) as _,
            Arc::new(TokioTimer),
        );
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

    /// A reviewer that never answers for tokens that begin with `hang`.
    #[derive(Debug, Default)]
    struct HangingReviewer(AtomicUsize);

    impl TokenReviewer for HangingReviewer {
        fn review<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewFailed>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let known = UserInfo { username: "system:serviceaccount:a:b".to_owned(), ..UserInfo::default() };
            Box::pin(async move {
                if token.starts_with("hang") {
                    std::future::pending::<()>().await;
                }
                Ok(token.starts_with("good").then_some(known))
            })
        }
    }

    fn spawn(reviews: &Arc<ServiceAccountReviews>, token: String) -> tokio::task::JoinHandle<ReviewResult> {
        let reviews = Arc::clone(reviews);
        tokio::spawn(async move { reviews.review(&token).await })
    }

    /// Lets the paused clock pass the time that a review may wait.
    async fn pass_review_wait() {
        let limit = MAX_REVIEW_WAIT + Duration::from_millis(1);
        let _ = tokio::time::timeout(limit, std::future::pending::<()>()).await;
    }

    // S276: reviews that hang delay other tokens by at most a second, and tokens that were valid before not at all.
    #[tokio::test(start_paused = true)]
    async fn hanging_reviews_do_not_hold_up_others() {
        let (clock, reviewer) = (Arc::new(ManualClock::at(0)), Arc::new(HangingReviewer::default()));
        let reviews = ServiceAccountReviews::new(
            Arc::clone(&reviewer) as _,
            Arc::clone(&clock) as _,
            Arc::new(TokioTimer),
        );
        let reviews = Arc::new(reviews);
        assert!(reviews.review("good").await.unwrap().is_some());
        clock.advance(ACCEPTED_TTL);
        let flood: Vec<_> =
            (0..2 * MAX_WAITING_REVIEWS).map(|number| spawn(&reviews, format!("hang-{number}"))).collect();
        tokio::task::yield_now().await;
        assert_eq!(reviewer.0.load(Ordering::Relaxed), 1 + MAX_CONCURRENT_REVIEWS - RESERVED_REVIEWS);
        assert_eq!(reviews.review("other").await, Err(ReviewFailed), "too many wait");
        assert!(reviews.review("good").await.unwrap().is_some(), "known tokens have places of their own");
        // After a second, those in line are gone.
        pass_review_wait().await;
        let waiting = flood.iter().filter(|one| !one.is_finished()).count();
        assert_eq!(waiting, MAX_CONCURRENT_REVIEWS - RESERVED_REVIEWS, "only those under review wait");
        for one in &flood {
            one.abort();
        }
        tokio::task::yield_now().await;
        assert!(reviews.review("good-2").await.unwrap().is_some());
        let state = reviews.state();
        assert_eq!((reviews.flights.in_flight(), state.waiting), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_with_one_token_share_a_review() {
        let (clock, reviewer) = (Arc::new(ManualClock::at(0)), Arc::new(HangingReviewer::default()));
        let reviews = ServiceAccountReviews::new(
            Arc::clone(&reviewer) as _,
            Arc::clone(&clock) as _,
            Arc::new(TokioTimer),
        );
        let reviews = Arc::new(reviews);
        let requests: Vec<_> = (0..50).map(|_| spawn(&reviews, "hang".to_owned())).collect();
        pass_review_wait().await;
        assert_eq!(reviewer.0.load(Ordering::Relaxed), 1);
        let answered = requests.iter().filter(|one| one.is_finished()).count();
        assert_eq!(answered, 49, "only the request that runs the review waits for it");
    }

    // The cache never clears itself: one entry makes room for one.
    #[test]
    fn cache_evicts_one_entry_at_a_time() {
        let (mut cache, far) = (ReviewCache::default(), Duration::from_secs(100));
        let name = |number: usize| {
            let mut name = TokenDigest::default();
            name[..8].copy_from_slice(&number.to_ne_bytes());
            name
        };
        for number in 0..MAX_CACHED_REVIEWS + 10 {
            cache.insert(name(number), (), far);
            assert_eq!(cache.entries.len(), (number + 1).min(MAX_CACHED_REVIEWS));
        }
        assert!(!cache.contains(&name(9)) && cache.contains(&name(10)));
        cache.insert(name(10), (), far);
        assert_eq!((cache.entries.len(), cache.order.len()), (MAX_CACHED_REVIEWS, MAX_CACHED_REVIEWS));
    }
}
