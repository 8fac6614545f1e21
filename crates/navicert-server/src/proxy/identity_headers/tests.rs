use navicert_types::token_review::UserInfo;
use proptest::prelude::*;

use super::*;

fn person(username: &str) -> UserInfo {
    UserInfo { username: username.to_owned(), ..UserInfo::default() }
}

fn lines(person: &UserInfo, names: &HeaderNames) -> Vec<(String, Vec<u8>)> {
    let headers = encode(UserRef::from(person), names, AllowedNames::default()).unwrap();
    headers.into_iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect()
}

fn refused(person: &UserInfo) -> IdentityError {
    encode(UserRef::from(person), &HeaderNames::impersonation(), AllowedNames::default()).unwrap_err()
}

// PV1, PV7, PV8, S262, S263, S264
#[test]
fn encodes_each_value_byte_for_byte_in_its_own_header() {
    let ann = UserInfo {
        username: "é".to_owned(),
        uid: "7".to_owned(),
        groups: ["dev", "a,b", "", "dev", "ops"].map(str::to_owned).to_vec(),
        extra: [
            ("example.org/foo".to_owned(), vec!["x".to_owned(), String::new(), "x".to_owned()]),
            ("example.org/none".to_owned(), vec![String::new()]),
        ]
        .into(),
    };
    let told = |text: &str| text.as_bytes().to_vec();
    for (names, user, uid, group, extra) in [
        (
            HeaderNames::impersonation(),
            "impersonate-user",
            "impersonate-uid",
            "impersonate-group",
            "impersonate-extra-example.org%2ffoo",
        ),
        (
            HeaderNames::front_proxy(),
            "x-remote-user",
            "x-remote-uid",
            "x-remote-group",
            "x-remote-extra-example.org%2ffoo",
        ),
    ] {
        let expected = [
            (user, "é"),
            (uid, "7"),
            (group, "dev"),
            (group, "a,b"),
            (group, "ops"),
            (extra, "x"),
            (extra, "x"),
        ];
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| ((*name).to_owned(), told(value))).collect();
        assert_eq!(lines(&ann, &names), expected);
    }
    assert_eq!(lines(&person("ann"), &HeaderNames::impersonation()).len(), 1, "S266: no UID, no line");
}

// S264
#[test]
fn skips_repeated_groups_among_few_and_many() {
    for count in [1, 2, MAX_COMPARED_GROUPS / 2, MAX_COMPARED_GROUPS, 600] {
        let mut ann = person("ann");
        let groups = (0..count).map(|number| format!("g{number}"));
        ann.groups = groups.clone().chain(groups.clone()).collect();
        let written: Vec<Vec<u8>> =
            lines(&ann, &HeaderNames::impersonation()).into_iter().skip(1).map(|(_, value)| value).collect();
        assert_eq!(written, groups.map(String::into_bytes).collect::<Vec<_>>(), "{count}");
    }
}

// PV6, B9, B14, S234, S245, S260, S261
#[test]
fn rejects_users_that_headers_would_change() {
    assert_eq!(refused(&person("")), IdentityError::Empty);
    for odd in
        [" u", "u ", " ", "a\nb", "a\rb", "a\0b", "a\tb", "a\x7fb", "\x1b[2J", "a\r\nImpersonate-Group: x"]
    {
        assert_eq!(refused(&person(odd)), IdentityError::Unprintable("username"), "{odd:?}");
        let mut ann = person("ann");
        ann.uid = odd.to_owned();
        assert_eq!(refused(&ann), IdentityError::Unprintable("uid"), "{odd:?}");
        let mut ann = person("ann");
        ann.groups = vec!["dev".to_owned(), odd.to_owned()];
        assert_eq!(refused(&ann), IdentityError::Unprintable("group"), "{odd:?}");
        let mut ann = person("ann");
        ann.extra = [("a.b/c".to_owned(), vec![odd.to_owned()])].into();
        assert_eq!(refused(&ann), IdentityError::Unprintable("extra value"), "{odd:?}");
    }
}

// S236, S265, A73
#[test]
fn rejects_extra_keys_that_would_be_decoded_differently() {
    for (key, fits) in [
        ("a.b/c", true),
        ("a%b", true),
        ("a b", true),
        ("é/ü", true),
        ("authentication.kubernetes.io/credential-id", true),
        ("A.b/c", false),
        ("", false),
    ] {
        let mut ann = person("ann");
        ann.extra = [(key.to_owned(), vec!["v".to_owned()])].into();
        let told = encode(UserRef::from(&ann), &HeaderNames::impersonation(), AllowedNames::default());
        assert_eq!(told.is_ok(), fits, "{key}");
    }
    assert_eq!(extra_key("Example.org%2Ffoo"), b"example.org/foo");
    assert_eq!(extra_key("a%zz"), b"a%zz", "what cannot be decoded stays");
    assert_eq!(extra_key("a%2"), b"a%2");
}

// PV21, S267
#[test]
fn rejects_identities_above_the_size_limit() {
    let mut ann = person("ann");
    ann.groups = (0..1_000).map(|number| format!("{number:0200}")).collect();
    assert_eq!(lines(&ann, &HeaderNames::impersonation()).len(), 1_001);
    ann.groups.push("g".repeat(64 * 1024));
    assert_eq!(refused(&ann), IdentityError::TooLarge(IdentityLimit::default()));
    // `Impersonate-User: ann` and `Impersonate-Group: dev`, with 32 bytes each.
    let exact = IdentityLimit::from_bytes(16 + 3 + 32 + 17 + 3 + 32).unwrap();
    ann.groups = vec!["dev".to_owned()];
    let encoded = |ann: &UserInfo| {
        encode_within(exact, UserRef::from(ann), &HeaderNames::impersonation(), AllowedNames::default())
    };
    assert_eq!(encoded(&ann).unwrap().len(), 2);
    ann.groups = vec!["devs".to_owned()];
    assert_eq!(encoded(&ann).unwrap_err(), IdentityError::TooLarge(exact));
    assert_eq!(encoded(&ann).unwrap_err().reason().name(), "identity_too_large");
}

// S267
#[test]
fn limit_leaves_room_for_other_headers_within_what_api_servers_accept() {
    let max = IdentityLimit::MAX.bytes();
    assert!(max + crate::ServerLimits::for_proxy().header_bytes < 1 << 20);
    assert_eq!(IdentityLimit::from_bytes(max), Some(IdentityLimit::MAX));
    assert_eq!([0, max + 1].map(IdentityLimit::from_bytes), [None, None]);
}

// S268, S269
#[test]
fn reserved_names_must_be_allowed() {
    let mut unauthenticated = person("ann");
    unauthenticated.groups = vec!["system:unauthenticated".to_owned()];
    let mut administrator = person("ann");
    administrator.groups = vec!["dev".to_owned(), "system:masters".to_owned()];
    for (person, allowed) in [
        (
            person("system:serviceaccount:a:b"),
            AllowedNames { service_accounts: true, ..AllowedNames::default() },
        ),
        (person("system:node:n1"), AllowedNames { nodes: true, ..AllowedNames::default() }),
        (person("system:anonymous"), AllowedNames { anonymous: true, ..AllowedNames::default() }),
        (unauthenticated, AllowedNames { anonymous: true, ..AllowedNames::default() }),
        (administrator, AllowedNames { masters: true, ..AllowedNames::default() }),
    ] {
        assert!(matches!(refused(&person), IdentityError::NameClass(_)), "{person:?}");
        assert!(encode(UserRef::from(&person), &HeaderNames::front_proxy(), allowed).is_ok(), "{person:?}");
    }
}

#[test]
fn configured_names_are_canonicalized() {
    let names = HeaderNames { extra_prefix: "X_Corp_Extra-".to_owned(), ..HeaderNames::front_proxy() };
    assert_eq!(names.canonical(), ["x-remote-user", "x-remote-uid", "x-remote-group", "x-corp-extra-"]);
}

proptest! {
    // CVE-2026-23990: every mapped value arrives unchanged, or is rejected.
    #[test]
    fn encoded_identity_decodes_to_the_same_user(
        username in any::<String>(), uid in any::<String>(), groups in prop::collection::vec(any::<String>(), 0..4),
        extra in prop::collection::btree_map(any::<String>(), prop::collection::vec(any::<String>(), 0..3), 0..3),
    ) {
        let meant = UserInfo { username, uid, groups, extra };
        let names = HeaderNames::impersonation();
        let Ok(headers) = encode(UserRef::from(&meant), &names, AllowedNames::ALL) else { return Ok(()) };
        let mut told = UserInfo::default();
        for (name, value) in headers {
            // As a server parses it over HTTP/1.1.
            let value = String::from_utf8(value.as_bytes().trim_ascii().to_vec()).unwrap();
            match name.as_str() {
                "impersonate-user" => told.username = value,
                "impersonate-uid" => told.uid = value,
                "impersonate-group" => told.groups.push(value),
                name => {
                    let key = String::from_utf8(extra_key(name.strip_prefix("impersonate-extra-").unwrap())).unwrap();
                    told.extra.entry(key).or_default().push(value);
                }
            }
        }
        let mut expected = meant;
        let mut seen = HashSet::new();
        expected.groups.retain(|group| !group.is_empty() && seen.insert(group.clone()));
        for values in expected.extra.values_mut() {
            values.retain(|value| !value.is_empty());
        }
        expected.extra.retain(|_, values| !values.is_empty());
        prop_assert!(!told.username.is_empty());
        prop_assert_eq!(told, expected);
    }
}
