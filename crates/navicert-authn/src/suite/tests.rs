use navicert_types::authentication_test::AuthenticationTest;

use super::*;
use crate::config;

const CONFIGURATION: &str = r#"
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: https://i, audiences: [kube]}
  claimMappings:
    username: {expression: claims.email}
    groups: {claim: groups, prefix: 'oidc:'}
    uid: {claim: sub}
    extra: [{key: example.com/tenant, valueExpression: 'claims.?tenant.orValue("")'}]
  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  - {expression: claims.email_verified == true, message: unverified}
  userValidationRules:
  - {expression: '!user.username.startsWith("root@")', message: no root}
"#;

const CASES: &str = r#"
- name: ann signs in
  claims: {sub: u1, email: ann@example.com, email_verified: true, hd: example.com, groups: [dev], tenant: t1}
  expect: {user: {username: ann@example.com, uid: u1, groups: ['oidc:dev'], extra: {example.com/tenant: [t1]}}}
- name: another company
  claims: {sub: u1, email: ann@example.com, email_verified: true, hd: example.org}
  expect: {rejected: {reason: required_claim, at: 'jwt[0].claimValidationRules[0]'}}
- name: an unverified address
  claims: {sub: u1, email: ann@example.com, email_verified: false, hd: example.com}
  expect: {rejected: {reason: claim_rule, message: unverified}}
- name: root
  claims: {sub: u1, email: root@example.com, email_verified: true, hd: example.com}
  expect: {rejected: {message: no root}}
- name: late
  claims: {sub: u1, email: ann@example.com, email_verified: true, hd: example.com, exp: 5}
  expect: {rejected: {reason: expired}}
- name: another issuer
  claims: {iss: https://other, sub: u1}
  expect: {noOpinion: true}
"#;

fn suite(configuration: &str, cases: &str) -> Suite {
    let text = format!(
        "apiVersion: navicert/v1alpha1\nkind: AuthenticationTest\nconfiguration: a.yaml\ncases:{cases}"
    );
    let test = AuthenticationTest::parse(text.as_bytes()).unwrap();
    let profile = AuthnProfile::HARDENED;
    let configuration = config::load(configuration.as_bytes(), &profile).unwrap().configuration;
    Suite {
        test,
        configuration,
        jwks: Value::Null,
        tokens: HashMap::new(),
        navicert_config: NavicertConfiguration::default(),
        profile,
    }
}

fn gaps(report: &SuiteReport) -> Vec<String> {
    report.coverage.as_ref().unwrap().gaps.iter().map(|gap| gap.path.to_string()).collect()
}

#[test]
fn good_suite_passes_and_covers_everything() {
    let report = suite(CONFIGURATION, CASES).run().unwrap();
    let failed: Vec<&CaseReport> = report.cases.iter().filter(|case| !case.differences.is_empty()).collect();
    assert!(report.passes(), "{failed:?}");
    assert_eq!(gaps(&report), [""; 0]);
    assert_eq!(report.coverage.unwrap().covered, 7);
}

#[test]
fn navicert_config_applies_to_a_suite() {
    let cases = r#"
- name: ann is an administrator
  claims: {sub: u1, email: ann@example.com, email_verified: true, hd: example.com, groups: ['masters']}
  expect: {user: {username: ann@example.com, uid: u1, groups: ['system:masters']}}
"#;
    let configuration = CONFIGURATION.replace("prefix: 'oidc:'", "prefix: 'system:'");
    assert!(!suite(&configuration, cases).run().unwrap().passes());
    let text = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nissuers:\n- {url: https://i, allowSystemMasters: true, allowedAlgorithms: [RS256]}\n";
    let navicert_config = NavicertConfiguration::parse(text.as_bytes()).unwrap();
    assert!(Suite { navicert_config, ..suite(&configuration, cases) }.run().unwrap().passes());
}

// Without gaps, no rule or mapping can be changed unnoticed.
#[test]
fn mutated_rule_fails_a_suite_without_gaps() {
    let changes = [
        ("username: {expression: claims.email}", "username: {expression: claims.sub}"),
        ("groups: {claim: groups, prefix: 'oidc:'}", "groups: {claim: groups, prefix: ''}"),
        ("groups: {claim: groups, prefix: 'oidc:'}", "groups: {}"),
        ("uid: {claim: sub}", "uid: {}"),
        ("claims.?tenant", "claims.?tenants"),
        ("requiredValue: example.com", "requiredValue: example.org"),
        ("claims.email_verified == true", "has(claims.email_verified)"),
        ("claims.email_verified == true", "claims.email_verified == true && false"),
        ("message: unverified", "message: verified"),
        ("'!user.username.startsWith(\"root@\")'", "'true'"),
        ("'!user.username.startsWith(\"root@\")'", "'user.username.startsWith(\"root@\")'"),
        ("audiences: [kube]", "audiences: [kub]"),
    ];
    for (from, to) in changes {
        assert!(CONFIGURATION.contains(from), "{from}");
        let mutated = CONFIGURATION.replace(from, to);
        let report = suite(&mutated, CASES).run().unwrap();
        // The audience comes from the configuration itself, so changing it there changes nothing.
        assert_eq!(report.passes(), from.starts_with("audiences"), "{from} -> {to}");
    }
    for (gap, mutant) in coverage::mutants(&suite(CONFIGURATION, CASES).configuration) {
        let suite = Suite { configuration: mutant, ..suite(CONFIGURATION, CASES) };
        assert!(!suite.run().unwrap().passes(), "{}", gap.path);
    }
}

#[test]
fn untested_rule_is_reported() {
    let without = |name: &str| {
        let cases: String =
            CASES.split("\n- ").filter(|case| !case.contains(name)).collect::<Vec<_>>().join("\n- ");
        gaps(&suite(CONFIGURATION, &cases).run().unwrap())
    };
    assert_eq!(without("name: another company"), ["jwt[0].claimValidationRules[0]"]);
    assert_eq!(without("name: an unverified"), ["jwt[0].claimValidationRules[1]"]);
    assert_eq!(without("name: root"), ["jwt[0].userValidationRules[0]"]);
    assert_eq!(
        without("name: ann"),
        // The rule that rejects root still checks the username.
        ["groups", "uid", "extra[0]"].map(|name| format!("jwt[0].claimMappings.{name}"))
    );
}

#[test]
fn differences_name_the_field_and_both_values() {
    let cases = r#"
- name: wrong in every way
  claims: {sub: u1, email: ann@example.com, email_verified: true, hd: example.com, groups: [dev], tenant: t1}
  expect: {user: {username: bob, uid: u2, groups: [dev], extra: {example.com/tenant: [t2], example.com/x: [z]}}}
- name: another reason
  claims: {sub: u1, email: ann@example.com, email_verified: false, hd: example.com}
  expect: {rejected: {reason: audience, message: other, at: 'jwt[0].userValidationRules'}}
- name: not refused
  claims: {sub: u1, email: ann@example.com, email_verified: true, hd: example.com}
  expect: {rejected: {reason: audience}}
"#;
    let report = suite(CONFIGURATION, cases).run().unwrap();
    assert!(report.coverage.is_none());
    let differences: Vec<String> = report
        .cases
        .iter()
        .flat_map(|case| &case.differences)
        .map(|one| format!("{}: {} / {}", one.field, one.expected, one.got))
        .collect();
    let refusal = "jwt[0].claimValidationRules[1].expression: validation expression 'claims.email_verified == true' failed: unverified";
    assert_eq!(
        differences,
        [
            r#"username: "bob" / "ann@example.com""#.to_owned(),
            r#"uid: "u2" / "u1""#.to_owned(),
            r#"groups: ["dev"] / ["oidc:dev"]"#.to_owned(),
            r#"extra["example.com/tenant"]: ["t2"] / ["t1"]"#.to_owned(),
            r#"extra["example.com/x"]: ["z"] / nothing"#.to_owned(),
            format!("reason: audience / claim_rule ({refusal})"),
            r#"message: "other" / "unverified""#.to_owned(),
            format!("at: jwt[0].userValidationRules / jwt[0].claimValidationRules[1].expression ({refusal})"),
            r#"outcome: rejected: audience / the user "ann@example.com""#.to_owned(),
        ]
    );
}
