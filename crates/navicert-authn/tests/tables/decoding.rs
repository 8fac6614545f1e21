//! §14.1: which texts decode as configurations.

use super::common::{HEAD, PROFILES, check};
use navicert_authn::AuthnProfile;
use navicert_authn::config::load;

/// Checks whether a file is valid in the two profiles.
pub(crate) fn decides(id: &str, config: &str, kube: bool, hardened: bool) {
    for ((name, profile), expected) in PROFILES.iter().zip([kube, hardened]) {
        let answer = check(config, profile);
        assert_eq!(answer["valid"], expected, "{id} in {name}: {answer}\n{config}");
    }
}

fn messages(config: &str) -> String {
    let answer = check(config, &AuthnProfile::KUBE);
    assert_eq!(answer["stage"], "decode", "{answer}");
    answer["messages"].to_string()
}

// §14.1 DV1–DV22; S2 (DV21, DV22), S7 (DV8), S11 (DV10, DV12), S12 (DV17), S13 (DV15, DV16), S15 (DV9)
#[test]
fn configurations_are_decoded_as_kube_apiserver_decodes_them() {
    let minimal = "jwt: [{issuer: {url: https://i, audiences: [a]}, claimMappings: {username: {claim: c, prefix: ''}}}]\n";
    let good = format!("{HEAD}{minimal}");
    let replaced = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replace(from, to)
    };
    for (id, config, kube, hardened) in [
        ("DV1", HEAD.to_owned(), true, true),
        ("DV2", format!("{HEAD}jwt: null\n"), true, true),
        ("DV3", format!("{HEAD}jwts: []\n"), false, false),
        ("DV4", replaced("audiences", "audience"), false, false),
        ("DV5", format!("{HEAD}JWT: []\n"), false, false),
        ("DV5", replaced("issuer", "Issuer"), false, false),
        ("DV7", format!("{HEAD}apiVersion: apiserver.config.k8s.io/v1\n"), false, false),
        ("DV8", replaced("url: https://i", "url: https://i, url: https://i"), false, false),
        ("DV9", replaced("claimMappings", "audienceMatchPolicy: MatchAny, claimMappings"), false, false),
        ("DV10", format!("{good}---\nkind: x\n"), true, false),
        ("DV11", format!("---\n{good}"), true, true),
        (
            "DV13",
            replaced(
                "claimMappings",
                "claimValidationRules: [{claim: a, requiredValue: 123}], claimMappings",
            ),
            false,
            false,
        ),
        ("DV13", replaced("prefix: ''", "prefix: 1"), false, false),
        ("DV13", replaced("audiences: [a]", "audiences: a"), false, false),
        ("DV14", format!("{HEAD}anonymous: {{enabled: yes}}\n"), true, true),
        ("DV14", format!("{HEAD}anonymous: {{enabled: \"true\"}}\n"), false, false),
        ("DV16", replaced("prefix: ''", "prefix: null"), false, false),
        (
            "DV17",
            format!(
                "{HEAD}jwt:\n- issuer: {{url: https://i, audiences: &a [a]}}\n  claimMappings: &m {{username: {{claim: c, prefix: ''}}}}\n- issuer: {{url: https://j, audiences: *a}}\n  <<: {{claimMappings: *m}}\n"
            ),
            true,
            true,
        ),
        ("DV18", format!("{HEAD}metadata: {{name: x}}\n"), false, false),
        ("DV19", format!("{HEAD}jwt: [null]\n"), false, false),
        ("DV20", format!("{HEAD}jwt:\n\t- issuer: {{}}\n"), false, false),
        ("DV21", good.replace("AuthenticationConfiguration", "AuthorizationConfiguration"), false, false),
        ("DV22", good.replace("apiserver.config.k8s.io", "apiserver.k8s.io"), false, false),
    ] {
        decides(id, &config, kube, hardened);
    }
    let json = r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration","jwt":[{"issuer":{"url":"https://i","url":"https://i","audiences":["a"]},"claimMappings":{"username":{"claim":"c","prefix":""}}}]}"#;
    assert!(messages(json).contains("jwt[0].issuer.url"), "DV6");
    decides("DV12", &format!("{} x", json.replacen(r#""url":"https://i","#, "", 1)), false, false);
    decides("DV12 without", &json.replacen(r#""url":"https://i","#, "", 1), true, true);
    let padded = |size: usize| format!("{good}#{}", "x".repeat(size - good.len() - 1));
    decides("S14", &padded(1 << 20), true, true);
    decides("S14", &padded((1 << 20) + 1), false, false);
    let two = messages(&replaced("audiences", "audience").replace("claimMappings", "foo: 1, claimMappings"));
    assert!(two.contains("jwt[0].issuer.audience") && two.contains("jwt[0].foo"), "DV4: {two}");
    assert_eq!(check(&format!("{HEAD}jwt: [null]\n"), &AuthnProfile::KUBE)["stage"], "validate", "DV19");
    let anonymous = |text: &str| {
        load(format!("{HEAD}anonymous: {text}\n").as_bytes(), &AuthnProfile::KUBE)
            .unwrap()
            .configuration
            .anonymous
    };
    assert!(!anonymous("{}").unwrap().enabled, "DV15");
    assert!(anonymous("null").is_none(), "DV15");
}
