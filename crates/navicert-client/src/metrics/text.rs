//! Renders the metrics as Prometheus text, with upstream's names and labels.

use std::fmt::Write as _;

use super::{BUCKETS, Counts, Histogram, ROTATION_AGE_BUCKETS, RUN_BUCKETS};

pub(super) fn render(counts: &Counts, ttl: f64) -> String {
    let mut text = String::new();
    head(&mut text, "ttl_seconds", "gauge", "Seconds until the first client certificate in use expires");
    line(&mut text, "ttl_seconds", "", &number(ttl));
    rotation_age(&mut text, counts);
    head(&mut text, "call_total", "counter", "Plugin runs by exit code and outcome");
    let mut calls: Vec<_> = counts.calls.iter().collect();
    calls.sort();
    for ((status, code), count) in calls {
        let labels = format!("{{call_status=\"{}\",code=\"{code}\"}}", status.label());
        line(&mut text, "call_total", &labels, &count.to_string());
    }
    head(&mut text, "policy_call_total", "counter", "Decisions of the plugin policy");
    for (status, count) in ["denied", "allowed"].into_iter().zip(counts.policy) {
        line(&mut text, "policy_call_total", &format!("{{status=\"{status}\"}}"), &count.to_string());
    }
    head(&mut text, "run_seconds", "histogram", "Duration of plugin runs in seconds");
    let mut runs: Vec<_> = counts.runs.iter().collect();
    runs.sort_by_key(|(status, _)| **status);
    for (status, histogram) in runs {
        let label = format!("call_status=\"{}\"", status.label());
        self::histogram(&mut text, "run_seconds", &label, histogram, &RUN_BUCKETS);
    }
    head(&mut text, "refresh_total", "counter", "Plugin runs by reason");
    let mut refreshes: Vec<_> = counts.refreshes.iter().collect();
    refreshes.sort();
    for (reason, count) in refreshes {
        let labels = format!("{{reason=\"{}\"}}", reason.label());
        line(&mut text, "refresh_total", &labels, &count.to_string());
    }
    head(&mut text, "backoff_active", "gauge", "Authenticators that are backing off after failed runs");
    line(&mut text, "backoff_active", "", &counts.backing_off.len().to_string());
    reloads(&mut text, counts);
    text
}

/// The one metric that is not about plugins.
fn reloads(text: &mut String, counts: &Counts) {
    const NAME: &str = "rest_client_transport_ca_reload_total";
    let _ = writeln!(text, "# HELP {NAME} Reloads of certificate authority files");
    let _ = writeln!(text, "# TYPE {NAME} counter");
    let mut reloads: Vec<_> = counts.reloads.iter().collect();
    reloads.sort();
    for (outcome, count) in reloads {
        let (result, reason) = outcome.labels();
        let _ = writeln!(text, "{NAME}{{reason=\"{reason}\",result=\"{result}\"}} {count}");
    }
}

fn rotation_age(text: &mut String, counts: &Counts) {
    let name = "certificate_rotation_age";
    head(text, name, "histogram", "Age in seconds of client certificates when they were replaced");
    histogram(text, name, "", &counts.rotation, &ROTATION_AGE_BUCKETS);
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# HELP rest_client_exec_plugin_{name} {help}");
    let _ = writeln!(text, "# TYPE rest_client_exec_plugin_{name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &str, value: &str) {
    let _ = writeln!(text, "rest_client_exec_plugin_{name}{labels} {value}");
}

fn histogram(text: &mut String, name: &str, label: &str, histogram: &Histogram, bounds: &[f64; BUCKETS]) {
    let comma = if label.is_empty() { "" } else { "," };
    let mut seen = 0;
    for (bound, count) in bounds.iter().zip(histogram.buckets) {
        seen += count;
        let labels = format!("{{{label}{comma}le=\"{bound}\"}}");
        line(text, &format!("{name}_bucket"), &labels, &seen.to_string());
    }
    let all = format!("{{{label}{comma}le=\"+Inf\"}}");
    line(text, &format!("{name}_bucket"), &all, &histogram.count.to_string());
    let labels = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
    line(text, &format!("{name}_sum"), &labels, &number(histogram.sum));
    line(text, &format!("{name}_count"), &labels, &histogram.count.to_string());
}

fn number(value: f64) -> String {
    if value == f64::INFINITY { "+Inf".to_owned() } else { value.to_string() }
}
