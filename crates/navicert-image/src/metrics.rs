//! Metrics: the kubelet's under their own names, and navicert's.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use navicert_types::Timestamp;
use navicert_types::exposition::Exposition;
use navicert_types::exposition::MetricKind::{self, Counter, Gauge};

use crate::cache_key::CacheKeyType;

/// An event that metrics record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricsEvent<'a> {
    /// A configuration took effect; its hash is the only series.
    // I158
    ConfigLoaded {
        /// The hash of its files.
        hash: &'a str,
    },
    /// A new configuration was rejected; the previous one stays in use.
    // I250
    ConfigRejected,
    /// A plugin was started.
    // I160
    RunStarted {
        /// The provider.
        provider: &'a str,
    },
    /// A plugin exited or was killed.
    // I159, I160
    RunEnded {
        /// The provider.
        provider: &'a str,
        /// How long it took.
        took: Duration,
        /// How it ended.
        end: RunEnd,
    },
    /// A plugin's response was invalid.
    ResponseRejected {
        /// The provider.
        provider: &'a str,
        /// A stable label value.
        reason: &'static str,
    },
    /// A plugin's response was accepted.
    // I163
    Answered {
        /// The provider.
        provider: &'a str,
        /// The time of the response.
        at: Timestamp,
        /// When it expires from the cache.
        expires: Option<Timestamp>,
    },
    /// A cache lookup.
    CacheLookup {
        /// The provider.
        provider: &'a str,
        /// The result.
        result: CacheResult,
    },
    /// No provider matched an image.
    NoMatch,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunEnd {
    /// It exited with 0.
    Success,
    /// It did not start, exited non-zero, was killed by a signal, or printed too much.
    Failed,
    /// It exceeded its time limit.
    TimedOut,
}

/// The result of a cache lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CacheResult {
    /// Credentials, under a key of this type.
    Hit(CacheKeyType),
    /// A cached response without credentials.
    NegativeHit,
    /// No cached response.
    Miss,
}

/// Records events. Called on the thread where the event happens.
pub trait MetricsRecorder: fmt::Debug + Send + Sync {
    /// Records an event.
    fn record(&self, event: &MetricsEvent<'_>);
}

/// Discards all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMetrics;

impl MetricsRecorder for NoMetrics {
    fn record(&self, _: &MetricsEvent<'_>) {}
}

/// Upper bounds of the kubelet's histogram, in seconds.
// I157
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// In-memory counters, rendered in the Prometheus text format.
#[derive(Debug, Default)]
pub struct TextMetrics(Mutex<Counters>);

#[derive(Debug, Default)]
struct Counters {
    hash: Option<String>,
    rejected: u64,
    no_match: u64,
    providers: BTreeMap<String, ProviderCounters>,
}

#[derive(Debug, Default)]
struct ProviderCounters {
    errors: u64,
    timeouts: u64,
    /// Runs in the bucket of the same index; not cumulative.
    buckets: [u64; BUCKETS.len()],
    runs: u64,
    seconds: f64,
    in_flight: u64,
    rejected: BTreeMap<&'static str, u64>,
    lookups: BTreeMap<CacheResult, u64>,
    answered: Option<Timestamp>,
    expires: Option<Timestamp>,
}

impl MetricsRecorder for TextMetrics {
    fn record(&self, event: &MetricsEvent<'_>) {
        let mut counters = self.lock();
        match *event {
            MetricsEvent::ConfigLoaded { hash } => counters.hash = Some(hash.to_owned()),
            MetricsEvent::ConfigRejected => counters.rejected += 1,
            MetricsEvent::NoMatch => counters.no_match += 1,
            MetricsEvent::RunStarted { provider } => counters.provider_mut(provider).in_flight += 1,
            MetricsEvent::RunEnded { provider, took, end } => {
                counters.provider_mut(provider).record_run_end(took, end);
            }
            MetricsEvent::ResponseRejected { provider, reason } => {
                *counters.provider_mut(provider).rejected.entry(reason).or_default() += 1;
            }
            MetricsEvent::Answered { provider, at, expires } => {
                let one = counters.provider_mut(provider);
                (one.answered, one.expires) = (Some(at), expires.or(one.expires));
            }
            MetricsEvent::CacheLookup { provider, result } => {
                *counters.provider_mut(provider).lookups.entry(result).or_default() += 1;
            }
        }
    }
}

impl TextMetrics {
    /// Creates counters at zero.
    pub fn new() -> Self {
        TextMetrics::default()
    }

    /// Renders all metrics.
    pub fn render(&self) -> String {
        self.lock().render()
    }

    fn lock(&self) -> MutexGuard<'_, Counters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProviderCounters {
    fn record_run_end(&mut self, took: Duration, end: RunEnd) {
        let seconds = took.as_secs_f64();
        if let Some((count, _)) = self.buckets.iter_mut().zip(BUCKETS).find(|(_, bound)| seconds <= *bound) {
            *count += 1;
        }
        self.runs += 1;
        self.seconds += seconds;
        self.in_flight = self.in_flight.saturating_sub(1);
        self.errors += u64::from(end != RunEnd::Success);
        self.timeouts += u64::from(end == RunEnd::TimedOut);
    }
}

impl Counters {
    fn provider_mut(&mut self, provider: &str) -> &mut ProviderCounters {
        self.providers.entry(provider.to_owned()).or_default()
    }

    fn render(&self) -> String {
        let mut out = Exposition::default();
        self.upstream(&mut out);
        let name = "navicert_image_config_refused_total";
        out.describe(name, Counter, "Number of new configurations that were rejected");
        out.sample(name, &[], self.rejected);
        let name = "navicert_image_no_match_total";
        out.describe(name, Counter, "Number of images that no provider matched");
        out.sample(name, &[], self.no_match);
        let name = "navicert_image_plugin_timeouts_total";
        let help = "Number of plugin runs that exceeded their time limit";
        self.each(&mut out, name, Counter, help, |one| Some(one.timeouts));
        let name = "navicert_image_plugin_in_flight";
        self.each(&mut out, name, Gauge, "Number of plugin runs in flight", |one| Some(one.in_flight));
        let name = "navicert_image_plugin_last_success_timestamp_seconds";
        let help = "Time of the last usable response of the plugin";
        self.each(&mut out, name, Gauge, help, |one| one.answered.map(Timestamp::as_second));
        let name = "navicert_image_credential_expiry_timestamp_seconds";
        let help = "Time when the plugin's latest response expires from the cache";
        self.each(&mut out, name, Gauge, help, |one| one.expires.map(Timestamp::as_second));
        let name = "navicert_image_response_errors_total";
        self.nested(&mut out, name, "Number of plugin responses that were rejected", "reason", |one| {
            one.rejected.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect()
        });
        let name = "navicert_image_cache_lookups_total";
        self.nested(&mut out, name, "Number of cache lookups by result", "result", |one| {
            one.lookups.iter().map(|(result, count)| (result.to_string(), *count)).collect()
        });
        out.into_text()
    }

    /// The kubelet's three metrics, with its help texts.
    // I156–I158, I161
    fn upstream(&self, out: &mut Exposition) {
        let name = "kubelet_credential_provider_plugin_errors_total";
        let help = "[ALPHA] Number of errors from credential provider plugin";
        self.each(out, name, Counter, help, |one| Some(one.errors));
        let name = "kubelet_credential_provider_plugin_duration";
        let help = "[ALPHA] Duration of execution in seconds for credential provider plugin";
        if !self.providers.is_empty() {
            out.describe(name, MetricKind::Histogram, help);
        }
        for (provider, one) in &self.providers {
            let buckets = BUCKETS.into_iter().zip(one.buckets);
            out.histogram(name, &[("plugin_name", provider)], buckets, one.seconds, one.runs);
        }
        if let Some(hash) = &self.hash {
            let name = "kubelet_credential_provider_config_info";
            let help = "[ALPHA] Information about the last applied credential provider configuration with hash as label";
            out.describe(name, Gauge, help);
            out.sample(name, &[("hash", hash)], 1);
        }
    }

    /// Writes a metric of each provider that has a value; none if no provider has.
    fn each<T: fmt::Display>(
        &self,
        out: &mut Exposition,
        name: &str,
        kind: MetricKind,
        help: &str,
        value: impl Fn(&ProviderCounters) -> Option<T>,
    ) {
        let mut values = self.providers.iter().filter_map(|(name, one)| Some((name, value(one)?))).peekable();
        if values.peek().is_some() {
            out.describe(name, kind, help);
        }
        for (provider, value) in values {
            out.sample(name, &[("plugin_name", provider)], value);
        }
    }

    /// Writes a counter of each provider by one more label.
    fn nested(
        &self,
        out: &mut Exposition,
        name: &str,
        help: &str,
        label: &str,
        values: impl Fn(&ProviderCounters) -> Vec<(String, u64)>,
    ) {
        let all = self.providers.iter().map(|(name, one)| (name, values(one)));
        let all: Vec<_> = all.filter(|(_, values)| !values.is_empty()).collect();
        if !all.is_empty() {
            out.describe(name, Counter, help);
        }
        for (provider, values) in all {
            for (value, count) in values {
                out.sample(name, &[("plugin_name", provider), (label, &value)], count);
            }
        }
    }
}

impl fmt::Display for CacheResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CacheResult::Hit(CacheKeyType::Image) => "hit_image",
            CacheResult::Hit(CacheKeyType::Registry) => "hit_registry",
            CacheResult::Hit(CacheKeyType::Global) => "hit_global",
            CacheResult::NegativeHit => "negative_hit",
            CacheResult::Miss => "miss",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelet_metrics_have_the_kubelets_names_and_help() {
        // I156, I157, I158, I160, I161
        let metrics = TextMetrics::new();
        metrics.record(&MetricsEvent::ConfigLoaded { hash: "sha256:old" });
        metrics.record(&MetricsEvent::ConfigLoaded { hash: "sha256:new" });
        for (millis, end) in [(7, RunEnd::Success), (60_000, RunEnd::TimedOut)] {
            metrics.record(&MetricsEvent::RunStarted { provider: "p" });
            metrics.record(&MetricsEvent::RunEnded {
                provider: "p",
                took: Duration::from_millis(millis),
                end,
            });
        }
        let text = metrics.render();
        for line in [
            "# HELP kubelet_credential_provider_plugin_errors_total [ALPHA] Number of errors from credential provider plugin",
            "# TYPE kubelet_credential_provider_plugin_errors_total counter",
            "kubelet_credential_provider_plugin_errors_total{plugin_name=\"p\"} 1",
            "# HELP kubelet_credential_provider_plugin_duration [ALPHA] Duration of execution in seconds for credential provider plugin",
            "# TYPE kubelet_credential_provider_plugin_duration histogram",
            "kubelet_credential_provider_plugin_duration_bucket{plugin_name=\"p\",le=\"0.005\"} 0",
            "kubelet_credential_provider_plugin_duration_bucket{plugin_name=\"p\",le=\"0.01\"} 1",
            "kubelet_credential_provider_plugin_duration_bucket{plugin_name=\"p\",le=\"+Inf\"} 2",
            "kubelet_credential_provider_plugin_duration_count{plugin_name=\"p\"} 2",
            "kubelet_credential_provider_config_info{hash=\"sha256:new\"} 1",
            "navicert_image_plugin_timeouts_total{plugin_name=\"p\"} 1",
            "navicert_image_plugin_in_flight{plugin_name=\"p\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert_eq!(text.matches("config_info{").count(), 1, "exactly one series (I158)");
        let bounds = text.lines().filter_map(|line| {
            let (_, bound) = line.split_once("plugin_duration_bucket{plugin_name=\"p\",le=\"")?;
            bound.split_once('"').map(|(bound, _)| bound)
        });
        let expected =
            ["0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "+Inf"];
        assert_eq!(bounds.collect::<Vec<_>>(), expected);
    }
}
