//! The keyring's rules (I132–I140, I277), and that its index agrees with matching every key.

use proptest::prelude::*;

use super::*;

fn named(key: &str) -> (&str, RegistryCredential) {
    (key, RegistryCredential::new(key, "secret".to_owned()))
}

fn users(keys: &[&str], image: &str, profile: Profile) -> Vec<String> {
    let keyring = Keyring::new(keys.iter().map(|key| named(key)), profile);
    keyring.lookup(image).into_iter().map(|found| found.username.clone()).collect()
}

#[test]
fn normalizes_keys_as_the_kubelet_does() {
    // I133
    for (raw, expected) in [
        ("https://gcr.io", "gcr.io"),
        ("http://gcr.io", "gcr.io"),
        ("gcr.io/v1/", "gcr.io"),
        ("gcr.io/v2/", "gcr.io"),
        ("gcr.io/", "gcr.io"),
        ("gcr.io/v2", "gcr.io/v2"),
        ("gcr.io/v2/foo", "gcr.io/foo"),
        ("gcr.io/v1/v2/", "gcr.io/v2/"),
        ("gcr.io/foo/", "gcr.io/foo/"),
        ("u:p@gcr.io/x", "gcr.io/x"),
        ("gcr.io/foo?x", "gcr.io/foo"),
        ("gcr.io/v2foo", "gcr.io/v2foo"),
        ("gcr.io:443", "gcr.io:443"),
        ("gcr.io:", "gcr.io:"),
        ("HTTPS://gcr.io", "HTTPS://gcr.io"),
        ("ftp://gcr.io", "ftp://gcr.io"),
        ("[::1]:5000/x", "[::1]:5000/x"),
        ("", ""),
    ] {
        assert_eq!(normalise(raw).unwrap(), expected.as_bytes(), "{raw}");
    }
    for raw in ["gcr.io:latest", "%zz", "a b.io"] {
        assert!(normalise(raw).is_err(), "{raw}");
    }
}

#[test]
fn drops_invalid_key_and_reports_it_without_user_info() {
    // I132
    let keyring =
        Keyring::new([named("gcr.io:latest"), named("u:canary@a b.io"), named("gcr.io")], Profile::Kube);
    let rejected: Vec<&str> = keyring.rejected_keys().iter().map(|rejected| &*rejected.key).collect();
    assert_eq!(rejected, ["gcr.io:latest", "…@a b.io"]);
    assert_eq!(keyring.lookup("gcr.io/x").len(), 1);
}

#[test]
fn tries_keys_in_descending_byte_order() {
    // I136, I137, I138
    let keys = [
        "*.azurecr.*",
        "foo.azurecr.io",
        "f*.azurecr.io",
        "foo.azurecr.io/team/",
        "*.azurecr.io",
        "foo*.azurecr.io",
        "foo.azurecr.io/team",
    ];
    let expected = [
        "foo.azurecr.io/team/",
        "foo.azurecr.io/team",
        "foo.azurecr.io",
        "foo*.azurecr.io",
        "f*.azurecr.io",
        "*.azurecr.io",
        "*.azurecr.*",
    ];
    assert_eq!(users(&keys, "foo.azurecr.io/team/app", Profile::Kube), expected);
    assert_eq!(
        users(&["*.b.io/very/long", "a.b.io"], "a.b.io/very/long", Profile::Kube),
        ["a.b.io", "*.b.io/very/long"]
    );
}

#[test]
fn credentials_of_one_key_keep_their_order() {
    // I134
    let credentials =
        ["first", "second", "third"].map(|user| ("a.io", RegistryCredential::new(user, "x".to_owned())));
    let keyring = Keyring::new(credentials, Profile::Kube);
    let users: Vec<&str> = keyring.lookup("a.io/x").into_iter().map(|found| &*found.username).collect();
    assert_eq!(users, ["first", "second", "third"]);
}

#[test]
fn key_order_takes_precedence_over_keyring_order() {
    // I137, I147
    let early = Keyring::new([named("a.io"), named("*.io")], Profile::Kube);
    let late = Keyring::new([named("a.io/x"), named("a.io")], Profile::Kube);
    let found = lookup_all(&[&early, &late], "a.io/x");
    let order: Vec<(usize, &[u8])> = found.iter().map(|found| (found.keyring, found.key)).collect();
    assert_eq!(order, [(1, &b"a.io/x"[..]), (0, b"a.io"), (1, b"a.io"), (0, b"*.io")]);
}

#[test]
fn docker_hub_credentials_are_the_fallback_for_default_images() {
    // I139, I277
    for key in ["index.docker.io", "https://index.docker.io/v1/"] {
        for image in ["docker.io/library/busybox", "index.docker.io/x", "busybox", "foo/bar", "localhost/foo"]
        {
            assert_eq!(users(&[key], image, Profile::Kube), [key], "{image}");
        }
        for image in ["registry-1.docker.io/x", "", "/x", "a.io/x", "a:5/x"] {
            assert!(users(&[key], image, Profile::Kube).is_empty(), "{image}");
        }
    }
    for key in ["docker.io", "https://docker.io/v2/"] {
        assert_eq!(users(&[key], "docker.io/x", Profile::Kube), [key]);
        assert!(users(&[key], "busybox", Profile::Kube).is_empty());
        assert!(users(&[key], "index.docker.io/x", Profile::Kube).is_empty());
    }
    for image in ["docker.io/x", "busybox", "localhost/foo"] {
        assert!(users(&["index.docker.io/foo"], image, Profile::Kube).is_empty(), "{image}");
    }
    let two = users(&["index.docker.io", "docker.io"], "docker.io/x", Profile::Kube);
    assert_eq!(two, ["docker.io"], "the fallback is only for images that nothing matched");
}

#[test]
fn hardened_profile_does_not_offer_docker_hub_credentials_to_localhost() {
    // I140
    assert!(users(&["index.docker.io"], "localhost/foo", Profile::Hardened).is_empty());
    assert_eq!(users(&["index.docker.io"], "docker.io/x", Profile::Hardened), ["index.docker.io"]);
    assert_eq!(users(&["localhost"], "localhost/foo", Profile::Hardened), ["localhost"]);
}

proptest! {
    #[test]
    fn lookup_agrees_with_matching_every_key(
        keys in proptest::collection::vec("(https?://)?[ab*]{1,2}\\.[ab*]{1,2}(:5)?(/v2)?(/[ab]{0,2}){0,2}", 0..10),
        image in "[ab]{1,2}\\.[ab]{1,2}(:5)?(/[ab]{0,2}){0,3}",
    ) {
        let keyring = Keyring::new(keys.iter().map(|key| named(key)), Profile::Kube);
        let location = Location::parse(image.as_bytes()).unwrap();
        let mut expected: Vec<(Vec<u8>, usize)> = keys.iter().enumerate()
            .filter_map(|(at, key)| Some((normalise(key).ok()?, at)))
            .filter(|(key, _)| ImagePattern::parse_bytes(key, Profile::Kube).is_ok_and(|pattern| pattern.matches(&location)))
            .collect();
        expected.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
        let expected: Vec<&String> = expected.iter().map(|(_, at)| &keys[*at]).collect();
        let found: Vec<&String> = keyring.lookup(&image).into_iter().map(|found| &found.username).collect();
        prop_assert_eq!(found, expected);
    }
}
