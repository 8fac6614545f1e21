//! Writes the metrics with upstream's names and labels; labels are sorted by name.

use std::sync::atomic::{AtomicU64, Ordering};

use navicert_types::Timestamp;
use navicert_types::exposition::MetricKind::{self, Counter, Gauge};
use navicert_types::exposition::{Exposition, Labels};

use super::RefreshTrigger;
use super::counting::{
    AuthnMetrics, CACHE_BUCKETS, DURATION_BUCKETS, Histogram, KNOWN_USERS, LATENCY_BUCKETS, LockedCounts,
    RESULTS,
};

const RELOAD: &str = "apiserver_authentication_config_controller";
const JWT: &str = "apiserver_authentication_jwt_authenticator";
const CACHE: &str = "authentication_token_cache";

pub(super) fn collect(metrics: &AuthnMetrics, exposition: &mut Exposition) {
    let mut page = Page(exposition);
    page.requests(metrics);
    page.cache(metrics);
    let rest = metrics.locked();
    page.reloads(&rest, &metrics.instance);
    page.upstream_issuers(&rest, &metrics.instance);
    page.navicert_issuers(&rest);
    page.0.describe("navicert_token_cache_entries", Gauge, "Number of cached decisions");
    page.0.sample("navicert_token_cache_entries", &[], metrics.entries.load(Ordering::Relaxed));
}

struct Page<'e>(&'e mut Exposition);

impl Page<'_> {
    fn requests(&mut self, metrics: &AuthnMetrics) {
        self.0.describe("authentication_attempts", Counter, "Authenticated tokens by result");
        for (result, histogram) in RESULTS.iter().zip(&metrics.attempts) {
            self.0.sample("authentication_attempts", &[("result", result)], load(&histogram.count));
        }
        let name = "authentication_duration_seconds";
        self.0.describe(name, MetricKind::Histogram, "Duration of authentication by result");
        for (result, histogram) in RESULTS.iter().zip(&metrics.attempts) {
            self.histogram(name, &[("result", result)], histogram, &DURATION_BUCKETS);
        }
        let name = "authenticated_user_requests";
        self.0.describe(name, Counter, "Accepted tokens by kind of user");
        for (user, count) in KNOWN_USERS.iter().zip(&metrics.users) {
            if count.load(Ordering::Relaxed) > 0 {
                self.0.sample(name, &[("username", user)], load(count));
            }
        }
    }

    fn cache(&mut self, metrics: &AuthnMetrics) {
        let statuses = ["miss", "hit"];
        let name = format!("{CACHE}_request_total");
        self.0.describe(&name, Counter, "Lookups in the cache of decisions");
        for (status, histogram) in statuses.iter().zip(&metrics.lookups) {
            self.0.sample(&name, &[("status", status)], load(&histogram.count));
        }
        let name = format!("{CACHE}_request_duration_seconds");
        self.0.describe(&name, MetricKind::Histogram, "Duration of cache lookups");
        for (status, histogram) in statuses.iter().zip(&metrics.lookups) {
            self.histogram(&name, &[("status", status)], histogram, &CACHE_BUCKETS);
        }
        let name = format!("{CACHE}_fetch_total");
        self.0.describe(&name, Counter, "Decisions after a cache miss");
        for (status, count) in ["ok", "error"].iter().zip(&metrics.fetches) {
            self.0.sample(&name, &[("status", status)], load(count));
        }
        let name = format!("{CACHE}_active_fetch_count");
        self.0.describe(&name, Gauge, "Decisions in progress");
        for (status, count) in [("blocked", &metrics.blocked), ("in_flight", &metrics.in_flight)] {
            self.0.sample(&name, &[("status", status)], count.load(Ordering::Relaxed));
        }
    }

    fn reloads(&mut self, rest: &LockedCounts, instance: &str) {
        let statuses = ["failure", "success"];
        let name = format!("{RELOAD}_automatic_reloads_total");
        self.0.describe(&name, Counter, "Configuration reloads by status");
        for (status, (count, _)) in statuses.iter().zip(&rest.reloads) {
            if *count > 0 {
                let labels = [("apiserver_id_hash", instance), ("status", status)];
                self.0.sample(&name, &labels, count);
            }
        }
        let name = format!("{RELOAD}_automatic_reload_last_timestamp_seconds");
        self.0.describe(&name, Gauge, "Time of the last configuration reload by status");
        for (status, (_, last)) in statuses.iter().zip(&rest.reloads) {
            if let Some(last) = last {
                let labels = [("apiserver_id_hash", instance), ("status", status)];
                self.0.sample(&name, &labels, seconds(*last));
            }
        }
        let name = format!("{RELOAD}_last_config_info");
        self.0.describe(&name, Gauge, "Hash of the configuration in use");
        if let Some(hash) = &rest.configuration {
            self.0.sample(&name, &[("apiserver_id_hash", instance), ("hash", hash)], 1);
        }
    }

    fn upstream_issuers(&mut self, rest: &LockedCounts, instance: &str) {
        let issuers = || rest.issuers.values();
        let name = format!("{JWT}_latency_seconds");
        self.0.describe(&name, MetricKind::Histogram, "Duration of token verification per issuer");
        for counts in issuers() {
            for (result, histogram) in ["failure", "success"].iter().zip(&counts.latency) {
                if histogram.count.load(Ordering::Relaxed) > 0 {
                    let labels = [("jwt_issuer_hash", counts.hash.as_str()), ("result", result)];
                    self.histogram(&name, &labels, histogram, &LATENCY_BUCKETS);
                }
            }
        }
        let name = format!("{JWT}_jwks_fetch_last_timestamp_seconds");
        self.0.describe(&name, Gauge, "Time of the last key set fetch per issuer");
        for counts in issuers() {
            for (result, last) in ["failure", "success"].iter().zip(&counts.fetched) {
                let Some(last) = last else { continue };
                let hash = counts.hash.as_str();
                let labels = [("apiserver_id_hash", instance), ("jwt_issuer_hash", hash), ("result", result)];
                self.0.sample(&name, &labels, seconds(*last));
            }
        }
        let name = format!("{JWT}_jwks_fetch_last_key_set_info");
        self.0.describe(&name, Gauge, "Hash of the key set in use");
        for counts in issuers() {
            let Some(key_set) = &counts.key_set else { continue };
            let hash = counts.hash.as_str();
            let labels = [("apiserver_id_hash", instance), ("hash", key_set), ("jwt_issuer_hash", hash)];
            self.0.sample(&name, &labels, 1);
        }
    }

    // S197
    fn navicert_issuers(&mut self, rest: &LockedCounts) {
        let issuers = || rest.issuers.values();
        let name = "navicert_jwt_rejections_total";
        self.0.describe(name, Counter, "Rejected tokens by reason");
        for counts in issuers() {
            for (reason, count) in &counts.rejections {
                self.0.sample(name, &[("jwt_issuer_hash", &counts.hash), ("reason", reason)], count);
            }
        }
        let name = "navicert_jwks_keys";
        self.0.describe(name, Gauge, "Keys of an issuer by state");
        for counts in issuers() {
            let Some((usable, skipped)) = counts.keys else { continue };
            for (state, count) in [("skipped", skipped), ("usable", usable)] {
                self.0.sample(name, &[("jwt_issuer_hash", &counts.hash), ("state", state)], count);
            }
        }
        let name = "navicert_issuer_ready";
        self.0.describe(name, Gauge, "Whether an issuer is ready to verify tokens");
        for counts in issuers() {
            if let Some(is_ready) = counts.is_ready {
                self.0.sample(name, &[("jwt_issuer_hash", &counts.hash)], u8::from(is_ready));
            }
        }
        let name = "navicert_jwks_refresh_total";
        self.0.describe(name, Counter, "Key set requests by trigger");
        for (trigger, count) in &rest.refreshes {
            let trigger = match trigger {
                RefreshTrigger::Background => "background",
                RefreshTrigger::Token => "token",
            };
            self.0.sample(name, &[("trigger", trigger)], count);
        }
    }

    fn histogram<const N: usize>(
        &mut self,
        name: &str,
        labels: Labels<'_>,
        histogram: &Histogram<N>,
        bounds: &[f64; N],
    ) {
        let buckets = histogram.buckets.iter().map(load);
        let sum = std::time::Duration::from_nanos(load(&histogram.nanoseconds)).as_secs_f64();
        self.0.histogram(name, labels, bounds.iter().copied().zip(buckets), sum, load(&histogram.count));
    }
}

fn load(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn seconds(time: Timestamp) -> f64 {
    time.as_duration().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use navicert_types::Clock;
    use navicert_types::clock::ManualClock;

    use super::*;
    use crate::metrics::counting::sha256_label;
    use crate::metrics::{AuthnEvent, AuthnRecorder as _};
    use crate::model::outcome::{AuthnOutcome, NoOpinion, RefusalClass};

    fn metrics() -> (AuthnMetrics, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at(1_700_000_000));
        (AuthnMetrics::new("node-1", Arc::clone(&clock) as Arc<dyn Clock>), clock)
    }

    fn lines<'t>(page: &'t str, name: &str) -> Vec<&'t str> {
        page.lines().filter(|line| line.starts_with(name)).collect()
    }

    // §7: names, labels, types and buckets; S195: none of the names that only the KEP has; S197.
    #[test]
    fn series_have_upstream_names_labels_and_buckets() {
        let (metrics, clock) = metrics();
        let (id, i) = (sha256_label(b"node-1"), sha256_label(b"https://i"));
        metrics.record(&AuthnEvent::Configuration { text: b"config" });
        metrics.record(&AuthnEvent::Reloaded { is_success: false });
        clock.advance(Duration::from_millis(1_500));
        metrics.record(&AuthnEvent::Reloaded { is_success: true });
        metrics.record(&AuthnEvent::KeysFetched { issuer: "https://i", body: Some(b"keys") });
        metrics.record(&AuthnEvent::KeysFetched { issuer: "https://i", body: None });
        let took = Duration::from_millis(7);
        metrics.record(&AuthnEvent::TokenEvaluated { issuer: "https://i", refusal: None, took });
        metrics.record(&AuthnEvent::TokenEvaluated {
            issuer: "https://i",
            refusal: Some(RefusalClass::UnknownKey),
            took,
        });
        metrics.record(&AuthnEvent::Attempt { outcome: &AuthnOutcome::NoOpinion(NoOpinion::NoIssuer), took });
        metrics.record(&AuthnEvent::CacheLookup { is_hit: true, took: Duration::from_micros(999) });
        metrics.record(&AuthnEvent::FetchStarted);
        metrics.record(&AuthnEvent::FetchStarted);
        metrics.record(&AuthnEvent::FetchEnded { is_error: true });
        metrics.record(&AuthnEvent::IssuerReady { issuer: "https://i", is_ready: true });
        metrics.record(&AuthnEvent::Keys { issuer: "https://i", usable: 2, skipped: 1 });
        metrics.record(&AuthnEvent::KeysRefreshed { trigger: RefreshTrigger::Token });
        metrics.record(&AuthnEvent::CacheEntries(5));
        let page = metrics.render();
        let (config, keys) = (sha256_label(b"config"), sha256_label(b"keys"));
        for expected in [
            format!("{RELOAD}_automatic_reloads_total{{apiserver_id_hash=\"{id}\",status=\"failure\"}} 1"),
            format!("{RELOAD}_automatic_reloads_total{{apiserver_id_hash=\"{id}\",status=\"success\"}} 1"),
            format!(
                "{RELOAD}_automatic_reload_last_timestamp_seconds{{apiserver_id_hash=\"{id}\",status=\"success\"}} \
                 1700000001.5"
            ),
            format!("{RELOAD}_last_config_info{{apiserver_id_hash=\"{id}\",hash=\"{config}\"}} 1"),
            format!(
                "{JWT}_latency_seconds_bucket{{jwt_issuer_hash=\"{i}\",result=\"success\",le=\"0.005\"}} 0"
            ),
            format!(
                "{JWT}_latency_seconds_bucket{{jwt_issuer_hash=\"{i}\",result=\"success\",le=\"0.01\"}} 1"
            ),
            format!(
                "{JWT}_latency_seconds_bucket{{jwt_issuer_hash=\"{i}\",result=\"failure\",le=\"+Inf\"}} 1"
            ),
            format!("{JWT}_latency_seconds_sum{{jwt_issuer_hash=\"{i}\",result=\"success\"}} 0.007"),
            format!(
                "{JWT}_jwks_fetch_last_timestamp_seconds{{apiserver_id_hash=\"{id}\",jwt_issuer_hash=\"{i}\",\
                 result=\"failure\"}} 1700000001.5"
            ),
            format!(
                "{JWT}_jwks_fetch_last_key_set_info{{apiserver_id_hash=\"{id}\",hash=\"{keys}\",\
                 jwt_issuer_hash=\"{i}\"}} 1"
            ),
            "authentication_attempts{result=\"failure\"} 1".to_owned(),
            "authentication_duration_seconds_bucket{result=\"failure\",le=\"0.008\"} 1".to_owned(),
            "authentication_token_cache_request_total{status=\"hit\"} 1".to_owned(),
            "authentication_token_cache_request_duration_seconds_sum{status=\"hit\"} 0".to_owned(),
            "authentication_token_cache_fetch_total{status=\"error\"} 1".to_owned(),
            "authentication_token_cache_active_fetch_count{status=\"in_flight\"} 1".to_owned(),
            format!("navicert_jwt_rejections_total{{jwt_issuer_hash=\"{i}\",reason=\"kid_unknown\"}} 1"),
            format!("navicert_jwks_keys{{jwt_issuer_hash=\"{i}\",state=\"skipped\"}} 1"),
            format!("navicert_issuer_ready{{jwt_issuer_hash=\"{i}\"}} 1"),
            "navicert_jwks_refresh_total{trigger=\"token\"} 1".to_owned(),
            "navicert_token_cache_entries 5".to_owned(),
        ] {
            assert!(page.lines().any(|line| line == expected), "{expected}\n{page}");
        }
        for name in [
            "automatic_reload_last_config_hash",
            "jwks_fetch_last_keyset_hash",
            "provider_status_timestamp_seconds",
            "automatic_reload_failures_total",
        ] {
            assert!(!page.contains(name), "{name}");
        }
        let bounds = |name: &str| {
            let lines = lines(&page, name);
            let bound = |line: &&str| {
                line.split("le=\"").nth(1).and_then(|rest| rest.split('"').next().map(str::to_owned))
            };
            lines.iter().filter_map(bound).take_while(|bound| bound != "+Inf").collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            bounds(&format!("{JWT}_latency_seconds_bucket")),
            "0.001 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10"
        );
        assert_eq!(
            bounds("authentication_duration_seconds_bucket"),
            "0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192 16.384"
        );
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            let family =
                ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            let described = |name: &str| page.contains(&format!("# TYPE {name} "));
            assert!(described(family) || described(name), "{line}");
        }
    }

    // S188, LV8
    #[test]
    fn removed_issuer_loses_its_key_series_and_configuration_has_one_series() {
        let (metrics, _) = metrics();
        for issuer in ["https://i", "https://j"] {
            metrics.record(&AuthnEvent::KeysFetched { issuer, body: Some(b"keys") });
            metrics.record(&AuthnEvent::IssuerReady { issuer, is_ready: true });
        }
        metrics.record(&AuthnEvent::IssuerRemoved { issuer: "https://i" });
        metrics.record(&AuthnEvent::Configuration { text: b"one" });
        metrics.record(&AuthnEvent::Configuration { text: b"two" });
        let page = metrics.render();
        for (name, count) in [
            (format!("{JWT}_jwks_fetch_last_timestamp_seconds"), 1),
            (format!("{JWT}_jwks_fetch_last_key_set_info"), 1),
            ("navicert_issuer_ready".to_owned(), 1),
            (format!("{RELOAD}_last_config_info"), 1),
        ] {
            assert_eq!(lines(&page, &name).len(), count, "{name}");
        }
    }

    // S196: an empty name has no hash.
    #[test]
    fn empty_input_has_no_hash() {
        assert_eq!(sha256_label(b""), "");
        let hash = sha256_label(b"abc");
        assert_eq!(hash, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
