//! One run for everybody, one failure for everybody, and no hot loop.

use std::sync::Barrier;
use std::task::{Context, Waker};
use std::thread;

use navicert_plugin::Gate;

use super::*;
use crate::metrics::RefreshReason;

const SOON: Duration = Duration::from_secs(60);

fn sixty_four(script: Script) -> (Stage, Vec<Result<String, String>>) {
    let gate = Gate::closed();
    let stage = Stage::new([script.held_by(&gate)]);
    let authenticator = stage.usual();
    let asked = Barrier::new(65);
    let answers = thread::scope(|scope| {
        let askers: Vec<_> = (0..64)
            .map(|_| {
                scope.spawn(|| {
                    let mut asking = authenticator.current(Asking::Background);
                    let first = asking.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    assert!(first.is_pending());
                    asked.wait();
                    block_on(asking).map(|credential| bearer(&credential)).map_err(|error| error.to_string())
                })
            })
            .collect();
        asked.wait();
        assert!(gate.wait_for_arrivals(1, SOON));
        gate.open();
        askers.into_iter().map(|asker| asker.join().unwrap()).collect()
    });
    (stage, answers)
}

// T05, C420
#[test]
fn sixty_four_who_ask_at_once_get_one_run() {
    let (stage, answers) = sixty_four(token("a1"));
    assert_eq!((stage.runs(), answers.len()), (1, 64));
    assert!(answers.iter().all(|answer| answer == &Ok("a1".to_owned())));
}

// T05, C421
#[test]
fn a_failure_is_delivered_to_everybody_who_waited_and_not_repeated() {
    let (stage, answers) = sixty_four(Script::exits(3));
    assert_eq!((stage.runs(), answers.len()), (1, 64));
    let expected = "exec: executable /bin/sh failed with exit code 3";
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap_err() == expected), "{answers:?}");
}

// C306, C422, T06
#[test]
fn a_request_that_goes_away_does_not_stop_the_run() {
    let gate = Gate::closed();
    let stage = Stage::new([token("a1").held_by(&gate)]);
    let authenticator = stage.usual();
    let mut asking = authenticator.current(Asking::Background);
    assert!(asking.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(gate.wait_for_arrivals(1, SOON));
    drop(asking);
    gate.open();
    assert_eq!((current(&authenticator), stage.runs()), (Ok("a1".into()), 1));
}

// C441
#[test]
fn after_failures_requests_fail_at_once_with_the_reason_and_the_wait() {
    let stage = Stage::new([Script::exits(1), Script::exits(2), Script::exits(3), token("a1")]);
    let authenticator = stage.usual();
    let failure = |code: i32| format!("exec: executable /bin/sh failed with exit code {code}");
    let mut runs = 0;
    for (code, wait) in [(1, 1), (2, 2), (3, 4)] {
        assert_eq!(current(&authenticator), Err(failure(code)));
        runs += 1;
        let waiting = format!("{} (next attempt in {wait}s)", failure(code));
        assert_eq!(current(&authenticator), Err(waiting));
        stage.clock.advance(Duration::from_secs(wait) - Duration::from_millis(250));
        assert_eq!(current(&authenticator), Err(format!("{} (next attempt in 300ms)", failure(code))));
        assert_eq!((stage.runs(), stage.metrics.waiting()), (runs, 1));
        stage.clock.advance(Duration::from_millis(250));
    }
    assert_eq!(current(&authenticator), Ok("a1".into()));
    assert_eq!(stage.metrics.waiting(), 0);
}

// C441: success resets the count.
#[test]
fn after_a_success_the_first_failure_is_the_first_again() {
    let stage = Stage::new([Script::exits(1), Script::exits(1), token_until("a1", 60), Script::exits(1)]);
    let authenticator = stage.usual();
    for step in [0, 1, 2] {
        stage.later(step);
        let _ = current(&authenticator);
    }
    assert_eq!(stage.runs(), 3);
    stage.later(120);
    let _ = current(&authenticator);
    assert!(current(&authenticator).unwrap_err().ends_with("(next attempt in 1s)"));
}

// C441: what somebody asks for himself is never delayed.
#[test]
fn an_explicit_refresh_does_not_wait() {
    let stage = Stage::new([Script::exits(1), token("a1"), token("a2")]);
    let authenticator = stage.usual();
    assert!(current(&authenticator).is_err());
    assert_eq!(bearer(&block_on(authenticator.refresh()).unwrap()), "a1");
    assert_eq!(bearer(&block_on(authenticator.refresh()).unwrap()), "a2", "nor does it take what is there");
    assert_eq!(stage.metrics.refreshes(RefreshReason::Manual), 2);
    assert_eq!(current(&authenticator), Ok("a2".into()));
}

// C443
#[test]
fn after_a_failed_prompt_background_requests_wait_ten_seconds_and_a_person_does_not() {
    let mut stage = Stage::new([Script::exits(1), Script::exits(1), token("a1")]);
    stage.around.terminal = Arc::new(FixedTerminal { stdin: true, controlling: true });
    let authenticator = stage.authenticator("{command: /bin/sh, interactiveMode: IfAvailable}");
    assert!(current_as(&authenticator, Asking::Foreground).is_err());
    stage.later(9);
    assert!(current(&authenticator).unwrap_err().ends_with("(next attempt in 1s)"));
    assert_eq!(stage.runs(), 1);
    assert!(current_as(&authenticator, Asking::Foreground).is_err());
    assert_eq!(stage.runs(), 2);
    assert_eq!(current_as(&authenticator, Asking::Foreground), Ok("a1".into()));
}

// C441, T23 in small: with the wait switched off, the same requests run the plugin every time.
#[test]
fn the_wait_is_what_keeps_a_failing_plugin_from_being_run_all_the_time() {
    let failing = || std::iter::repeat_n(Script::exits(1), 200);
    let (guarded, unguarded) = (Stage::new(failing()), Stage::new(failing()).like_upstream());
    for stage in [&guarded, &unguarded] {
        let authenticator = stage.usual();
        for _ in 0..100 {
            assert!(current(&authenticator).is_err());
            stage.clock.advance(Duration::from_millis(50));
        }
    }
    assert_eq!((guarded.runs(), unguarded.runs()), (3, 100));
}
