//! Server metrics in the Prometheus text format: traffic of each listener, and the token and key metrics of
//! `navicert-authn`. Updates are lock-free.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Response, StatusCode};
use navicert_authn::metrics::AuthnMetrics;
use navicert_types::Clock;
pub use navicert_types::exposition::Exposition;
use navicert_types::exposition::MetricKind::{self, Counter, Gauge};

/// A source of metrics.
pub trait Collector: Send + Sync {
    /// Writes the metrics.
    fn collect(&self, exposition: &mut Exposition);
}

impl Collector for AuthnMetrics {
    fn collect(&self, exposition: &mut Exposition) {
        AuthnMetrics::collect(self, exposition);
    }
}

/// All sources behind `/metrics`.
#[derive(Clone, Default)]
pub struct Registry(Arc<Mutex<Vec<Arc<dyn Collector>>>>);

impl Registry {
    /// Adds a source.
    pub fn register(&self, collector: Arc<dyn Collector>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(collector);
    }

    /// Renders all metrics.
    pub fn render(&self) -> String {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut exposition = Exposition::default();
        for collector in all {
            collector.collect(&mut exposition);
        }
        exposition.into_text()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").finish_non_exhaustive()
    }
}

/// Status codes counted individually; all others are counted as `other`.
const COUNTED_STATUS_CODES: [u16; 17] =
    [101, 200, 201, 304, 400, 401, 403, 404, 405, 408, 409, 413, 429, 500, 502, 503, 504];

/// Upper bounds of the latency histogram (time to response head), in seconds and nanoseconds.
const LATENCY_BUCKETS: [(f64, u64); 14] = [
    (0.0001, 100_000),
    (0.00025, 250_000),
    (0.0005, 500_000),
    (0.001, 1_000_000),
    (0.0025, 2_500_000),
    (0.005, 5_000_000),
    (0.01, 10_000_000),
    (0.025, 25_000_000),
    (0.05, 50_000_000),
    (0.1, 100_000_000),
    (0.25, 250_000_000),
    (0.5, 500_000_000),
    (1.0, 1_000_000_000),
    (5.0, 5_000_000_000),
];

/// Metrics of one listener.
pub struct ListenerMetrics {
    server: &'static str,
    clock: Arc<dyn Clock>,
    accepted: AtomicU64,
    open: AtomicI64,
    evicted: AtomicU64,
    handshakes_failed: AtomicU64,
    in_flight: AtomicI64,
    codes: [AtomicU64; COUNTED_STATUS_CODES.len()],
    other_codes: AtomicU64,
    /// Requests whose client disconnected before the response.
    cancelled: AtomicU64,
    buckets: [AtomicU64; LATENCY_BUCKETS.len()],
    nanoseconds: AtomicU64,
}

impl ListenerMetrics {
    /// Metrics of the named server's listener, all 0.
    pub fn new(server: &'static str, clock: Arc<dyn Clock>) -> Arc<Self> {
        let zeros = |_| AtomicU64::new(0);
        Arc::new(ListenerMetrics {
            server,
            clock,
            accepted: AtomicU64::new(0),
            open: AtomicI64::new(0),
            evicted: AtomicU64::new(0),
            handshakes_failed: AtomicU64::new(0),
            in_flight: AtomicI64::new(0),
            codes: std::array::from_fn(zeros),
            other_codes: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            buckets: std::array::from_fn(zeros),
            nanoseconds: AtomicU64::new(0),
        })
    }

    /// Counts a connection until the guard is dropped.
    pub(crate) fn connection_opened(&self) -> OpenConnection<'_> {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(&self.open)
    }

    /// Counts an eviction and returns the previous count.
    pub(crate) fn count_eviction(&self) -> u64 {
        self.evicted.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn handshake_failed(&self) {
        self.handshakes_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request until it is finished or dropped.
    pub(crate) fn request_started(&self) -> InFlightRequest<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlightRequest { metrics: self, started: self.clock.monotonic(), is_answered: false }
    }

    fn record_response(&self, code: StatusCode, took: Duration) {
        let known = COUNTED_STATUS_CODES.iter().zip(&self.codes).find(|(known, _)| **known == code.as_u16());
        known.map_or(&self.other_codes, |(_, counter)| counter).fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = LATENCY_BUCKETS.iter().zip(&self.buckets).find(|((_, bound), _)| nanoseconds <= *bound);
        if let Some((_, bucket)) = bucket {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

impl fmt::Debug for ListenerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traffic").field("server", &self.server).finish_non_exhaustive()
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct OpenConnection<'t>(&'t AtomicI64);

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request without a response yet.
#[derive(Debug)]
pub(crate) struct InFlightRequest<'t> {
    metrics: &'t ListenerMetrics,
    started: Duration,
    is_answered: bool,
}

impl InFlightRequest<'_> {
    pub(crate) fn finish<B>(mut self, response: Response<B>) -> Response<B> {
        self.is_answered = true;
        let took = self.metrics.clock.monotonic().saturating_sub(self.started);
        self.metrics.record_response(response.status(), took);
        response
    }
}

impl Drop for InFlightRequest<'_> {
    fn drop(&mut self) {
        self.metrics.in_flight.fetch_sub(1, Ordering::Relaxed);
        if !self.is_answered {
            self.metrics.cancelled.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Collector for ListenerMetrics {
    fn collect(&self, exposition: &mut Exposition) {
        let server = ("server", self.server);
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let name = "navicert_connections_accepted_total";
        exposition.describe(name, Counter, "Accepted connections");
        exposition.sample(name, &[server], load(&self.accepted));
        let name = "navicert_connections";
        exposition.describe(name, Gauge, "Open connections");
        exposition.sample(name, &[server], self.open.load(Ordering::Relaxed));
        let name = "navicert_connections_pushed_out_total";
        exposition.describe(name, Counter, "Idle connections evicted for new ones");
        exposition.sample(name, &[server], load(&self.evicted));
        let name = "navicert_tls_handshakes_failed_total";
        exposition.describe(name, Counter, "Failed TLS handshakes");
        exposition.sample(name, &[server], load(&self.handshakes_failed));
        let name = "navicert_requests_in_flight";
        exposition.describe(name, Gauge, "Requests waiting for their response");
        exposition.sample(name, &[server], self.in_flight.load(Ordering::Relaxed));
        let name = "navicert_requests_total";
        exposition.describe(
            name,
            Counter,
            "Requests by response status code; gone: the client disconnected before the response",
        );
        for (code, counter) in
            COUNTED_STATUS_CODES.iter().zip(&self.codes).filter(|(_, counter)| load(counter) > 0)
        {
            exposition.sample(name, &[("code", &code.to_string()), server], load(counter));
        }
        for (code, counter) in [("other", &self.other_codes), ("gone", &self.cancelled)] {
            if load(counter) > 0 {
                exposition.sample(name, &[("code", code), server], load(counter));
            }
        }
        self.write_durations(exposition);
    }
}

impl ListenerMetrics {
    fn write_durations(&self, exposition: &mut Exposition) {
        let name = "navicert_request_duration_seconds";
        exposition.describe(name, MetricKind::Histogram, "Time until the response head");
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let buckets = LATENCY_BUCKETS.iter().map(|(bound, _)| *bound).zip(self.buckets.iter().map(load));
        let count = self.codes.iter().chain([&self.other_codes]).map(load).sum();
        let seconds = Duration::from_nanos(load(&self.nanoseconds)).as_secs_f64();
        exposition.histogram(name, &[("server", self.server)], buckets, seconds, count);
    }
}

#[cfg(test)]
mod tests {
    use navicert_types::clock::ManualClock;

    use super::*;

    #[test]
    fn renders_connections_requests_and_durations() {
        let clock = Arc::new(ManualClock::at(0));
        let metrics = ListenerMetrics::new("webhook", Arc::clone(&clock) as _);
        let registry = Registry::default();
        registry.register(Arc::clone(&metrics) as _);
        let connection = metrics.connection_opened();
        let one = metrics.request_started();
        clock.advance(Duration::from_millis(2));
        one.finish(Response::new(()));
        drop(metrics.request_started());
        let exposition = registry.render();
        for line in [
            "navicert_connections{server=\"webhook\"} 1",
            "navicert_requests_in_flight{server=\"webhook\"} 0",
            "navicert_requests_total{code=\"200\",server=\"webhook\"} 1",
            "navicert_requests_total{code=\"gone\",server=\"webhook\"} 1",
            "navicert_request_duration_seconds_bucket{server=\"webhook\",le=\"0.001\"} 0",
            "navicert_request_duration_seconds_bucket{server=\"webhook\",le=\"0.0025\"} 1",
            "navicert_request_duration_seconds_sum{server=\"webhook\"} 0.002",
            "navicert_request_duration_seconds_count{server=\"webhook\"} 1",
        ] {
            assert!(exposition.lines().any(|known| known == line), "{line} in\n{exposition}");
        }
        drop(connection);
        assert!(registry.render().contains("navicert_connections{server=\"webhook\"} 0"));
    }
}
