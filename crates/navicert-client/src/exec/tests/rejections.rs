//! A rejected credential is refreshed once, then with back-off.

use std::thread;

use navicert_plugin::RunGate;

use super::*;
use crate::metrics::RefreshReason;

// C430, T28
#[test]
fn rejection_runs_the_plugin_once_regardless_of_expiry() {
    let fixture = Fixture::new([token_until("a1", 3_600), token("a2")]);
    let authenticator = fixture.shell_authenticator();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    let first = generation(&authenticator);
    assert_eq!(reject(&authenticator, first), Ok(Some("a2".into())));
    assert_eq!(
        reject(&authenticator, first),
        Ok(Some("a2".into())),
        "a late rejection gets the current credential"
    );
    assert_eq!(fixture.runs(), 2);
    assert_eq!(fixture.metrics.refreshes(RefreshReason::Unauthorized), 1);
}

// C430, T28
#[test]
fn concurrent_rejections_share_one_run() {
    let gate = RunGate::closed();
    let fixture = Fixture::new([token("a1"), token("a2").held_by(&gate)]);
    let authenticator = fixture.shell_authenticator();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    let first = generation(&authenticator);
    let results: Vec<_> = thread::scope(|scope| {
        let callers: Vec<_> = (0..16).map(|_| scope.spawn(|| reject(&authenticator, first))).collect();
        assert!(gate.wait_for_arrivals(1, Duration::from_secs(60)));
        gate.open();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    assert!(results.iter().all(|result| *result == Ok(Some("a2".into()))), "{results:?}");
    assert_eq!(fixture.runs(), 2);
}

// C430: the old credential is kept.
#[test]
fn failed_refresh_keeps_the_old_credential() {
    let fixture = Fixture::new([token("a1"), Script::exits(1)]);
    let authenticator = fixture.shell_authenticator();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    assert_eq!(
        reject(&authenticator, generation(&authenticator)),
        Err("exec: executable /bin/sh failed with exit code 1".into())
    );
    assert_eq!((current(&authenticator), fixture.runs()), (Ok("a1".into()), 2));
    assert!(
        reject(&authenticator, generation(&authenticator)).is_err(),
        "the plugin is in back-off for a second"
    );
    assert_eq!(fixture.runs(), 2);
}

// C442
#[test]
fn unchanged_credential_delays_the_next_run() {
    let fixture = Fixture::new(std::iter::repeat_n(token("a1"), 9));
    let authenticator = fixture.shell_authenticator();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    let mut runs = 1;
    for wait in [1, 2, 4, 8] {
        for _ in 0..5 {
            assert_eq!(reject(&authenticator, generation(&authenticator)), Ok(None));
        }
        runs += 1;
        assert_eq!(fixture.runs(), runs);
        fixture.advance_seconds(wait);
    }
}

// C442, T28: the second 401 does not run the plugin a third time at once.
#[test]
fn rejected_new_credential_delays_the_next_run() {
    let fixture = Fixture::new((1..9).map(|n| token(&format!("a{n}"))));
    let authenticator = fixture.shell_authenticator();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    assert_eq!(reject(&authenticator, generation(&authenticator)), Ok(Some("a2".into())));
    for (wait, next) in [(1, "a3"), (2, "a4"), (4, "a5")] {
        assert_eq!(reject(&authenticator, generation(&authenticator)), Ok(None), "{next} is not due yet");
        fixture.advance_seconds(wait);
        assert_eq!(reject(&authenticator, generation(&authenticator)), Ok(Some(next.into())));
    }
}

// C442: a credential that was accepted for a while and is then revoked is replaced immediately.
#[test]
fn previously_accepted_credential_is_replaced_immediately() {
    let fixture = Fixture::new((1..9).map(|n| token(&format!("a{n}"))));
    let authenticator = fixture.shell_authenticator();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    for next in ["a2", "a3", "a4"] {
        fixture.advance_seconds(3_600);
        assert_eq!(reject(&authenticator, generation(&authenticator)), Ok(Some(next.into())));
    }
}

// C442, a small T23: a server that rejects every credential, a thousand times a second for five seconds.
#[test]
fn server_that_rejects_everything_causes_four_runs_in_five_seconds() {
    let runs = |fixture: Fixture| {
        let authenticator = fixture.shell_authenticator();
        for _ in 0..1_000 {
            assert!(current(&authenticator).is_ok());
            let _ = reject(&authenticator, generation(&authenticator));
            fixture.clock.advance(Duration::from_millis(5));
        }
        fixture.runs()
    };
    let changing = || (0..2_000).map(|n| token(&format!("a{n}")));
    assert_eq!(runs(Fixture::new(changing())), 4);
    assert_eq!(runs(Fixture::new(std::iter::repeat_n(token("a1"), 2_000))), 4);
    assert_eq!(runs(Fixture::new(changing()).like_upstream()), 1_001, "without back-off");
}

// C442: expiry is independent of rejections.
#[test]
fn expired_credential_is_refreshed_regardless_of_rejections() {
    let fixture = Fixture::new([token_until("a1", 60), token_until("a1", 60), token("a2")]);
    let authenticator = fixture.shell_authenticator();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    assert_eq!(reject(&authenticator, generation(&authenticator)), Ok(None));
    fixture.advance_seconds(61);
    assert_eq!(current(&authenticator), Ok("a2".into()));
}

// C435
#[test]
fn certificate_alert_counts_as_rejection() {
    let (one, two) = (pair(), pair());
    let fixture = Fixture::new([with_certificate(&one.0, &one.1), with_certificate(&two.0, &two.1)]);
    let authenticator = fixture.shell_authenticator();
    assert_eq!(current(&authenticator), Ok(String::new()));
    let old = authenticator.cached().unwrap();
    let new = block_on(authenticator.refresh_rejected(old.generation, Rejection::TlsAlert)).unwrap().unwrap();
    assert!(!new.has_same_identity(&old));
    assert_eq!(fixture.metrics.refreshes(RefreshReason::TlsAlert), 1);
}

// C202
#[cfg(feature = "exec-v1alpha1")]
#[test]
fn v1alpha1_input_has_the_server_response_after_a_rejection_only() {
    use crate::credential::RejectedResponse;
    let output = "{\"apiVersion\":\"client.authentication.k8s.io/v1alpha1\",\"status\":{\"token\":\"a\"}}";
    let fixture = Fixture::new([Script::prints(output), Script::prints(output)]);
    let authenticator =
        fixture.authenticator("{command: /bin/sh, apiVersion: client.authentication.k8s.io/v1alpha1}");
    assert!(current(&authenticator).is_ok());
    let mut headers = http::HeaderMap::new();
    headers.insert("www-authenticate", "Bearer".parse().unwrap());
    let response = RejectedResponse { status: http::StatusCode::UNAUTHORIZED, headers };
    let rejection = Rejection::Unauthorized(Some(Arc::new(response)));
    block_on(authenticator.refresh_rejected(generation(&authenticator), rejection)).unwrap();
    let input =
        |run: usize| fixture.runner.commands()[run].variable("KUBERNETES_EXEC_INFO").unwrap().to_owned();
    assert!(input(0).to_str().unwrap().ends_with("\"spec\":{}}\n"));
    assert!(input(1).to_str().unwrap().ends_with(
        "\"spec\":{\"response\":{\"header\":{\"Www-Authenticate\":[\"Bearer\"]},\"code\":401}}}\n"
    ));
}
