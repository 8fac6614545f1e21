//! Figures of the servers, in Prometheus' text format: what goes through each listener, beside what `navicert-authn` counts
//! of tokens and keys. Counting takes no lock.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Response, StatusCode};
use navicert_types::Clock;

/// Something with figures for the page.
pub trait Figures: Send + Sync {
    /// Writes them.
    fn write(&self, page: &mut Page);
}

impl Figures for navicert_authn::metrics::Metrics {
    fn write(&self, page: &mut Page) {
        page.0.push_str(&self.render());
    }
}

/// Everything that `/metrics` shows. Whoever counts something joins here, once.
#[derive(Clone, Default)]
pub struct Registry(Arc<Mutex<Vec<Arc<dyn Figures>>>>);

impl Registry {
    /// Shows these figures too, from now on.
    pub fn join(&self, figures: Arc<dyn Figures>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(figures);
    }

    /// The page as it is now.
    pub fn render(&self) -> String {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut page = Page(String::new());
        for figures in all {
            figures.write(&mut page);
        }
        page.0
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").finish_non_exhaustive()
    }
}

/// Prometheus' text, being written. Names and labels are ours: nothing here is escaped.
#[derive(Debug)]
pub struct Page(String);

impl Page {
    /// What the lines that follow are about.
    pub fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// One series' value; labels in the order of their names.
    pub fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.0.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"{value}\"");
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }
}

/// The codes that are told apart; the last one stands for all others.
const CODES: [u16; 17] =
    [101, 200, 201, 304, 400, 401, 403, 404, 405, 408, 409, 413, 429, 500, 502, 503, 504];

/// Upper bounds of how long answers took to begin, in seconds.
const BOUNDS: [(f64, u64); 14] = [
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

/// What goes through one listener.
pub struct Traffic {
    server: &'static str,
    clock: Arc<dyn Clock>,
    accepted: AtomicU64,
    open: AtomicI64,
    pushed_out: AtomicU64,
    handshakes_failed: AtomicU64,
    in_flight: AtomicI64,
    codes: [AtomicU64; CODES.len()],
    other_codes: AtomicU64,
    /// The client went away before there was an answer.
    gone: AtomicU64,
    buckets: [AtomicU64; BOUNDS.len()],
    nanoseconds: AtomicU64,
}

impl Traffic {
    /// Nothing so far, at the listener of this server.
    pub fn new(server: &'static str, clock: Arc<dyn Clock>) -> Arc<Self> {
        let zeros = |_| AtomicU64::new(0);
        Arc::new(Traffic {
            server,
            clock,
            accepted: AtomicU64::new(0),
            open: AtomicI64::new(0),
            pushed_out: AtomicU64::new(0),
            handshakes_failed: AtomicU64::new(0),
            in_flight: AtomicI64::new(0),
            codes: std::array::from_fn(zeros),
            other_codes: AtomicU64::new(0),
            gone: AtomicU64::new(0),
            buckets: std::array::from_fn(zeros),
            nanoseconds: AtomicU64::new(0),
        })
    }

    /// One more connection, until what is returned is dropped.
    pub(crate) fn connection(&self) -> Open<'_> {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(&self.open)
    }

    /// An idle connection has to go for a new one; how many had to before.
    pub(crate) fn pushed_out(&self) -> u64 {
        self.pushed_out.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn handshake_failed(&self) {
        self.handshakes_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// One more request, until it is answered.
    pub(crate) fn request(&self) -> Counted<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Counted { traffic: self, started: self.clock.monotonic(), is_answered: false }
    }

    fn count(&self, code: StatusCode, took: Duration) {
        let known = CODES.iter().zip(&self.codes).find(|(known, _)| **known == code.as_u16());
        known.map_or(&self.other_codes, |(_, counter)| counter).fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.iter().zip(&self.buckets).find(|((_, bound), _)| nanoseconds <= *bound);
        if let Some((_, bucket)) = bucket {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

impl fmt::Debug for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traffic").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A connection that is open.
#[derive(Debug)]
pub(crate) struct Open<'t>(&'t AtomicI64);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(crate) struct Counted<'t> {
    traffic: &'t Traffic,
    started: Duration,
    is_answered: bool,
}

impl Counted<'_> {
    pub(crate) fn answered<B>(mut self, response: Response<B>) -> Response<B> {
        self.is_answered = true;
        let took = self.traffic.clock.monotonic().saturating_sub(self.started);
        self.traffic.count(response.status(), took);
        response
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.traffic.in_flight.fetch_sub(1, Ordering::Relaxed);
        if !self.is_answered {
            self.traffic.gone.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Figures for Traffic {
    fn write(&self, page: &mut Page) {
        let server = ("server", self.server);
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let name = "navicert_connections_accepted_total";
        page.head(name, "counter", "Connections since the start");
        page.line(name, &[server], load(&self.accepted));
        let name = "navicert_connections";
        page.head(name, "gauge", "Connections that are open");
        page.line(name, &[server], self.open.load(Ordering::Relaxed));
        let name = "navicert_connections_pushed_out_total";
        page.head(name, "counter", "Idle connections that were ended to make room for new ones");
        page.line(name, &[server], load(&self.pushed_out));
        let name = "navicert_tls_handshakes_failed_total";
        page.head(name, "counter", "Connections that ended before TLS was agreed on");
        page.line(name, &[server], load(&self.handshakes_failed));
        let name = "navicert_requests_in_flight";
        page.head(name, "gauge", "Requests whose answer has not begun");
        page.line(name, &[server], self.in_flight.load(Ordering::Relaxed));
        let name = "navicert_requests_total";
        page.head(name, "counter", "Requests by the code of their answer; gone: the client left before it");
        for (code, counter) in CODES.iter().zip(&self.codes).filter(|(_, counter)| load(counter) > 0) {
            page.line(name, &[("code", &code.to_string()), server], load(counter));
        }
        for (code, counter) in [("other", &self.other_codes), ("gone", &self.gone)] {
            if load(counter) > 0 {
                page.line(name, &[("code", code), server], load(counter));
            }
        }
        self.write_durations(page);
    }
}

impl Traffic {
    fn write_durations(&self, page: &mut Page) {
        let name = "navicert_request_duration_seconds";
        page.head(name, "histogram", "How long answers took to begin");
        let mut total = 0u64;
        for ((bound, _), bucket) in BOUNDS.iter().zip(&self.buckets) {
            total = total.saturating_add(bucket.load(Ordering::Relaxed));
            let bound = bound.to_string();
            page.line(&format!("{name}_bucket"), &[("le", &bound), ("server", self.server)], total);
        }
        let counters = self.codes.iter().chain([&self.other_codes]);
        let count: u64 = counters.map(|counter| counter.load(Ordering::Relaxed)).sum();
        page.line(&format!("{name}_bucket"), &[("le", "+Inf"), ("server", self.server)], count.max(total));
        let seconds = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
        page.line(&format!("{name}_sum"), &[("server", self.server)], seconds);
        page.line(&format!("{name}_count"), &[("server", self.server)], count.max(total));
    }
}

#[cfg(test)]
mod tests {
    use navicert_types::clock::ManualClock;

    use super::*;

    #[test]
    fn what_came_and_what_became_of_it_is_on_the_page() {
        let clock = Arc::new(ManualClock::at(0));
        let traffic = Traffic::new("webhook", Arc::clone(&clock) as _);
        let registry = Registry::default();
        registry.join(Arc::clone(&traffic) as _);
        let connection = traffic.connection();
        let one = traffic.request();
        clock.advance(Duration::from_millis(2));
        one.answered(Response::new(()));
        drop(traffic.request());
        let page = registry.render();
        for line in [
            "navicert_connections{server=\"webhook\"} 1",
            "navicert_requests_in_flight{server=\"webhook\"} 0",
            "navicert_requests_total{code=\"200\",server=\"webhook\"} 1",
            "navicert_requests_total{code=\"gone\",server=\"webhook\"} 1",
            "navicert_request_duration_seconds_bucket{le=\"0.001\",server=\"webhook\"} 0",
            "navicert_request_duration_seconds_bucket{le=\"0.0025\",server=\"webhook\"} 1",
            "navicert_request_duration_seconds_sum{server=\"webhook\"} 0.002",
            "navicert_request_duration_seconds_count{server=\"webhook\"} 1",
        ] {
            assert!(page.lines().any(|known| known == line), "{line} in\n{page}");
        }
        drop(connection);
        assert!(registry.render().contains("navicert_connections{server=\"webhook\"} 0"));
    }
}
