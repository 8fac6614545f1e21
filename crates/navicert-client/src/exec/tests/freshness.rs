//! When a plugin is run again, and when not.

use super::*;

// T02, C410
#[test]
fn a_credential_without_expiry_is_got_once() {
    let stage = Stage::new([token("a1")]);
    let authenticator = stage.usual();
    for _ in 0..100 {
        assert_eq!(current(&authenticator), Ok("a1".into()));
    }
    assert_eq!(stage.runs(), 1);
    assert_eq!(current(&stage.usual()), Ok("a1".into()), "an equal configuration shares it");
    assert_eq!(stage.runs(), 1);
}

// T03, C410
#[test]
fn without_leeway_a_credential_is_good_at_its_expiry_and_stale_a_nanosecond_later() {
    let stage = Stage::new([token_until("a1", 3_600), token("a2")]).like_upstream();
    let authenticator = stage.usual();
    for (step, expected) in
        [(Duration::ZERO, "a1"), (Duration::from_secs(3_600), "a1"), (Duration::from_nanos(1), "a2")]
    {
        stage.clock.advance(step);
        assert_eq!(current(&authenticator), Ok(expected.into()), "after {step:?} more");
    }
    assert_eq!(stage.runs(), 2);
}

// T03, C411
#[test]
fn a_credential_is_renewed_ten_seconds_early() {
    let stage = Stage::new([token_until("a1", 3_600), token_until("a2", 7_200)]);
    let authenticator = stage.usual();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    stage.clock.advance(Duration::from_secs(3_590) - Duration::from_nanos(1));
    assert!(authenticator.ready().is_some());
    stage.clock.advance(Duration::from_nanos(1));
    assert!(authenticator.ready().is_none());
    assert_eq!(current(&authenticator), Ok("a2".into()));
    assert_eq!((stage.runs(), generation(&authenticator).number()), (2, 2));
}

// C411: a token that lives a minute is not got anew for every request.
#[test]
fn a_short_life_is_used_for_nine_tenths() {
    let stage = Stage::new([token_until("a1", 20), token("a2")]);
    let authenticator = stage.usual();
    for (second, expected) in [(0, "a1"), (17, "a1"), (1, "a2")] {
        stage.later(second);
        assert_eq!(current(&authenticator), Ok(expected.into()));
    }
}

// T03, C411, C441
#[test]
fn a_failure_in_the_early_window_keeps_the_old_credential_until_it_expires() {
    let stage = Stage::new([
        token_until("a1", 3_600),
        Script::exits(1),
        Script::exits(1),
        Script::exits(1),
        Script::exits(1),
    ]);
    let authenticator = stage.usual();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    stage.later(3_591);
    for _ in 0..10 {
        assert_eq!(current(&authenticator), Ok("a1".into()));
    }
    assert_eq!(stage.runs(), 2, "the next attempt waits");
    assert!(authenticator.ready().is_some(), "and meanwhile the fast path is fast");
    stage.later(2);
    assert_eq!(current(&authenticator), Ok("a1".into()));
    assert_eq!(stage.runs(), 3);
    stage.later(8);
    let error = current(&authenticator).unwrap_err();
    assert_eq!(error, "exec: executable /bin/sh failed with exit code 1");
    assert_eq!(stage.runs(), 4);
}

// C412
#[test]
fn a_credential_that_comes_expired_is_used_for_ten_seconds() {
    let stage = Stage::new([token_until("a1", -60), token_until("a2", -30), token_until("a3", 3_600)]);
    let authenticator = stage.usual();
    for (step, expected, runs) in [(0, "a1", 1), (10, "a1", 1), (1, "a2", 2), (11, "a3", 3)] {
        stage.later(step);
        assert_eq!(current(&authenticator), Ok(expected.into()));
        assert_eq!(stage.runs(), runs);
    }
}

// C413: expiry is a matter of the wall clock.
#[test]
fn setting_the_clock_makes_a_credential_stale() {
    let stage = Stage::new([token_until("a1", 3_600), token("a2")]);
    let authenticator = stage.usual();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    stage.clock.set_wall(Timestamp::from_second(NOW + 4_000).unwrap());
    assert_eq!(current(&authenticator), Ok("a2".into()));
}

// C414, T15
#[test]
fn a_broken_pair_with_a_later_expiry_changes_nothing() {
    let expiry = Timestamp::from_second(NOW + 9_000).unwrap();
    let broken = output(&format!(
        "\"token\":\"a2\",\"expirationTimestamp\":\"{expiry}\",\"clientCertificateData\":\"x\",\"clientKeyData\":\"y\""
    ));
    let stage = Stage::new([token_until("a1", 600), Script::prints(broken.clone()), Script::prints(broken)])
        .like_upstream();
    let authenticator = stage.usual();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    let old = authenticator.ready().unwrap();
    assert!(refuse(&authenticator, old.generation).is_err());
    let kept = authenticator.ready().unwrap();
    assert_eq!((kept.generation, kept.expires), (old.generation, old.expires));
    stage.later(601);
    assert!(current(&authenticator).unwrap_err().starts_with("failed parsing client key/certificate: "));
}

// C333
#[test]
fn a_credential_that_says_nothing_about_its_end_has_none() {
    let stage = Stage::new([Script::prints(output(
        "\"token\":\"a1\",\"expirationTimestamp\":\"0001-01-01T00:00:00Z\"",
    ))]);
    let authenticator = stage.usual();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    stage.later(100 * 365 * 86_400);
    assert_eq!((current(&authenticator), stage.runs()), (Ok("a1".into()), 1));
}

// C460, C465: the same again is the same generation; anything else is another.
#[test]
fn generations_tell_credentials_apart() {
    let (certificate, key) = pair();
    let stage = Stage::new([
        token_until("a1", 60),
        token_until("a1", 600),
        with_certificate(&certificate, &key),
        with_certificate(&certificate, &key),
        token("a1"),
    ])
    .like_upstream();
    let authenticator = stage.usual();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    stage.later(61);
    assert_eq!(current(&authenticator), Ok("a1".into()));
    let credential = authenticator.ready().unwrap();
    assert_eq!(
        (credential.generation.number(), credential.expires),
        (1, Some(Timestamp::from_second(NOW + 600).unwrap()))
    );
    for (expected, has_identity) in [(2, true), (2, true), (3, false)] {
        block_on(authenticator.refresh()).unwrap();
        let credential = authenticator.ready().unwrap();
        assert_eq!((credential.generation.number(), credential.identity.is_some()), (expected, has_identity));
    }
}
