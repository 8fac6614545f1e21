use navicert_types::clock::ManualClock;

use super::*;

const START: i64 = 1_800_000_000;
const HOUR: Duration = Duration::from_secs(3600);

fn keeper() -> (Arc<KeptOutputs>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(START));
    (Arc::new(KeptOutputs::new(Arc::clone(&clock) as Arc<dyn Clock>)), clock)
}

fn request(key: u8, client: u32) -> KeeperRequest {
    KeeperRequest { key: CommandKey::from_bytes([key; 32]), max_age: HOUR, client: Some(client) }
}

fn output(text: &str, seconds: i64) -> Option<RunResult> {
    let fresh_until = Timestamp::from_second(START + seconds).unwrap();
    Some(RunResult::Output { fresh_until, output: Secret::new(text.as_bytes().to_vec()) })
}

fn lead(keeper: &KeptOutputs, request: &KeeperRequest) -> Arc<Flight> {
    match keeper.join(request) {
        Joined::Lead(flight) => flight,
        other => panic!("{other:?}"),
    }
}

fn run(keeper: &KeptOutputs, request: &KeeperRequest, text: &str, seconds: i64) {
    let flight = lead(keeper, request);
    keeper.end(request, &flight, output(text, seconds));
}

fn kept(keeper: &KeptOutputs, request: &KeeperRequest) -> Option<String> {
    match keeper.join(request) {
        Joined::Kept(output) => Some(String::from_utf8(output.expose().clone()).unwrap()),
        Joined::Lead(flight) => {
            keeper.end(request, &flight, None);
            None
        }
        Joined::Follow(_) => None,
    }
}

#[test]
fn output_is_kept_for_its_key_until_it_expires() {
    let (keeper, clock) = keeper();
    run(&keeper, &request(1, 10), "one", 60);
    assert_eq!(kept(&keeper, &request(1, 11)).as_deref(), Some("one"));
    assert_eq!(kept(&keeper, &request(2, 11)), None);
    clock.advance(Duration::from_secs(59));
    assert_eq!(kept(&keeper, &request(1, 12)).as_deref(), Some("one"));
    clock.advance(Duration::from_secs(1));
    assert_eq!(kept(&keeper, &request(1, 13)), None);
}

#[test]
fn clock_that_is_set_back_does_not_prolong_an_output() {
    let (keeper, clock) = keeper();
    run(&keeper, &request(1, 10), "one", 60);
    clock.set_wall(Timestamp::from_second(START - 3600).unwrap());
    clock.advance(Duration::from_secs(60));
    assert_eq!(kept(&keeper, &request(1, 11)), None);
}

#[test]
fn request_may_ask_for_a_younger_output() {
    let (keeper, clock) = keeper();
    run(&keeper, &request(1, 10), "one", 3600);
    clock.advance(Duration::from_secs(30));
    let young = KeeperRequest { max_age: Duration::from_secs(30), ..request(1, 11) };
    assert_eq!(kept(&keeper, &young), None);
    assert_eq!(kept(&keeper, &request(1, 12)).as_deref(), Some("one"), "others may use it");
}

/// Clients hold a credential in memory, so a second request of the same process means that a server refused it.
#[test]
fn second_request_of_one_process_runs_the_program_again() {
    let (keeper, _) = keeper();
    run(&keeper, &request(1, 10), "one", 60);
    assert_eq!(kept(&keeper, &request(1, 11)).as_deref(), Some("one"));
    run(&keeper, &request(1, 11), "two", 60);
    assert_eq!(kept(&keeper, &request(1, 12)).as_deref(), Some("two"), "the refused one is gone");
    run(&keeper, &request(1, 11), "three", 60);
    let unknown = KeeperRequest { client: None, ..request(1, 0) };
    for _ in 0..3 {
        assert_eq!(kept(&keeper, &unknown).as_deref(), Some("three"));
    }
}

#[test]
fn one_process_runs_the_program_and_the_others_share_its_result() {
    let (keeper, _) = keeper();
    let flight = lead(&keeper, &request(1, 10));
    let Joined::Follow(followed) = keeper.join(&request(1, 11)) else { panic!("a second run") };
    assert!(followed.wait(Duration::ZERO).is_none());
    keeper.end(&request(1, 10), &flight, output("one", 60));
    assert!(matches!(followed.wait(Duration::ZERO), Some(Outcome::Output(_))));
    keeper.record_given(&request(1, 11));
    assert!(kept(&keeper, &request(1, 11)).is_none(), "it has had this output");
}

#[test]
fn failure_is_shared_by_those_who_wait_and_not_kept() {
    let (keeper, _) = keeper();
    let flight = lead(&keeper, &request(1, 10));
    let Joined::Follow(followed) = keeper.join(&request(1, 11)) else { panic!("a second run") };
    keeper.end(&request(1, 10), &flight, Some(RunResult::Failure(3)));
    assert!(matches!(followed.wait(Duration::ZERO), Some(Outcome::Failure(3))));
    lead(&keeper, &request(1, 12));
}

#[test]
fn another_process_runs_the_program_if_the_first_has_gone() {
    let (keeper, _) = keeper();
    let flight = lead(&keeper, &request(1, 10));
    let Joined::Follow(followed) = keeper.join(&request(1, 11)) else { panic!("a second run") };
    keeper.end(&request(1, 10), &flight, None);
    assert!(matches!(followed.wait(Duration::ZERO), Some(Outcome::Abandoned)));
    lead(&keeper, &request(1, 11));
}

#[test]
fn output_that_has_expired_already_is_not_kept() {
    let (keeper, _) = keeper();
    run(&keeper, &request(1, 10), "one", 0);
    run(&keeper, &request(2, 10), "two", -60);
    assert_eq!((kept(&keeper, &request(1, 11)), kept(&keeper, &request(2, 11))), (None, None));
}

#[test]
fn number_of_outputs_is_bounded() {
    let (keeper, _) = keeper();
    for key in 0..=u8::try_from(MAX_ENTRIES).unwrap() {
        run(&keeper, &request(key, 10), "one", 60 + i64::from(key));
    }
    assert_eq!(keeper.lock().entries.len(), MAX_ENTRIES);
    assert_eq!(kept(&keeper, &request(0, 11)), None, "the one that expires first");
    assert_eq!(keeper.clear(), u32::try_from(MAX_ENTRIES).unwrap());
    assert_eq!(kept(&keeper, &request(5, 11)), None);
}

#[test]
fn ends_when_nothing_is_kept_or_nothing_is_asked() {
    let (keeper, clock) = keeper();
    let next = |keeper: &KeptOutputs| keeper.next_check(&mut keeper.lock());
    assert_eq!(next(&keeper), Some(EMPTY_GRACE));
    run(&keeper, &request(1, 10), "one", 30);
    assert_eq!(next(&keeper), Some(Duration::from_secs(30)));
    clock.advance(Duration::from_secs(30));
    assert_eq!(next(&keeper), None, "the only output has expired, and the last request was long ago");
    run(&keeper, &request(1, 10), "one", 24 * 3600);
    assert_eq!(next(&keeper), Some(MAX_CHECK_INTERVAL));
    clock.advance(MAX_IDLE);
    let connection = keeper.connected().unwrap();
    assert!(next(&keeper).is_some(), "a process is connected");
    drop(connection);
    assert_eq!(next(&keeper), None);
    keeper.wait_until_idle();
    assert!(keeper.connected().is_none(), "it has ended");
}

#[test]
fn debug_shows_no_output() {
    let (keeper, _) = keeper();
    run(&keeper, &request(1, 10), "canary", 60);
    let joined = keeper.join(&request(1, 11));
    for shown in [format!("{keeper:?}"), format!("{joined:?}")] {
        assert!(!shown.contains("canary") && !shown.contains("99, 97"), "{shown}");
    }
}
