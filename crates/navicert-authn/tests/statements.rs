//! Which recorded decisions back which statement of the specification. That navicert decides alike is checked in `vectors.rs`;
//! this checks that those decisions are still among the recorded ones.

use std::collections::BTreeMap;

use navicert_testkit::k8s::vectors;

/// Statements, and the decisions that back them: IDs without their number, and the minimum count.
const HELD: &[(&str, &str, usize)] = &[
    ("S1", "cfg-minimal-config-version-v1alpha1", 1),
    ("S2", "cfg-kind-of-another-type", 1),
    ("S2", "cfg-other-group", 1),
    ("S2", "cfg-unknown-version", 2),
    ("S4", "cfg-empty-input", 1),
    ("S4", "cfg-missing-apiversion", 1),
    ("S4", "cfg-missing-kind", 1),
    ("S7", "cfg-duplicate-key-yaml", 1),
    ("S11", "cfg-json-with-trailing-text", 1),
    ("S11", "cfg-second-document-ignored", 1),
    ("S12", "cfg-anchors", 1),
    ("S12", "cfg-merge-key", 1),
    ("S15", "cfg-audiencematchpolicy-beside-issuer", 1),
    ("S16", "cfg-random-several-changes", 70),
    ("S20", "cfg-discoveryurl-equal-to-the-other-issuer", 1),
    ("S20", "cfg-duplicate-discoveryurl", 1),
    ("S21", "cfg-issuer-url-empty", 1),
    ("S25", "cfg-issuer-url-query-or-fragment", 3),
    ("S25", "cfg-issuer-url-userinfo", 3),
    ("S27, S28", "cfg-discoveryurl-form", 11),
    ("S29, S30", "cfg-audiences-list", 6),
    ("S31", "cfg-one-audience-policy", 4),
    ("S31", "cfg-two-audiences-policy", 4),
    ("S32", "cfg-certificateauthority", 8),
    ("S33", "cfg-egressselectortype", 5),
    ("S34, S35, S36, S37", "cfg-claimvalidationrules", 13),
    ("S39, S67, S69, S70, S84", "cfg-claim-rule-static-check", 40),
    ("S40, S41", "cfg-groups-mapping-shape", 9),
    ("S40, S41", "cfg-username-mapping-shape", 13),
    ("S42", "cfg-uid-mapping-shape", 5),
    ("S43, S44, S45", "cfg-extra-key", 19),
    ("S46", "cfg-extra-list", 7),
    ("S47", "cfg-uservalidationrules", 7),
    ("S48", "cfg-e-mail-rule-email-verified-in-a-claim-rule", 4),
    ("S48", "cfg-e-mail-rule-email-verified-in-extra", 6),
    ("S49, S50", "cfg-e-mail-rule-what-counts-as-use", 15),
    ("S51", "cfg-e-mail-rule-broken-rule-does-not-satisfy", 1),
    ("S51", "cfg-e-mail-rule-groups-do-not-satisfy", 1),
    ("S51", "cfg-e-mail-rule-legacy-rule-does-not-satisfy", 1),
    ("S51", "cfg-e-mail-rule-other-authenticator-does-not-satisfy", 1),
    ("S51", "cfg-e-mail-rule-uid-does-not-satisfy", 1),
    ("S52", "cfg-e-mail-claim-has-no-static-rule", 1),
    ("S53", "cfg-e-mail-rule-prefix-error-hides-it", 1),
    ("S63, S65", "cfg-mapping-expression-static-check", 28),
    ("S64", "cfg-user-rule-static-check", 14),
    ("S68", "cfg-expression-nested-deep-but-legal", 1),
    ("S68", "cfg-expression-nested-too-deep", 1),
    ("S68", "cfg-expression-too-long", 1),
    ("S80", "tok-errors-absorbed-by-or", 3),
    ("S87", "tok-all-mappings-together", 9),
    ("S91", "tok-rule-error-beats-rule-false", 2),
    ("S105", "tok-iss-form", 8),
    ("S111", "tok-alg-missing", 1),
    ("S111", "tok-alg-not-allowed", 9),
    ("S112", "tok-header-member-nonce", 1),
    ("S112", "tok-kid-form", 7),
    ("S113", "tok-header-member-jku", 1),
    ("S113", "tok-header-member-jwk", 1),
    ("S113", "tok-header-member-x5c", 1),
    ("S113", "tok-header-member-x5u", 1),
    ("S114", "tok-header-member-b64", 1),
    ("S114", "tok-header-member-crit", 3),
    ("S115", "tok-token-text", 21),
    ("S120", "tok-signature-bit-flip", 3),
    ("S126", "tok-nbf-form", 8),
    ("S126", "tok-nbf-relative-to-now", 6),
    ("S127", "tok-iat-relative-to-now", 4),
    ("S132", "tok-username-claim-value", 13),
    ("S134", "tok-groups-value-prefixed", 13),
    ("S135", "tok-groups-value-gexpr", 13),
    ("S136", "tok-uid-claim-value", 6),
    ("S137", "tok-email-verified-value", 6),
    ("S138", "tok-extra-value", 12),
    ("S138", "tok-jti-value", 7),
    ("S139", "tok-required-claim-value", 7),
    ("S139", "tok-required-empty-value", 7),
    ("S142", "tok-several-authenticators", 5),
    ("S164", "tok-key-set-upper-case-envelope", 1),
    ("S304", "tok-iat-missing", 1),
    ("A2", "tok-hmac-with-the-public-key", 1),
];

#[test]
fn decisions_that_back_a_statement_are_recorded() {
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    for file in ["authn-config.jsonl", "authn-token.jsonl"] {
        for vector in vectors::vectors(file) {
            let group = vector.id.trim_end_matches(|letter: char| letter.is_ascii_digit());
            *groups.entry(group.trim_end_matches('-').to_owned()).or_default() += 1;
        }
    }
    for (statements, group, least) in HELD {
        let found = groups.get(*group).copied().unwrap_or_default();
        assert!(found >= *least, "{statements}: {found} decisions `{group}-…`, {least} expected");
    }
}
