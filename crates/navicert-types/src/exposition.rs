//! The one writer of the Prometheus text format.
//!
//! `prometheus-client` 0.24 cannot write what Kubernetes' components write: it appends `_total` to every counter, and
//! kube-apiserver's `authentication_attempts` and `authenticated_user_requests` have no such suffix; it ends every help text
//! with a period, which the kubelet's have not; it writes bounds as floats (`le="1.0"`), where upstream's series have
//! `le="1"`, so that dashboards and recording rules over both would see two series.

use std::fmt::{self, Write as _};

/// What a metric family measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts values by upper bounds.
    Histogram,
}

/// Metrics text being written.
///
/// ```
/// use navicert_types::exposition::{Exposition, MetricKind};
///
/// let mut exposition = Exposition::default();
/// exposition.describe("requests", MetricKind::Counter, "Requests by code");
/// exposition.sample("requests", &[("code", "200")], 3);
/// assert_eq!(
///     exposition.into_text(),
///     "# HELP requests Requests by code\n# TYPE requests counter\nrequests{code=\"200\"} 3\n"
/// );
/// ```
#[derive(Debug, Default)]
pub struct Exposition(String);

/// Label names with their values.
pub type Labels<'l> = &'l [(&'l str, &'l str)];

impl Exposition {
    /// Starts a metric family. Names and help texts are constants and not escaped.
    pub fn describe(&mut self, name: &str, kind: MetricKind, help: &str) {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Writes one sample.
    pub fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl fmt::Display) {
        self.write("", name, labels, None, value);
    }

    /// Writes a gauge that may be infinite.
    pub fn float(&mut self, name: &str, labels: Labels<'_>, value: f64) {
        match value == f64::INFINITY {
            true => self.sample(name, labels, "+Inf"),
            false => self.sample(name, labels, value),
        }
    }

    /// Writes a histogram: how many values were at most each bound and above the one before, their sum and their count.
    pub fn histogram(
        &mut self,
        name: &str,
        labels: Labels<'_>,
        buckets: impl IntoIterator<Item = (f64, u64)>,
        sum: f64,
        count: u64,
    ) {
        let mut seen = 0_u64;
        for (bound, values) in buckets {
            seen = seen.saturating_add(values);
            self.write("_bucket", name, labels, Some(&bound), seen);
        }
        // Counters that are read one after another may disagree; a bucket above the last one would be invalid.
        let count = count.max(seen);
        self.write("_bucket", name, labels, Some(&"+Inf"), count);
        self.write("_sum", name, labels, None, sum);
        self.write("_count", name, labels, None, count);
    }

    /// Appends what another writer has written.
    pub fn append(&mut self, other: &Exposition) {
        self.0.push_str(&other.0);
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.0
    }

    fn write(
        &mut self,
        suffix: &str,
        name: &str,
        labels: Labels<'_>,
        bound: Option<&dyn fmt::Display>,
        value: impl fmt::Display,
    ) {
        self.0.push_str(name);
        self.0.push_str(suffix);
        let mut separator = '{';
        for (label, value) in labels {
            let _ = write!(self.0, "{separator}{label}=\"");
            self.escape(value);
            self.0.push('"');
            separator = ',';
        }
        // Last, as Go's client library writes it.
        if let Some(bound) = bound {
            let _ = write!(self.0, "{separator}le=\"{bound}\"");
            separator = ',';
        }
        let close = if separator == ',' { "}" } else { "" };
        let _ = writeln!(self.0, "{close} {value}");
    }

    fn escape(&mut self, value: &str) {
        for c in value.chars() {
            match c {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                c => self.0.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_are_cumulative_and_end_with_all_values() {
        let mut exposition = Exposition::default();
        exposition.histogram("h", &[("a", "b")], [(0.5, 1), (1.0, 2), (10.0, 0)], 2.25, 4);
        exposition.histogram("i", &[], [(1.0, 3)], 1.0, 2);
        let text = exposition.into_text();
        let expected = "h_bucket{a=\"b\",le=\"0.5\"} 1\nh_bucket{a=\"b\",le=\"1\"} 3\nh_bucket{a=\"b\",le=\"10\"} 3\n\
             h_bucket{a=\"b\",le=\"+Inf\"} 4\nh_sum{a=\"b\"} 2.25\nh_count{a=\"b\"} 4\n\
             i_bucket{le=\"1\"} 3\ni_bucket{le=\"+Inf\"} 3\ni_sum 1\ni_count 3\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn values_of_labels_are_escaped() {
        let mut exposition = Exposition::default();
        exposition.sample("m", &[("a", "\\ \" \n é"), ("b", "")], 1.5);
        exposition.float("m", &[], f64::INFINITY);
        assert_eq!(exposition.into_text(), "m{a=\"\\\\ \\\" \\n é\",b=\"\"} 1.5\nm +Inf\n");
    }
}
