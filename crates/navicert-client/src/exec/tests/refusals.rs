//! What a 401 does, and what it does not do again and again.

use std::thread;

use navicert_plugin::Gate;

use super::*;
use crate::metrics::RefreshReason;

// C430, T28
#[test]
fn a_refusal_runs_the_plugin_once_whatever_the_expiry() {
    let stage = Stage::new([token_until("a1", 3_600), token("a2")]);
    let authenticator = stage.usual();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    let first = generation(&authenticator);
    assert_eq!(refuse(&authenticator, first), Ok(Some("a2".into())));
    assert_eq!(refuse(&authenticator, first), Ok(Some("a2".into())), "a late one gets what is there");
    assert_eq!(stage.runs(), 2);
    assert_eq!(stage.metrics.refreshes(RefreshReason::Unauthorized), 1);
}

// C430, T28
#[test]
fn refusals_that_come_together_share_one_run() {
    let gate = Gate::closed();
    let stage = Stage::new([token("a1"), token("a2").held_by(&gate)]);
    let authenticator = stage.usual();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    let first = generation(&authenticator);
    let answers: Vec<_> = thread::scope(|scope| {
        let askers: Vec<_> = (0..16).map(|_| scope.spawn(|| refuse(&authenticator, first))).collect();
        assert!(gate.wait_for_arrivals(1, Duration::from_secs(60)));
        gate.open();
        askers.into_iter().map(|asker| asker.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| *answer == Ok(Some("a2".into()))), "{answers:?}");
    assert_eq!(stage.runs(), 2);
}

// C430: the old one stays.
#[test]
fn a_refresh_that_fails_keeps_the_old_credential() {
    let stage = Stage::new([token("a1"), Script::exits(1)]);
    let authenticator = stage.usual();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    assert_eq!(
        refuse(&authenticator, generation(&authenticator)),
        Err("exec: executable /bin/sh failed with exit code 1".into())
    );
    assert_eq!((current(&authenticator), stage.runs()), (Ok("a1".into()), 2));
    assert!(
        refuse(&authenticator, generation(&authenticator)).is_err(),
        "and the plugin is left alone for a second"
    );
    assert_eq!(stage.runs(), 2);
}

// C442
#[test]
fn the_same_credential_again_makes_the_next_refusal_wait() {
    let stage = Stage::new(std::iter::repeat_n(token("a1"), 9));
    let authenticator = stage.usual();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    let mut runs = 1;
    for wait in [1, 2, 4, 8] {
        for _ in 0..5 {
            assert_eq!(refuse(&authenticator, generation(&authenticator)), Ok(None));
        }
        runs += 1;
        assert_eq!(stage.runs(), runs);
        stage.later(wait);
    }
}

// C442, T28: the second 401 does not run the plugin a third time at once.
#[test]
fn a_new_credential_that_is_refused_too_makes_the_next_run_wait() {
    let stage = Stage::new((1..9).map(|n| token(&format!("a{n}"))));
    let authenticator = stage.usual();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    assert_eq!(refuse(&authenticator, generation(&authenticator)), Ok(Some("a2".into())));
    for (wait, next) in [(1, "a3"), (2, "a4"), (4, "a5")] {
        assert_eq!(refuse(&authenticator, generation(&authenticator)), Ok(None), "{next} is not due yet");
        stage.later(wait);
        assert_eq!(refuse(&authenticator, generation(&authenticator)), Ok(Some(next.into())));
    }
}

// C442: a credential that was good for a while and is then revoked is replaced at once.
#[test]
fn a_credential_that_was_good_is_replaced_at_once() {
    let stage = Stage::new((1..9).map(|n| token(&format!("a{n}"))));
    let authenticator = stage.usual();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    for next in ["a2", "a3", "a4"] {
        stage.later(3_600);
        assert_eq!(refuse(&authenticator, generation(&authenticator)), Ok(Some(next.into())));
    }
}

// C442, T23 in small: a server that refuses everything, a thousand times a second for five seconds.
#[test]
fn a_server_that_refuses_everything_causes_four_runs_in_five_seconds() {
    let runs = |stage: Stage| {
        let authenticator = stage.usual();
        for _ in 0..1_000 {
            assert!(current(&authenticator).is_ok());
            let _ = refuse(&authenticator, generation(&authenticator));
            stage.clock.advance(Duration::from_millis(5));
        }
        stage.runs()
    };
    let changing = || (0..2_000).map(|n| token(&format!("a{n}")));
    assert_eq!(runs(Stage::new(changing())), 4);
    assert_eq!(runs(Stage::new(std::iter::repeat_n(token("a1"), 2_000))), 4);
    assert_eq!(runs(Stage::new(changing()).like_upstream()), 1_001, "this is what it is good for");
}

// C442: expiry has nothing to do with it.
#[test]
fn an_expired_credential_is_renewed_however_many_refusals_there_were() {
    let stage = Stage::new([token_until("a1", 60), token_until("a1", 60), token("a2")]);
    let authenticator = stage.usual();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    assert_eq!(refuse(&authenticator, generation(&authenticator)), Ok(None));
    stage.later(61);
    assert_eq!(current(&authenticator), Ok("a2".into()));
}

// C435
#[test]
fn an_alert_about_the_certificate_counts_as_a_refusal() {
    let (one, two) = (pair(), pair());
    let stage = Stage::new([with_certificate(&one.0, &one.1), with_certificate(&two.0, &two.1)]);
    let authenticator = stage.usual();
    assert_eq!(current(&authenticator), Ok(String::new()));
    let old = authenticator.ready().unwrap();
    let new = block_on(authenticator.refused(old.generation, Refused::TlsAlert)).unwrap().unwrap();
    assert!(!new.has_same_identity(&old));
    assert_eq!(stage.metrics.refreshes(RefreshReason::TlsAlert), 1);
}

// C202
#[cfg(feature = "exec-v1alpha1")]
#[test]
fn v1alpha1_is_told_about_the_answer_after_a_refusal_only() {
    use crate::credential::Answer;
    let output = "{\"apiVersion\":\"client.authentication.k8s.io/v1alpha1\",\"status\":{\"token\":\"a\"}}";
    let stage = Stage::new([Script::prints(output), Script::prints(output)]);
    let authenticator =
        stage.authenticator("{command: /bin/sh, apiVersion: client.authentication.k8s.io/v1alpha1}");
    assert!(current(&authenticator).is_ok());
    let mut headers = http::HeaderMap::new();
    headers.insert("www-authenticate", "Bearer".parse().unwrap());
    let answer = Answer { status: http::StatusCode::UNAUTHORIZED, headers };
    let refused = Refused::Unauthorized(Some(Arc::new(answer)));
    block_on(authenticator.refused(generation(&authenticator), refused)).unwrap();
    let told = |run: usize| stage.runner.commands()[run].variable("KUBERNETES_EXEC_INFO").unwrap().to_owned();
    assert!(told(0).to_str().unwrap().ends_with("\"spec\":{}}\n"));
    assert!(told(1).to_str().unwrap().ends_with(
        "\"spec\":{\"response\":{\"header\":{\"Www-Authenticate\":[\"Bearer\"]},\"code\":401}}}\n"
    ));
}
