//! A user with a steady 50 requests per second, for tests of attacks: while an attack runs, every request of this user
//! succeeds, and the 99th percentile of the latency is at most five times that of the quiet server.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use navicert_types::{Clock as _, SystemClock};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::{soak, wait};

/// Interval between two requests: 50 per second, whether or not earlier ones were answered.
const REQUEST_INTERVAL: Duration = Duration::from_millis(20);

/// How long a victim sends requests: 2 s, and a minute in `make soak`.
fn observation_time() -> Duration {
    Duration::from_secs(if soak::factor() > 1 { 60 } else { 2 })
}

/// Factor between the latency during an attack and that of a quiet server.
const MAX_SLOWDOWN: u32 = 5;

/// Latencies below this count as this: the short form runs beside other tests, on machines with few cores.
fn min_quiet_latency() -> Duration {
    Duration::from_millis(if soak::factor() > 1 { 10 } else { 400 })
}

type Sent = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// A user that is not part of the attack.
///
/// ```
/// use navicert_testkit::Victim;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let victim = Victim::new(|number| async move { if number < 10_000 { Ok(()) } else { Err("late".into()) } });
/// let quiet = victim.observe().await;
/// // Start the attack here.
/// victim.observe().await.assert_unharmed(&quiet, "an attack that does nothing");
/// # }
/// ```
#[derive(Clone)]
pub struct Victim {
    send: Arc<dyn Fn(usize) -> Sent + Send + Sync>,
}

/// What a victim saw.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// Latencies of the requests that succeeded, in ascending order.
    latencies: Vec<Duration>,
    /// Why the others failed.
    errors: Vec<String>,
}

impl Victim {
    /// A user whose requests are sent by `send`, which gets the request's number; an error is an attack's effect.
    pub fn new<F, A>(send: F) -> Self
    where
        F: Fn(usize) -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), String>> + Send + 'static,
    {
        Victim { send: Arc::new(move |number| Box::pin(send(number))) }
    }

    /// Sends requests for two seconds (a minute in `make soak`) and waits for all of them.
    pub async fn observe(&self) -> Observation {
        self.observe_for(observation_time()).await
    }

    async fn observe_for(&self, time: Duration) -> Observation {
        let (clock, mut interval) = (SystemClock, tokio::time::interval(REQUEST_INTERVAL));
        // After a stall of this process the requests that were due are not sent at once: that would be another load.
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (end, mut requests) = (clock.monotonic() + time, JoinSet::new());
        for number in 0.. {
            interval.tick().await;
            if clock.monotonic() >= end {
                break;
            }
            let sent = (self.send)(number);
            requests.spawn(async move {
                let started = clock.monotonic();
                let outcome = tokio::time::timeout(wait::LIMIT, sent).await;
                let outcome = outcome.unwrap_or_else(|_| Err(format!("no answer within {:?}", wait::LIMIT)));
                outcome.map(|()| clock.monotonic().saturating_sub(started))
            });
        }
        let mut seen = Observation::default();
        while let Some(request) = requests.join_next().await {
            match request.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(latency) => seen.latencies.push(latency),
                Err(error) => seen.errors.push(error),
            }
        }
        seen.latencies.sort_unstable();
        seen
    }
}

impl std::fmt::Debug for Victim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Victim").finish_non_exhaustive()
    }
}

impl Observation {
    /// The 99th percentile of the latency; zero without a successful request.
    pub fn p99(&self) -> Duration {
        self.quantile(99)
    }

    fn quantile(&self, percent: usize) -> Duration {
        let rank = (self.latencies.len() * percent).div_ceil(100).saturating_sub(1);
        self.latencies.get(rank).copied().unwrap_or_default()
    }

    /// Asserts that an attack did not affect the victim: no error, and a p99 of at most five times that of `quiet`.
    ///
    /// # Panics
    /// If it did, or if hardly any request was sent.
    pub fn assert_unharmed(&self, quiet: &Observation, attack: &str) {
        let Observation { latencies, errors } = self;
        let figures = format!(
            "{attack}: {} answered, {} errors, p50 {:?} (quiet {:?}), p99 {:?} (quiet {:?})",
            latencies.len(),
            errors.len(),
            self.quantile(50),
            quiet.quantile(50),
            self.p99(),
            quiet.p99(),
        );
        say(&figures);
        assert!(quiet.errors.is_empty(), "before {attack}: {:?}", quiet.errors.first());
        let some: Vec<&String> = errors.iter().take(3).collect();
        assert!(errors.is_empty(), "{figures}: {some:#?}");
        assert!(latencies.len() >= 50 && quiet.latencies.len() >= 50, "hardly any request: {figures}");
        assert!(self.p99() <= MAX_SLOWDOWN * quiet.p99().max(min_quiet_latency()), "{figures}");
    }
}

#[expect(clippy::print_stdout, reason = "figures of a long run, shown with --nocapture")]
fn say(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(milliseconds: impl IntoIterator<Item = u64>) -> Observation {
        let latencies = milliseconds.into_iter().map(Duration::from_millis).collect();
        Observation { latencies, errors: Vec::new() }
    }

    #[test]
    fn p99_leaves_one_in_a_hundred_out() {
        assert_eq!(seen(1..=100).p99(), Duration::from_millis(99));
        assert_eq!(seen(1..=200).p99(), Duration::from_millis(198));
        assert_eq!(seen([]).p99(), Duration::ZERO);
    }

    #[test]
    fn accepts_what_a_quiet_server_does() {
        seen(1..=100).assert_unharmed(&seen(1..=100), "nothing");
    }

    #[test]
    #[should_panic(expected = "a slow server: 100 answered, 0 errors")]
    fn rejects_a_slow_server() {
        seen((1..=100).map(|_| 60_000)).assert_unharmed(&seen(1..=100), "a slow server");
    }

    #[tokio::test]
    #[should_panic(expected = "an attack: ")]
    async fn rejects_one_error() {
        let victim =
            Victim::new(|number| async move { if number == 7 { Err("seven".into()) } else { Ok(()) } });
        let during = victim.observe_for(Duration::from_millis(1_500)).await;
        if during.errors == ["seven"] {
            during.assert_unharmed(&seen(1..=100), "an attack");
        }
    }
}
