//! When a credential is refreshed.

use super::*;

// T02, C410
#[test]
fn credential_without_expiry_is_obtained_once() {
    let fixture = Fixture::new([token("a1")]);
    let authenticator = fixture.shell_authenticator();
    for _ in 0..100 {
        assert_eq!(current(&authenticator), Ok("a1".into()));
    }
    assert_eq!(fixture.runs(), 1);
    assert_eq!(current(&fixture.shell_authenticator()), Ok("a1".into()), "an equal configuration shares it");
    assert_eq!(fixture.runs(), 1);
}

// T03, C410
#[test]
fn without_leeway_a_credential_is_fresh_at_its_expiry_and_stale_a_nanosecond_later() {
    let fixture = Fixture::new([token_until("a1", 3_600), token("a2")]).like_upstream();
    let authenticator = fixture.shell_authenticator();
    for (step, expected) in
        [(Duration::ZERO, "a1"), (Duration::from_secs(3_600), "a1"), (Duration::from_nanos(1), "a2")]
    {
        fixture.clock.advance(step);
        assert_eq!(current(&authenticator), Ok(expected.into()), "after {step:?} more");
    }
    assert_eq!(fixture.runs(), 2);
}

// T03, C411
#[test]
fn credential_is_refreshed_ten_seconds_early() {
    let fixture = Fixture::new([token_until("a1", 3_600), token_until("a2", 7_200)]);
    let authenticator = fixture.shell_authenticator();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    fixture.clock.advance(Duration::from_secs(3_590) - Duration::from_nanos(1));
    assert!(authenticator.cached().is_some());
    fixture.clock.advance(Duration::from_nanos(1));
    assert!(authenticator.cached().is_none());
    assert_eq!(current(&authenticator), Ok("a2".into()));
    assert_eq!((fixture.runs(), generation(&authenticator).number()), (2, 2));
}

// C411: a short-lived token is not refreshed for every request.
#[test]
fn short_lived_credential_is_used_for_nine_tenths_of_its_lifetime() {
    let fixture = Fixture::new([token_until("a1", 20), token("a2")]);
    let authenticator = fixture.shell_authenticator();
    for (second, expected) in [(0, "a1"), (17, "a1"), (1, "a2")] {
        fixture.advance_seconds(second);
        assert_eq!(current(&authenticator), Ok(expected.into()));
    }
}

// T03, C411, C441
#[test]
fn failed_early_refresh_keeps_the_old_credential_until_it_expires() {
    let fixture = Fixture::new([
        token_until("a1", 3_600),
        Script::exits(1),
        Script::exits(1),
        Script::exits(1),
        Script::exits(1),
    ]);
    let authenticator = fixture.shell_authenticator();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    fixture.advance_seconds(3_591);
    for _ in 0..10 {
        assert_eq!(current(&authenticator), Ok("a1".into()));
    }
    assert_eq!(fixture.runs(), 2, "back-off delays the next attempt");
    assert!(authenticator.cached().is_some(), "meanwhile the cached credential counts as fresh");
    fixture.advance_seconds(2);
    assert_eq!(current(&authenticator), Ok("a1".into()));
    assert_eq!(fixture.runs(), 3);
    fixture.advance_seconds(8);
    let error = current(&authenticator).unwrap_err();
    assert_eq!(error, "exec: executable /bin/sh failed with exit code 1");
    assert_eq!(fixture.runs(), 4);
}

// C412
#[test]
fn credential_expired_on_arrival_is_used_for_ten_seconds() {
    let fixture = Fixture::new([token_until("a1", -60), token_until("a2", -30), token_until("a3", 3_600)]);
    let authenticator = fixture.shell_authenticator();
    for (step, expected, runs) in [(0, "a1", 1), (10, "a1", 1), (1, "a2", 2), (11, "a3", 3)] {
        fixture.advance_seconds(step);
        assert_eq!(current(&authenticator), Ok(expected.into()));
        assert_eq!(fixture.runs(), runs);
    }
}

// C413: expiry uses the wall clock.
#[test]
fn setting_the_wall_clock_makes_a_credential_stale() {
    let fixture = Fixture::new([token_until("a1", 3_600), token("a2")]);
    let authenticator = fixture.shell_authenticator();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    fixture.clock.set_wall(Timestamp::from_second(NOW + 4_000).unwrap());
    assert_eq!(current(&authenticator), Ok("a2".into()));
}

// C414, T15
#[test]
fn invalid_key_pair_with_later_expiry_changes_nothing() {
    let expiry = Timestamp::from_second(NOW + 9_000).unwrap();
    let broken = output(&format!(
        "\"token\":\"a2\",\"expirationTimestamp\":\"{expiry}\",\"clientCertificateData\":\"x\",\"clientKeyData\":\"y\""
    ));
    let fixture =
        Fixture::new([token_until("a1", 600), Script::prints(broken.clone()), Script::prints(broken)])
            .like_upstream();
    let authenticator = fixture.shell_authenticator();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    let old = authenticator.cached().unwrap();
    assert!(reject(&authenticator, old.generation).is_err());
    let kept = authenticator.cached().unwrap();
    assert_eq!((kept.generation, kept.expires), (old.generation, old.expires));
    fixture.advance_seconds(601);
    assert!(current(&authenticator).unwrap_err().starts_with("failed parsing client key/certificate: "));
}

// C333
#[test]
fn missing_expiry_means_never() {
    let fixture = Fixture::new([Script::prints(output(
        "\"token\":\"a1\",\"expirationTimestamp\":\"0001-01-01T00:00:00Z\"",
    ))]);
    let authenticator = fixture.shell_authenticator();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    fixture.advance_seconds(100 * 365 * 86_400);
    assert_eq!((current(&authenticator), fixture.runs()), (Ok("a1".into()), 1));
}

// C460, C465: an unchanged credential keeps its generation; a changed one gets a new generation.
#[test]
fn changed_credential_gets_a_new_generation() {
    let (certificate, key) = pair();
    let fixture = Fixture::new([
        token_until("a1", 60),
        token_until("a1", 600),
        with_certificate(&certificate, &key),
        with_certificate(&certificate, &key),
        token("a1"),
    ])
    .like_upstream();
    let authenticator = fixture.shell_authenticator();
    assert_eq!(current(&authenticator), Ok("a1".into()));
    fixture.advance_seconds(61);
    assert_eq!(current(&authenticator), Ok("a1".into()));
    let credential = authenticator.cached().unwrap();
    assert_eq!(
        (credential.generation.number(), credential.expires),
        (1, Some(Timestamp::from_second(NOW + 600).unwrap()))
    );
    for (expected, has_identity) in [(2, true), (2, true), (3, false)] {
        block_on(authenticator.refresh()).unwrap();
        let credential = authenticator.cached().unwrap();
        assert_eq!((credential.generation.number(), credential.identity.is_some()), (expected, has_identity));
    }
}
