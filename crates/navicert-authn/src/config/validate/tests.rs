use navicert_types::authentication_config::AuthenticationConfiguration;

use super::*;

/// Violations of a file with one authenticator that is valid except for `change`, as `type path`.
fn violations(change: impl Fn(&mut AuthenticationConfiguration), profile: &AuthnProfile) -> Vec<String> {
    let mut configuration = AuthenticationConfiguration { jwt: vec![valid("https://i")], anonymous: None };
    change(&mut configuration);
    match validate(&configuration, profile) {
        Ok(_) => Vec::new(),
        Err(found) => found.iter().map(|one| format!("{} {}", one.kind.words(), one.path)).collect(),
    }
}

fn valid(url: &str) -> JwtAuthenticator {
    let issuer = Issuer { url: url.to_owned(), audiences: vec!["a".to_owned()], ..Issuer::default() };
    let username = PrefixedClaimOrExpression {
        claim: "sub".to_owned(),
        prefix: Some(String::new()),
        expression: String::new(),
    };
    let claim_mappings = ClaimMappings { username, ..ClaimMappings::default() };
    JwtAuthenticator { issuer, claim_mappings, ..JwtAuthenticator::default() }
}

fn kube(change: impl Fn(&mut JwtAuthenticator)) -> Vec<String> {
    violations(|configuration| change(&mut configuration.jwt[0]), &AuthnProfile::KUBE)
}

fn hardened(change: impl Fn(&mut JwtAuthenticator)) -> Vec<String> {
    violations(|configuration| change(&mut configuration.jwt[0]), &AuthnProfile::HARDENED)
}

fn by_expression(text: &str) -> PrefixedClaimOrExpression {
    PrefixedClaimOrExpression { expression: text.to_owned(), ..PrefixedClaimOrExpression::default() }
}

fn rule(text: &str) -> ClaimValidationRule {
    ClaimValidationRule { expression: text.to_owned(), ..ClaimValidationRule::default() }
}

// S17, VV1
#[test]
fn at_most_sixty_four_authenticators() {
    let many = |count: usize| {
        violations(
            |configuration| {
                configuration.jwt = (0..count).map(|index| valid(&format!("https://i/{index}"))).collect();
                if count == 65 {
                    configuration.jwt[0].issuer.url.clear();
                }
            },
            &AuthnProfile::KUBE,
        )
    };
    assert_eq!(many(64), Vec::<String>::new());
    assert_eq!(many(65), ["Too many jwt"]);
}

// S19, VV2
#[test]
fn two_issuers_without_a_url_are_also_duplicates() {
    let found =
        violations(|configuration| configuration.jwt = vec![valid(""), valid("")], &AuthnProfile::KUBE);
    let expected = [
        "Required value jwt[0].issuer.url",
        "Required value jwt[1].issuer.url",
        "Duplicate value jwt[1].issuer.url",
    ];
    assert_eq!(found, expected);
}

// S24, H2, VV7
#[test]
fn hardened_rejects_malformed_urls_that_go_accepts() {
    for (url, refused) in [
        ("https://", true),
        ("https:opaque", true),
        ("https://x?", true),
        ("https://x#", true),
        ("https://x/../y", true),
        ("HTTPS://x", false),
        ("https://x:99999", false),
    ] {
        assert_eq!(kube(|jwt| jwt.issuer.url = url.to_owned()), Vec::<String>::new(), "{url}");
        assert_eq!(!hardened(|jwt| jwt.issuer.url = url.to_owned()).is_empty(), refused, "{url}");
    }
}

// S28, VV9
#[test]
fn discovery_url_differs_by_more_than_slashes() {
    let found = kube(|jwt| jwt.issuer.discovery_url = "https://i//".to_owned());
    assert_eq!(found, ["Invalid value jwt[0].issuer.discoveryURL"]);
    let below = "https://i/.well-known/openid-configuration".to_owned();
    assert_eq!(kube(|jwt| jwt.issuer.discovery_url.clone_from(&below)), Vec::<String>::new());
}

// S38, VV30
#[test]
fn rules_are_compared_as_text() {
    let found = kube(|jwt| jwt.claim_validation_rules = vec![rule("true"), rule("true"), rule(" true")]);
    assert_eq!(found, ["Duplicate value jwt[0].claimValidationRules[1].expression"]);
}

// S48–S54, H3, VV32–VV35
#[test]
fn email_as_username_requires_email_verified() {
    let named = |text: &'static str, rules: &'static [&'static str]| {
        move |jwt: &mut JwtAuthenticator| {
            jwt.claim_mappings.username = by_expression(text);
            jwt.claim_validation_rules = rules.iter().map(|text| rule(text)).collect();
        }
    };
    let at = ["Invalid value jwt[0].claimMappings.username.expression"];
    let none: [&str; 0] = [];
    assert_eq!(kube(named("claims.email", &[])), at);
    assert_eq!(kube(named("claims.email", &["claims.email_verified == true"])), none);
    assert_eq!(kube(named("claims.email", &["claims['email_verified'] == true"])), at);
    assert_eq!(hardened(named("claims.email", &["claims['email_verified'] == true"])), none);
    for dotted in [".claims.email", ".claims.?email.orValue('x')", "has(.claims.email) ? 'a' : 'b'"] {
        assert_eq!(kube(named(dotted, &[])), at, "{dotted}");
        assert_eq!(hardened(named(dotted, &[])), at, "{dotted}");
        assert_eq!(kube(named(dotted, &[".claims.email_verified == true"])), none, "{dotted}");
    }
    // kube-apiserver does not count the variable within the scope of an iteration variable of the same name.
    let shadowed = "[1].map(claims, .claims.email)[0]";
    assert_eq!(kube(named(shadowed, &[])), none);
    assert_eq!(hardened(named(shadowed, &[])), at);
    for counted in ["[.claims.email].filter(claims, true)[0]", "[1].map(.claims, .claims.email)[0]"] {
        assert_eq!(kube(named(counted, &[])), at, "{counted}");
    }
    assert_eq!(hardened(named(".dyn(claims).email", &[])), at);
    for spelled in [r#"claims["email"]"#, "dyn(claims).email", r#"claims[?"email"].orValue("x")"#] {
        let spell = |jwt: &mut JwtAuthenticator| jwt.claim_mappings.username = by_expression(spelled);
        assert_eq!(kube(spell), none, "{spelled}");
        assert_eq!(hardened(spell), at, "{spelled}");
    }
}

// S81, H5
#[test]
fn hardened_does_not_iterate_over_claims() {
    for text in [r#"claims.exists(c, c == "s")"#, "size(claims) > 1", r#""a" in claims"#] {
        let ruled = |jwt: &mut JwtAuthenticator| jwt.claim_validation_rules = vec![rule(text)];
        assert_eq!(kube(ruled), Vec::<String>::new(), "{text}");
        assert_eq!(hardened(ruled), ["Invalid value jwt[0].claimValidationRules[0].expression"], "{text}");
    }
}

// S55, VV37, VV38
#[test]
fn conditions_without_anonymous_access_are_invalid() {
    let with = |enabled: bool| {
        violations(
            |configuration| {
                let condition = navicert_types::authentication_config::AnonymousAuthCondition::default();
                let conditions = vec![condition.clone(), condition];
                configuration.anonymous = Some(AnonymousAuthConfig { enabled, conditions });
            },
            &AuthnProfile::KUBE,
        )
    };
    assert_eq!(with(false), ["Invalid value anonymous.conditions"]);
    assert_eq!(with(true), Vec::<String>::new());
}
