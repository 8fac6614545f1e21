//! The conformance table of the specification (I61–I79), and properties of the matcher.

use proptest::prelude::*;

use super::*;

/// Row, pattern, image, whether it matches, whether the configuration is rejected.
const TABLE: &[(&str, &str, &str, bool, bool)] = &[
    ("M1", "registry.io", "registry.io/foo", true, false),
    ("M2", "registry.io", "registry.io", true, false),
    ("M3", "registry.io", "registry.io:5000/foo", false, false),
    ("M4", "registry.io:5000", "registry.io/foo", false, false),
    ("M5", "registry.io:5000", "registry.io:5000/foo", true, false),
    ("M6", "registry.io:5000", "registry.io:5001/foo", false, false),
    ("M7", "registry.io:443", "registry.io/foo", false, false),
    ("M8", "registry.io:", "registry.io/foo", true, false),
    ("M9", "registry.io:*", "registry.io:5000/foo", false, true),
    ("M10", "a.io:05000", "a.io:5000/x", false, false),
    ("M11", "*.registry.io", "a.registry.io/foo", true, false),
    ("M12", "*.registry.io", "registry.io/foo", false, false),
    ("M13", "*.registry.io", "a.b.registry.io/foo", false, false),
    ("M14", "*.*.registry.io", "a.b.registry.io/foo", true, false),
    ("M15", "*.io", "k8s.io/foo", true, false),
    ("M16", "*.io", "a.k8s.io/foo", false, false),
    ("M17", "k8s.*", "k8s.gcr/foo", true, false),
    ("M18", "k8s.*.io", "k8s.x.io/foo", true, false),
    ("M19", "app*.k8s.io", "app.k8s.io/foo", true, false),
    ("M20", "app*.k8s.io", "app-12.k8s.io/foo", true, false),
    ("M21", "*app.k8s.io", "myapp.k8s.io/foo", true, false),
    ("M22", "a*b*c.io", "aXbYc.io/foo", true, false),
    ("M23", "**.io", "x.io/foo", true, false),
    ("M24", "*kubernetes.io", "kubernetes.io", true, false),
    ("M25", "*kubernetes.io", "a.kubernetes.io", false, false),
    ("M26", "*", "localhost/foo", true, false),
    ("M27", "*", "localhost:5000/foo", false, false),
    ("M28", "*:5000", "localhost:5000/foo", true, false),
    ("M29", "*", "docker.io/library/busybox", false, false),
    ("M30", "*.*", "docker.io/library/busybox", true, false),
    ("M31", "docker.io", "docker.io/library/busybox", true, false),
    ("M32", "index.docker.io", "docker.io/library/busybox", false, false),
    ("M33", "registry.io/foo", "registry.io/foo", true, false),
    ("M34", "registry.io/foo", "registry.io/foo/bar", true, false),
    ("M35", "registry.io/foo", "registry.io/foobar", true, false),
    ("M36", "registry.io/foo", "registry.io/fo", false, false),
    ("M37", "registry.io/foo/", "registry.io/foo", false, false),
    ("M38", "registry.io/foo/", "registry.io/foo/bar", true, false),
    ("M39", "registry.io/foo/", "registry.io/foobar", false, false),
    ("M40", "registry.io/", "registry.io/foo", true, false),
    ("M41", "registry.io/", "registry.io", false, false),
    ("M42", "registry.io/*", "registry.io/foo", false, false),
    ("M43", "*.registry.io/*", "a.registry.io/foo", false, false),
    ("M44", "registry.io/fo*", "registry.io/foo", false, false),
    ("M45", "registry.io/*", "registry.io/*/x", true, false),
    ("M46", "Registry.io", "registry.io/foo", false, false),
    ("M47", "registry.io/Foo", "registry.io/foo", false, false),
    ("M48", "https://registry.io", "registry.io/foo", false, false),
    ("M49", "registry.io", "https://registry.io/foo", false, false),
    ("M50", "", "registry.io/foo", false, false),
    ("M51", "", "", true, false),
    ("M52", "registry.io.", "registry.io/foo", false, false),
    ("M53", "*.io", ".io/foo", true, false),
    ("M54", "a.*.io", "a..io/x", true, false),
    ("M55", "reg?stry.io", "registry.io/foo", false, false),
    ("M56", "registry.io?x", "registry.io/foo", true, false),
    ("M57", "registry.io/foo#frag", "registry.io/foo/bar", true, false),
    ("M58", "reg[a-z]stry.io", "registry.io/foo", false, true),
    ("M59", "[ab].io", "a.io/foo", false, true),
    ("M60", "registry.io/[a]", "registry.io/[a]/x", true, false),
    ("M61", r"reg\*.io", "reg*.io/foo", false, true),
    ("M62", "10.0.0.1:5000", "10.0.0.1:5000/foo", true, false),
    ("M63", "10.0.*.*", "10.0.3.4/foo", true, false),
    ("M64", "[::1]:5000", "[::1]:5000/foo", true, false),
    ("M65", "[::1]", "[::1]/foo", false, false),
    ("M66", "[::1]", "1/foo", true, false),
    ("M67", "*:5000", "[::1]:5000/foo", true, false),
    ("M68", "[10.0.0.1]:5", "10.0.0.1:5/x", false, true),
    ("M69", "user:pw@registry.io", "registry.io/foo", true, false),
    ("M70", "registry.io/%66oo", "registry.io/foo", true, false),
    ("M71", "a.io/x%2Fy", "a.io/x/y/z", true, false),
    ("M72", "%41.io", "A.io/x", false, true),
    ("M73", "%C3%BC.io", "ü.io/x", true, false),
    ("M74", "%invalid%", "registry.io/foo", false, true),
    ("M75", "reg istry.io", "registry.io/foo", false, true),
    ("M76", "registry.io/a b", "registry.io/a b/c", true, false),
    ("M77", "{x}.io", "{x}.io/y", false, true),
    ("M78", "registry_x.io", "registry_x.io/foo", true, false),
    ("M79", "registry.io", "registry.io:latest", false, false),
    ("M80", "registry.io", "registry.io/foo:latest", true, false),
    ("M81", "registry.io/foo:latest", "registry.io/foo", false, false),
    ("M82", "registry.io/foo", "registry.io/foo@sha256:abcd", true, false),
    ("M83", "localhost:80:80", "localhost:80/foo", false, true),
    ("M84", "registry.io//foo", "registry.io/foo", false, false),
    ("M85", "registry.io/../foo", "registry.io/foo", false, false),
    ("M86", "*.io:5000/ns", "a.io:5000/ns/x", true, false),
    ("M87", "*.dkr.ecr.*.amazonaws.com", "123456789012.dkr.ecr.us-west-2.amazonaws.com/r", true, false),
    ("M88", "*.dkr.ecr.*.amazonaws.com", "123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn/r", false, false),
    ("M89", "*.dkr.ecr.*.amazonaws.com", "123456789012.dkr.ecr-fips.us-east-1.amazonaws.com/r", false, false),
    ("M90", "*.dkr-ecr.*.on.aws", "123456789012.dkr-ecr.us-west-2.on.aws/r", true, false),
    ("M91", "gcr.io", "eu.gcr.io/p/i", false, false),
    ("M92", "*.pkg.dev", "us-central1-docker.pkg.dev/p/r/i", true, false),
    ("M93", "*.azurecr.*", "foo.azurecr.io/x", true, false),
    ("M94", "*.azurecr.io", "foo.privatelink.azurecr.io/x", false, false),
];

fn matches(pattern: &str, image: &str, profile: Profile) -> bool {
    match (ImagePattern::parse(pattern, profile), Location::parse(image.as_bytes())) {
        (Ok(pattern), Ok(image)) => {
            assert_eq!(pattern.compare(&image).is_ok(), pattern.matches(&image));
            pattern.matches(&image)
        }
        _ => false,
    }
}

#[test]
fn specification_table_holds() {
    // I71 (M79), I72 (M3–M10), I73 (M12, M13), I74 (M33–M41), I75 (M11–M25, M46, M47)
    assert_eq!(TABLE.len(), 94);
    for &(row, pattern, image, expected, rejected) in TABLE {
        assert_eq!(matches(pattern, image, Profile::Kube), expected, "{row}: {pattern} {image}");
        assert_eq!(ImagePattern::parse(pattern, Profile::Kube).is_err(), rejected, "{row}: {pattern}");
    }
}

#[test]
fn hardened_differs_only_in_ipv6_addresses_without_a_port() {
    // I77
    for &(row, pattern, image, expected, _) in TABLE {
        let expected = match row {
            "M65" => true,
            "M66" => false,
            _ => expected,
        };
        assert_eq!(matches(pattern, image, Profile::Hardened), expected, "{row}: {pattern} {image}");
    }
}

#[test]
fn lookalike_registry_names_do_not_match() {
    // Names that match unanchored regular expressions, through which other helpers leaked tokens.
    for image in [
        "x.azurecr.io.evil.com/app",
        "evil.com/x.azurecr.io",
        "x.azurecr.io@evil.com/app",
        "x.azurecr.io:443@evil.com/app",
        "x.azurecr.io:5000/app",
        "x.azurecr.io./app",
        "x.AZURECR.io/app",
        "x.azurecr.io%2eevil.com/app",
        "evil.com#x.azurecr.io/app",
        "evil.com?x.azurecr.io/app",
        "azurecr.io/app",
        "x.azurecr.io\n.evil.com/app",
        "x\0.azurecr.io/app",
        "x.azurecr.\u{456}o/app",
    ] {
        assert!(!matches("*.azurecr.io", image, Profile::Hardened), "{image:?}");
        assert!(!matches("*.azurecr.io", image, Profile::Kube), "{image:?}");
    }
}

#[test]
fn matches_character_classes_as_go_does() {
    // I77: how Go's matcher treats an address in brackets.
    for (pattern, image, expected) in [
        ("[::1]", ":", false),
        ("[::a]", "a/x", true),
        ("[1::a-f]", "c", false),
        ("[fe80::1%25a-z]", "q/x", true),
        ("[fe80::1%25a-z]", "~/x", false),
        ("[::ffff:1.2.3.4]", "1.2.3.4]", false),
    ] {
        assert_eq!(matches(pattern, image, Profile::Kube), expected, "{pattern} {image}");
    }
}

#[test]
fn mismatch_names_the_difference() {
    // I76, I264
    let reason = |pattern: &str, image: &str| {
        let pattern = ImagePattern::parse(pattern, Profile::Kube).unwrap();
        pattern.compare(&Location::parse(image.as_bytes()).unwrap()).unwrap_err().to_string()
    };
    assert_eq!(reason("a.io", "a.io:5000/x"), "the image has port 5000, the pattern has none");
    assert_eq!(reason("a.io:1", "a.io:5000/x"), "port 1 of the pattern differs from port 5000 of the image");
    assert_eq!(reason("*.a.io", "a.io/x"), "the pattern's host has 3 labels, the image's host has 2");
    assert_eq!(
        reason("a.io/*", "a.io/x"),
        "the image's path does not start with `/*` (`*` is not a wildcard in a path)"
    );
    assert_eq!(reason("*.b.io", "x.a.io/x"), "host label 2 (`a`) does not match");
    // The first difference in this order is reported: port, number of labels, path, labels.
    assert!(reason("*.b.io:1/y", "a.io:2/x").starts_with("port 1"));
    assert!(reason("*.b.io/y", "a.io/x").contains("3 labels"));
    assert!(reason("b.io/y", "a.io/x").contains("path"));
}

/// Reference implementation of globs: backtracking, one character at a time.
fn backtracking(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skip| backtracking(rest, &text[skip..])),
        Some((first, rest)) => {
            text.split_first().is_some_and(|(found, tail)| first == found && backtracking(rest, tail))
        }
    }
}

proptest! {
    #[test]
    fn globs_agree_with_backtracking(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
        let expected = backtracking(pattern.as_bytes(), text.as_bytes());
        prop_assert_eq!(Label::new(pattern.as_bytes()).matches(text.as_bytes()), expected);
    }

    #[test]
    fn pattern_without_glob_matches_itself(text in "[a-z0-9.:/@%#-]{0,24}") {
        if let (Ok(pattern), Ok(image)) = (ImagePattern::parse(&text, Profile::Hardened), Location::parse(text.as_bytes())) {
            prop_assert!(pattern.matches(&image));
        }
    }

    #[test]
    fn never_panics(pattern in any::<String>(), image in proptest::collection::vec(any::<u8>(), 0..40)) {
        let image = Location::parse(&image);
        for profile in [Profile::Kube, Profile::Hardened] {
            if let (Ok(pattern), Ok(image)) = (ImagePattern::parse(&pattern, profile), &image) {
                prop_assert_eq!(pattern.compare(image).is_ok(), pattern.matches(image));
            }
        }
    }
}
