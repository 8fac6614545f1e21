//! Writes the metrics with upstream's names and labels.

use navicert_types::exposition::MetricKind::{self, Counter, Gauge};
use navicert_types::exposition::{Exposition, Labels};

use super::{BUCKETS, Counts, Histogram, ROTATION_AGE_BUCKETS, RUN_BUCKETS};

/// All metrics but one are about plugins.
macro_rules! plugin {
    ($name:literal) => {
        concat!("rest_client_exec_plugin_", $name)
    };
}

pub(super) fn render(counts: &Counts, ttl: f64) -> String {
    let mut text = Exposition::default();
    let name = plugin!("ttl_seconds");
    text.describe(name, Gauge, "Seconds until the first client certificate in use expires");
    text.float(name, &[], ttl);
    let name = plugin!("certificate_rotation_age");
    text.describe(
        name,
        MetricKind::Histogram,
        "Age in seconds of client certificates when they were replaced",
    );
    histogram(&mut text, name, &[], &counts.rotation, &ROTATION_AGE_BUCKETS);
    calls(&mut text, counts);
    let name = plugin!("refresh_total");
    text.describe(name, Counter, "Plugin runs by reason");
    let mut refreshes: Vec<_> = counts.refreshes.iter().collect();
    refreshes.sort();
    for (reason, count) in refreshes {
        text.sample(name, &[("reason", reason.label())], count);
    }
    let name = plugin!("backoff_active");
    text.describe(name, Gauge, "Authenticators that are backing off after failed runs");
    text.sample(name, &[], counts.backing_off.len());
    reloads(&mut text, counts);
    text.into_text()
}

fn calls(text: &mut Exposition, counts: &Counts) {
    let name = plugin!("call_total");
    text.describe(name, Counter, "Plugin runs by exit code and outcome");
    let mut calls: Vec<_> = counts.calls.iter().collect();
    calls.sort();
    for ((status, code), count) in calls {
        text.sample(name, &[("call_status", status.label()), ("code", &code.to_string())], count);
    }
    let name = plugin!("policy_call_total");
    text.describe(name, Counter, "Decisions of the plugin policy");
    for (status, count) in ["denied", "allowed"].into_iter().zip(counts.policy) {
        text.sample(name, &[("status", status)], count);
    }
    let name = plugin!("run_seconds");
    text.describe(name, MetricKind::Histogram, "Duration of plugin runs in seconds");
    let mut runs: Vec<_> = counts.runs.iter().collect();
    runs.sort_by_key(|(status, _)| **status);
    for (status, run) in runs {
        histogram(text, name, &[("call_status", status.label())], run, &RUN_BUCKETS);
    }
}

fn reloads(text: &mut Exposition, counts: &Counts) {
    let name = "rest_client_transport_ca_reload_total";
    text.describe(name, Counter, "Reloads of certificate authority files");
    let mut reloads: Vec<_> = counts.reloads.iter().collect();
    reloads.sort();
    for (outcome, count) in reloads {
        let (result, reason) = outcome.labels();
        text.sample(name, &[("reason", reason), ("result", result)], count);
    }
}

fn histogram(
    text: &mut Exposition,
    name: &str,
    labels: Labels<'_>,
    histogram: &Histogram,
    bounds: &[f64; BUCKETS],
) {
    let buckets = bounds.iter().copied().zip(histogram.buckets);
    text.histogram(name, labels, buckets, histogram.sum, histogram.count);
}
