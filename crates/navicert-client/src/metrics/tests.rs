//! Names, labels and buckets are upstream's.

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

// T09, C504: 10 minutes, 5, 15, none, none.
#[test]
fn ttl_is_that_of_the_first_certificate_to_expire() {
    let metrics = Metrics::new();
    let (one, two, three) = (AuthenticatorId(1), AuthenticatorId(2), AuthenticatorId(3));
    assert_eq!(metrics.ttl_seconds(at(0)), f64::INFINITY);
    let steps = [
        (one, Some(600), 600.0),
        (two, Some(300), 300.0),
        (three, Some(900), 300.0),
        (two, None, 600.0),
        (one, None, 900.0),
        (three, None, f64::INFINITY),
    ];
    for (id, expiry, expected) in steps {
        metrics.certificate(id, expiry.map(at));
        assert_eq!(metrics.ttl_seconds(at(0)), expected, "{id:?}");
    }
    metrics.certificate(one, Some(at(10)));
    assert_eq!(metrics.ttl_seconds(at(25)), -15.0, "an expired certificate is negative");
}

// C501–C505
#[test]
fn text_has_upstreams_names_labels_and_buckets() {
    let metrics = Metrics::new();
    metrics.call(CallStatus::NoError, 0, Duration::from_millis(100));
    metrics.call(CallStatus::PluginExecutionError, -1, Duration::from_secs(301));
    metrics.policy(true);
    metrics.refresh(RefreshReason::TlsAlert);
    metrics.rotation(Duration::from_secs(3_600));
    metrics.backoff(AuthenticatorId(7), true);
    metrics.authority_reload(AuthorityReload::ParseError);
    let text = metrics.render(at(0));
    for line in [
        "# TYPE rest_client_exec_plugin_ttl_seconds gauge",
        "rest_client_exec_plugin_ttl_seconds +Inf",
        "rest_client_exec_plugin_call_total{call_status=\"no_error\",code=\"0\"} 1",
        "rest_client_exec_plugin_call_total{call_status=\"plugin_execution_error\",code=\"-1\"} 1",
        "rest_client_exec_plugin_policy_call_total{status=\"allowed\"} 1",
        "rest_client_exec_plugin_policy_call_total{status=\"denied\"} 0",
        "rest_client_exec_plugin_refresh_total{reason=\"tls_alert\"} 1",
        "rest_client_exec_plugin_certificate_rotation_age_bucket{le=\"1800\"} 0",
        "rest_client_exec_plugin_certificate_rotation_age_bucket{le=\"3600\"} 1",
        "rest_client_exec_plugin_certificate_rotation_age_bucket{le=\"124416000\"} 1",
        "rest_client_exec_plugin_certificate_rotation_age_count 1",
        "rest_client_exec_plugin_run_seconds_bucket{call_status=\"no_error\",le=\"0.05\"} 0",
        "rest_client_exec_plugin_run_seconds_bucket{call_status=\"no_error\",le=\"0.1\"} 1",
        "rest_client_exec_plugin_run_seconds_bucket{call_status=\"plugin_execution_error\",le=\"300\"} 0",
        "rest_client_exec_plugin_run_seconds_bucket{call_status=\"plugin_execution_error\",le=\"+Inf\"} 1",
        "rest_client_exec_plugin_run_seconds_sum{call_status=\"plugin_execution_error\"} 301",
        "rest_client_exec_plugin_backoff_active 1",
        "# TYPE rest_client_transport_ca_reload_total counter",
        "rest_client_transport_ca_reload_total{reason=\"ca_parse_error\",result=\"failure\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}
