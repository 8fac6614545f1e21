//! Concurrent requests share one run and its failure, and failures cause back-off.

use std::sync::Barrier;
use std::task::{Context, Waker};
use std::thread;

use navicert_plugin::RunGate;

use super::*;
use crate::metrics::RefreshReason;

const GATE_TIMEOUT: Duration = Duration::from_secs(60);

fn run_64_requests(script: Script) -> (Fixture, Vec<Result<String, String>>) {
    let gate = RunGate::closed();
    let fixture = Fixture::new([script.held_by(&gate)]);
    let authenticator = fixture.shell_authenticator();
    let all_polled = Barrier::new(65);
    let results = thread::scope(|scope| {
        let callers: Vec<_> = (0..64)
            .map(|_| {
                scope.spawn(|| {
                    let mut pending = authenticator.get(RequestOrigin::Background);
                    let first = pending.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    assert!(first.is_pending());
                    all_polled.wait();
                    block_on(pending)
                        .map(|credential| bearer(&credential))
                        .map_err(|error| navicert_types::error_chain(&error))
                })
            })
            .collect();
        all_polled.wait();
        assert!(gate.wait_for_arrivals(1, GATE_TIMEOUT));
        gate.open();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    (fixture, results)
}

// T05, C420
#[test]
fn concurrent_requests_share_one_run() {
    let (fixture, results) = run_64_requests(token("a1"));
    assert_eq!((fixture.runs(), results.len()), (1, 64));
    assert!(results.iter().all(|result| result == &Ok("a1".to_owned())));
}

// T05, C421
#[test]
fn failure_is_delivered_to_every_waiting_request() {
    let (fixture, results) = run_64_requests(Script::exits(3));
    assert_eq!((fixture.runs(), results.len()), (1, 64));
    let expected = "exec: executable /bin/sh failed with exit code 3";
    assert!(results.iter().all(|result| result.as_ref().unwrap_err() == expected), "{results:?}");
}

// C306, C422, T06
#[test]
fn cancelled_request_does_not_stop_the_run() {
    let gate = RunGate::closed();
    let fixture = Fixture::new([token("a1").held_by(&gate)]);
    let authenticator = fixture.shell_authenticator();
    let mut pending = authenticator.get(RequestOrigin::Background);
    assert!(pending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(gate.wait_for_arrivals(1, GATE_TIMEOUT));
    drop(pending);
    gate.open();
    assert_eq!((current(&authenticator), fixture.runs()), (Ok("a1".into()), 1));
}

// C441
#[test]
fn requests_during_back_off_fail_immediately_with_cause_and_delay() {
    let fixture = Fixture::new([Script::exits(1), Script::exits(2), Script::exits(3), token("a1")]);
    let authenticator = fixture.shell_authenticator();
    let failure = |code: i32| format!("exec: executable /bin/sh failed with exit code {code}");
    let mut runs = 0;
    for (code, wait) in [(1, 1), (2, 2), (3, 4)] {
        assert_eq!(current(&authenticator), Err(failure(code)));
        runs += 1;
        let waiting = format!("{} (next attempt in {wait}s)", failure(code));
        assert_eq!(current(&authenticator), Err(waiting));
        fixture.clock.advance(Duration::from_secs(wait) - Duration::from_millis(250));
        assert_eq!(current(&authenticator), Err(format!("{} (next attempt in 300ms)", failure(code))));
        assert_eq!((fixture.runs(), fixture.metrics.backing_off()), (runs, 1));
        fixture.clock.advance(Duration::from_millis(250));
    }
    assert_eq!(current(&authenticator), Ok("a1".into()));
    assert_eq!(fixture.metrics.backing_off(), 0);
}

// C441: success resets the count.
#[test]
fn success_resets_the_back_off() {
    let fixture = Fixture::new([Script::exits(1), Script::exits(1), token_until("a1", 60), Script::exits(1)]);
    let authenticator = fixture.shell_authenticator();
    for step in [0, 1, 2] {
        fixture.advance_seconds(step);
        let _ = current(&authenticator);
    }
    assert_eq!(fixture.runs(), 3);
    fixture.advance_seconds(120);
    let _ = current(&authenticator);
    assert!(current(&authenticator).unwrap_err().ends_with("(next attempt in 1s)"));
}

// C441: an explicit refresh ignores the back-off.
#[test]
fn explicit_refresh_ignores_the_back_off() {
    let fixture = Fixture::new([Script::exits(1), token("a1"), token("a2")]);
    let authenticator = fixture.shell_authenticator();
    assert!(current(&authenticator).is_err());
    assert_eq!(bearer(&block_on(authenticator.refresh()).unwrap()), "a1");
    assert_eq!(
        bearer(&block_on(authenticator.refresh()).unwrap()),
        "a2",
        "it does not return the cached credential"
    );
    assert_eq!(fixture.metrics.refreshes(RefreshReason::Manual), 2);
    assert_eq!(current(&authenticator), Ok("a2".into()));
}

// C443
#[test]
fn after_a_failed_prompt_background_requests_wait_ten_seconds_and_foreground_ones_do_not() {
    let mut fixture = Fixture::new([Script::exits(1), Script::exits(1), token("a1")]);
    fixture.client_context.terminal = Arc::new(FixedTerminal { stdin: true, controlling: true });
    let authenticator = fixture.authenticator("{command: /bin/sh, interactiveMode: IfAvailable}");
    assert!(current_as(&authenticator, RequestOrigin::Foreground).is_err());
    fixture.advance_seconds(9);
    assert!(current(&authenticator).unwrap_err().ends_with("(next attempt in 1s)"));
    assert_eq!(fixture.runs(), 1);
    assert!(current_as(&authenticator, RequestOrigin::Foreground).is_err());
    assert_eq!(fixture.runs(), 2);
    assert_eq!(current_as(&authenticator, RequestOrigin::Foreground), Ok("a1".into()));
}

// C441, a small T23: without back-off, the same requests run the plugin every time.
#[test]
fn back_off_limits_runs_of_a_failing_plugin() {
    let failing = || std::iter::repeat_n(Script::exits(1), 200);
    let (guarded, unguarded) = (Fixture::new(failing()), Fixture::new(failing()).like_upstream());
    for fixture in [&guarded, &unguarded] {
        let authenticator = fixture.shell_authenticator();
        for _ in 0..100 {
            assert!(current(&authenticator).is_err());
            fixture.clock.advance(Duration::from_millis(50));
        }
    }
    assert_eq!((guarded.runs(), unguarded.runs()), (3, 100));
}
