//! Metrics: the kubelet's under their own names, and navicert's.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use navicert_types::Timestamp;

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
const BUCKETS: [(f64, &str); 11] = [
    (0.005, "0.005"),
    (0.01, "0.01"),
    (0.025, "0.025"),
    (0.05, "0.05"),
    (0.1, "0.1"),
    (0.25, "0.25"),
    (0.5, "0.5"),
    (1.0, "1"),
    (2.5, "2.5"),
    (5.0, "5"),
    (10.0, "10"),
];

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
        for (count, (bound, _)) in self.buckets.iter_mut().zip(BUCKETS) {
            *count += u64::from(seconds <= bound);
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
        let mut out = String::new();
        self.upstream(&mut out);
        let total = |count: u64| vec![(String::new(), count.to_string())];
        self.family(
            &mut out,
            "navicert_image_config_refused_total",
            "counter",
            "Number of new configurations that were rejected",
            total(self.rejected),
        );
        self.family(
            &mut out,
            "navicert_image_no_match_total",
            "counter",
            "Number of images that no provider matched",
            total(self.no_match),
        );
        let each = |value: fn(&ProviderCounters) -> u64| {
            self.providers
                .iter()
                .map(|(name, one)| (label("plugin_name", name), value(one).to_string()))
                .collect()
        };
        self.family(
            &mut out,
            "navicert_image_plugin_timeouts_total",
            "counter",
            "Number of plugin runs that exceeded their time limit",
            each(|one| one.timeouts),
        );
        self.family(
            &mut out,
            "navicert_image_plugin_in_flight",
            "gauge",
            "Number of plugin runs in flight",
            each(|one| one.in_flight),
        );
        let timestamps = |value: fn(&ProviderCounters) -> Option<Timestamp>| {
            let series = self.providers.iter().filter_map(move |(name, one)| {
                Some((label("plugin_name", name), value(one)?.as_second().to_string()))
            });
            series.collect()
        };
        self.family(
            &mut out,
            "navicert_image_plugin_last_success_timestamp_seconds",
            "gauge",
            "Time of the last usable response of the plugin",
            timestamps(|one| one.answered),
        );
        self.family(
            &mut out,
            "navicert_image_credential_expiry_timestamp_seconds",
            "gauge",
            "Time when the plugin's latest response expires from the cache",
            timestamps(|one| one.expires),
        );
        let rejected = self.nested(|one| {
            one.rejected.iter().map(|(reason, count)| ("reason", (*reason).to_owned(), *count)).collect()
        });
        self.family(
            &mut out,
            "navicert_image_response_errors_total",
            "counter",
            "Number of plugin responses that were rejected",
            rejected,
        );
        let lookups = self.nested(|one| {
            one.lookups.iter().map(|(result, count)| ("result", result.to_string(), *count)).collect()
        });
        self.family(
            &mut out,
            "navicert_image_cache_lookups_total",
            "counter",
            "Number of cache lookups by result",
            lookups,
        );
        out
    }

    /// The kubelet's three metrics, with its help texts.
    // I156–I158, I161
    fn upstream(&self, out: &mut String) {
        let errors =
            self.providers.iter().map(|(name, one)| (label("plugin_name", name), one.errors.to_string()));
        let help = "[ALPHA] Number of errors from credential provider plugin";
        self.family(
            out,
            "kubelet_credential_provider_plugin_errors_total",
            "counter",
            help,
            errors.collect(),
        );
        let name = "kubelet_credential_provider_plugin_duration";
        let mut series = Vec::new();
        for (provider, one) in &self.providers {
            let of = label("plugin_name", provider);
            let bounds = BUCKETS.iter().map(|(_, bound)| *bound).zip(one.buckets).chain([("+Inf", one.runs)]);
            series.extend(
                bounds.map(|(bound, count)| (format!("_bucket\u{0}{of},le=\"{bound}\""), count.to_string())),
            );
            series.push((format!("_sum\u{0}{of}"), one.seconds.to_string()));
            series.push((format!("_count\u{0}{of}"), one.runs.to_string()));
        }
        let help = "[ALPHA] Duration of execution in seconds for credential provider plugin";
        self.family(out, name, "histogram", help, series);
        let info = self.hash.iter().map(|hash| (label("hash", hash), "1".to_owned())).collect();
        let help =
            "[ALPHA] Information about the last applied credential provider configuration with hash as label";
        self.family(out, "kubelet_credential_provider_config_info", "gauge", help, info);
    }

    fn nested(
        &self,
        of: impl Fn(&ProviderCounters) -> Vec<(&'static str, String, u64)>,
    ) -> Vec<(String, String)> {
        let series = self.providers.iter().flat_map(|(name, one)| {
            of(one).into_iter().map(|(key, value, count)| {
                (format!("{},{}", label("plugin_name", name), label(key, &value)), count.to_string())
            })
        });
        series.collect()
    }

    /// Writes one metric family. The part of a series before NUL is a suffix of the metric name.
    #[expect(clippy::unused_self, reason = "called like the other rendering steps")]
    fn family(&self, out: &mut String, name: &str, kind: &str, help: &str, series: Vec<(String, String)>) {
        if series.is_empty() {
            return;
        }
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in series {
            let (suffix, labels) = labels.split_once('\u{0}').unwrap_or(("", &labels));
            let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            let _ = writeln!(out, "{name}{suffix}{labels} {value}");
        }
    }
}

fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{value}\"")
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
